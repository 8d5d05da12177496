"""One value per vertex of each participant, and cortical series, from CIFTI, GIFTI or overlays.

A participant's vector depends only on that participant's files and the study's public mesh.

Series are dense series of CIFTI or pairs of GIFTI files, on a study's mesh. Subcortical values of a
CIFTI file are ignored: a study on a mesh is about the cortex. The file's stored values are mapped
into memory and copied once; GIFTI has to be unpacked.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.base.regular_file import regular
from consortium.errors import DataError
from consortium.privacy.bounds import Unit
from consortium.space.atlas import Regions, parcel_places, parcels_of
from consortium.space.mesh import (
    DAMAGED,
    SIDE_NAMES,
    Hemisphere,
    Mesh,
    check_vertices,
    cortex_rows,
    grayordinates,
    load_gifti,
    mesh_values,
)
from consortium.space.nifti import MOST_VOLUMES, open_image
from consortium.space.study_space import ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.meshes import MeshKind
from consortium.views.surface import SurfaceView
from site_agent.data.bids import misplaced_file
from site_agent.data.folders import files_below, foreign_home, homes_in, unread_in
from site_agent.data.names import (
    PARCEL_SERIES,
    Entities,
    entities,
    has_entities,
    has_version,
    is_on,
)
from site_agent.data.scaling import Vector, scale_vector
from site_agent.data.survey import NobodyError, Reason, RecordingRun, SkippedPerson
from site_agent.images.nifti import GapsError, check_finite

Series = NDArray[np.float32]

_ROWS = 256  # grayordinates at a time, which fit into the processor's cache
_MOST_BYTES = 1 << 32  # largest GIFTI file
_WIDEST = 8  # bytes of a number
_LEAST_ARRAY = 100  # minimum bytes of one in a GIFTI file
_HEAD = 1 << 16
_COUNT = re.compile(rb"NumberOfDataArrays\s*=\s*[\"'](\d{1,6})[\"']")
_BOTH = "LR"
Sides = dict[str, Path]
"""Files of a map, by the hemispheres that they hold: one of `_BOTH`, or one of each."""


def is_of_parcels(run: RecordingRun) -> bool:
    """Return whether a recording has a value for each parcel, and not for each vertex."""
    return run.bold.name.endswith(PARCEL_SERIES)


def count_volumes(
    run: RecordingRun, mesh: Mesh | None = None, regions: Regions | None = None
) -> int:
    """Return the volumes of a recording, from its files' headers.

    Raises DataError if a file can't be read, or does not fit.

    Parameters
    ----------
    mesh : Mesh, optional
        The study's mesh. The vertices of CIFTI are then compared with its own.
    regions : Regions, optional
        The study's regions. Names of parcels are then compared with theirs.
    """
    if is_of_parcels(run):
        image = _open_parcels(run.bold)
        if regions is not None:
            parcel_places(run.bold, image, regions)
        return int(image.shape[0])
    if not _is_gifti(run.bold):
        image = _open_cifti(run.bold)
        if mesh is not None:
            cortex_rows(run.bold, image, mesh)
        return int(image.shape[0])
    counts = [_gifti_count(path) for path in _sides_of(run)]
    if counts[0] != counts[1]:
        raise DataError(
            f"{run.bold} has {counts[0]} volumes and {run.right} has {counts[1]}. Write both again."
        )
    return counts[0]


def read_surface_series(
    run: RecordingRun, mesh: Mesh, unit: Unit = "subject", regions: Regions | None = None
) -> Series:
    """Read a recording at the study's vertices, or of its parcels if it has these.

    Raises DataError if a file can't be read, is of another mesh or wall, or a value is not finite
    and a participant is the unit.

    Parameters
    ----------
    unit : {'subject', 'timepoint'}
        Of privacy.
    regions : Regions, optional
        The study's regions, among which parcels are found by name.

    Returns
    -------
    array, shape (T, D), float32
        The same values as nibabel gives; D vertices, or regions of a file of parcels.
    """
    if is_of_parcels(run):
        series = _of_parcels(run.bold, regions)
    else:
        series = _of_gifti(run, mesh) if _is_gifti(run.bold) else _of_cifti(run.bold, mesh)
    for number, row in enumerate(series, 1):
        check_finite(run.bold, number, row, unit)
    return series


def axis_step(path: Path) -> float:
    """Return the seconds from volume to volume on a CIFTI file's axis of time.

    The number is 0 for GIFTI, and where the axis is in another unit. Raises DataError if the file
    can't be read.
    """
    if _is_gifti(path):
        return 0.0
    opened = _open_parcels if path.name.endswith(PARCEL_SERIES) else _open_cifti
    axis = opened(path).header.get_axis(0)
    return float(axis.step) if axis.unit == "SECOND" else 0.0


def _is_gifti(path: Path) -> bool:
    return path.suffix == ".gii"


def _open_cifti(path: Path) -> nib.Cifti2Image:
    """Return a dense series, without reading a value."""
    try:
        return _open_courses(path, grayordinates)
    except DAMAGED as error:
        raise DataError(f"{path} is not a complete dense series. Give a .dtseries.nii.") from error


def _open_parcels(path: Path) -> nib.Cifti2Image:
    """Return a series of parcels, without reading a value."""
    try:
        return _open_courses(path, parcels_of)
    except DAMAGED as error:
        raise DataError(
            f"{path} is not a complete series of parcels. Give a {PARCEL_SERIES}."
        ) from error


def _open_courses(path: Path, many: Callable[[nib.Cifti2Image], int]) -> nib.Cifti2Image:
    image = open_image(path)
    if not isinstance(image, nib.Cifti2Image):
        raise ValueError("no CIFTI")
    times = image.header.get_axis(0)
    if not isinstance(times, nib.cifti2.SeriesAxis):
        raise ValueError("no series")
    if image.shape != (len(times), many(image)):
        raise ValueError("of other places, or its axes are those of another file")
    return image


def _of_parcels(path: Path, regions: Regions | None) -> Series:
    if regions is None:
        raise DataError(f"{path} has parcels, and the study names none. Add data.atlas.")
    image = _open_parcels(path)
    try:
        stored = np.asarray(image.dataobj)
        if stored.dtype.kind not in "iuf":
            raise ValueError("no real numbers")
    except DAMAGED as error:
        raise DataError(f"{path} is cut short or damaged. Copy the file again.") from error
    return stored[:, parcel_places(path, image, regions)].astype(np.float32)


def _of_cifti(path: Path, mesh: Mesh) -> Series:
    image = _open_cifti(path)
    rows = cortex_rows(path, image, mesh)
    series = np.empty((image.shape[0], mesh.features), dtype=np.float32)
    try:
        stored = np.asarray(image.dataobj).T  # a grayordinate's values are contiguous
        if stored.dtype.kind not in "iuf":
            raise ValueError("no real numbers")
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            series[:, part] = stored[rows[part]].T
    except DAMAGED as error:
        raise DataError(f"{path} is cut short or damaged. Copy the file again.") from error
    return series


def _sides_of(run: RecordingRun) -> tuple[Path, Path]:
    if run.right is None:
        other = "left" if "hemi-R" in run.bold.name else "right"
        raise DataError(f"{run.bold} has no {other} hemisphere next to it. Add its file.")
    return run.bold, run.right


def _gifti_count(path: Path) -> int:
    """Return the number of arrays that a GIFTI file states, and the number that it can have."""
    try:
        with regular(path).open("rb") as file:
            found = _COUNT.search(file.read(_HEAD))
            most = path.stat().st_size // _LEAST_ARRAY
    except OSError as error:
        raise DataError(f"{path} can't be read. Check its rights.") from error
    if found is None or not 0 < int(found[1]) <= min(most, MOST_VOLUMES):
        raise DataError(f"{path} is not a GIFTI file with a map for each volume. Write it again.")
    return int(found[1])


def _of_gifti(run: RecordingRun, mesh: Mesh) -> Series:
    paths = _sides_of(run)
    volumes = count_volumes(run)
    start = 0
    series = np.empty((volumes, mesh.features), dtype=np.float32)
    for path, side in zip(paths, mesh.sides, strict=True):
        stop = start + side.features
        for number, values in enumerate(_gifti_maps(path, side, mesh, volumes)):
            series[number, start:stop] = values
        start = stop
    return series


def _gifti_maps(path: Path, side: Hemisphere, mesh: Mesh, volumes: int) -> Iterator[NDArray[Any]]:
    """Yield each volume's values on the cortex of one side."""
    most = volumes * mesh.kind.vertices * _WIDEST
    arrays = load_gifti(path, side.side, _MOST_BYTES, most).darrays
    if len(arrays) != volumes:
        raise DataError(f"{path} has {len(arrays)} volumes, and says {volumes}. Write it again.")
    for array in arrays:
        whole = np.asarray(array.data)
        if whole.ndim != 1 or whole.dtype.kind not in "iuf":
            raise DataError(
                f"{path} has no single number for each vertex of the {SIDE_NAMES[side.side]} "
                "hemisphere in every volume. Write a map for each."
            )
        check_vertices(path, side, len(whole), mesh)
        yield whole[side.cortex]


def read_surfaces(
    source: Path, data: DataSection, view: ViewSpace[SurfaceView], gaps: float = 0.0
) -> tuple[dict[str, Vector], list[SkippedPerson]]:
    """Read every participant's map on the study's mesh.

    Raises NobodyError if no participant has a map.

    Parameters
    ----------
    source : Path
        The site's data set, of BIDS or of FreeSurfer's folders named ``sub-*``.
    data : DataSection
        Its session, run, acquisition, direction and echo choose files.
    view : ViewSpace
        View of surfaces.
    gaps : float
        Fraction of the vertices that a participant may lack; NaN in the vector.

    Returns
    -------
    vectors : dict of str to array, shape (D_view,)
        By participant's label, without ``sub-``.
    skipped : list of Skipped
        All other participants.
    """
    vectors: dict[str, Vector] = {}
    skipped: list[SkippedPerson] = []
    for home in homes_in(source):
        outcome = _of_person(home, source, data, view, gaps)
        if isinstance(outcome, SkippedPerson):
            skipped.append(outcome)
        else:
            vectors[home.name.removeprefix("sub-")] = outcome
    if not vectors and all(each.reason in ("no-view", "not-chosen") for each in skipped):
        raise NobodyError(
            f"{source} has no {_wanted(view.view)} in a folder sub-*. Check path and name."
        )
    return vectors, skipped


def _of_person(
    home: Path, root: Path, data: DataSection, view: ViewSpace[SurfaceView], gaps: float
) -> Vector | SkippedPerson:
    assert view.mesh is not None  # noqa: S101 - a view of surfaces has one
    label = home.name.removeprefix("sub-")
    settings = view.view
    chosen = maps_of(home, root, data, view)
    if isinstance(chosen, SkippedPerson):
        return chosen
    try:
        values = _read(_one_map(home, chosen, settings.values), view.mesh, gaps)
        return scale_vector(values, 1.0, settings.center, settings.normalize, home, gaps=True)
    except GapsError as error:
        return SkippedPerson(label, "does-not-fit", str(error))
    except DataError as error:
        return SkippedPerson(label, "unusable", str(error))


def maps_of(
    home: Path, root: Path, data: DataSection, view: ViewSpace[SurfaceView]
) -> list[Path] | SkippedPerson:
    """Return a participant's surface files of a map, or why there are none.

    Parameters
    ----------
    home, root : Path
        The participant's folder, and the data set.
    """
    assert view.mesh is not None  # noqa: S101 - a view of surfaces has one
    label = home.name.removeprefix("sub-")
    foreign = foreign_home(home, root)
    if foreign is not None:
        return SkippedPerson(label, "unusable", foreign)
    files = files_below(home, root)
    named = list(_on_mesh(files, view.view.values, view.mesh.kind))
    chosen = [path for path in named if _is_chosen(entities(path), data)]
    strange = misplaced_file(home, chosen)
    if strange is not None:
        return SkippedPerson(label, "unusable", strange)
    if not chosen:
        reason: Reason = "not-chosen" if named else "no-view"
        return SkippedPerson(
            label, reason, f"{home} has no {_wanted(view.view)}.{unread_in(home, root)}"
        )
    return chosen


def map_values(
    home: Path, chosen: Iterable[Path], view: ViewSpace[SurfaceView]
) -> NDArray[np.float64]:
    """Read the values of a participant's map as they are, with NaN where one is not finite.

    Raises DataError if a file can't be used.

    Parameters
    ----------
    home : Path
        The participant's folder.
    chosen : iterable of Path
        Files of `maps_of`.
    """
    assert view.mesh is not None  # noqa: S101 - a view of surfaces has one
    return _read(_one_map(home, chosen, view.view.values), view.mesh, 1.0)


def _is_chosen(named: Entities, data: DataSection) -> bool:
    return has_entities(named, data) and has_version(named, data, strict=False)


def _wanted(view: SurfaceView) -> str:
    return f"map of {view.values} on {view.mesh} (.dscalar.nii, .shape.gii, .func.gii or .mgh)"


def _on_mesh(files: Iterable[Path], values: str, kind: MeshKind) -> Iterator[Path]:
    """Yield the files of a map except those that are named as of another mesh."""
    patterns = _patterns(values)
    for path in files:
        fits = is_on(entities(path), kind)
        if fits and any(each.fullmatch(path.name) for each in patterns):
            yield path


def _patterns(values: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns for the names of a map's files: CIFTI, GIFTI, FreeSurfer's overlays."""
    end = re.escape(values)
    return (
        re.compile(rf".+_{end}\.dscalar\.nii"),
        re.compile(rf"(.*_)?hemi-(?P<side>[LR])(_.*)?_{end}\.(shape|func)\.gii"),
        re.compile(rf"(?P<side>[lr])h\.{end}(\..+)?\.mg[hz]"),
    )


def _one_map(home: Path, paths: Iterable[Path], values: str) -> Sides:
    """Return the files of a participant's one map, of the first kind that exists.

    Raises DataError if there are several maps, or one hemisphere is missing.
    """
    for pattern in _patterns(values):
        maps: dict[tuple[Path, str], Sides] = defaultdict(dict)
        for path in paths:
            if found := pattern.fullmatch(path.name):
                side = found.groupdict().get("side", _BOTH)
                apart = path.name.replace(f"hemi-{side}", "hemi").removeprefix(f"{side}h.")
                maps[path.parent, apart][side.upper()] = path
        if len(maps) > 1:
            some = ", ".join(min(sides.values()).name for sides in [*maps.values()][:2])
            raise DataError(
                f"{home} has {len(maps)} maps of {values}, such as {some}, where one is required. "
                "Write more of the end as 'values' of the view, or choose by 'data: {session: …}' "
                "or 'data: {description: …}' in the study."
            )
        for sides in maps.values():
            return _complete(sides)
    raise DataError(f"{home} has no map of {values}. Correct the name.")


def _complete(sides: Sides) -> Sides:
    for side, other in (("L", "R"), ("R", "L")):
        if side in sides and other not in sides:
            raise DataError(
                f"{sides[side]} has no {SIDE_NAMES[other]} hemisphere next to it. Add its file."
            )
    return sides


def _read(sides: Sides, mesh: Mesh, gaps: float) -> NDArray[np.float64]:
    """Return the values at the study's vertices, shape (D,).

    Raises DataError if a file can't be read, is of another mesh, has another medial wall, or lacks
    a value.
    """
    if _BOTH in sides:
        return _checked(sides[_BOTH], _read_cifti(sides[_BOTH], mesh), gaps)
    each = ((sides[side.side], side) for side in mesh.sides)
    return np.concatenate([_checked(p, _read_side(p, side, mesh), gaps) for p, side in each])


def _read_side(path: Path, side: Hemisphere, mesh: Mesh) -> NDArray[np.float64]:
    if path.suffix != ".gii":
        return _overlay(path, side, mesh)[side.cortex]
    whole = mesh_values(path, load_gifti(path, side.side))
    check_vertices(path, side, len(whole), mesh)
    return whole[side.cortex]


def _overlay(path: Path, side: Hemisphere, mesh: Mesh) -> NDArray[np.float64]:
    """Return the values of one of FreeSurfer's overlays, shape (N,)."""
    try:
        image = open_image(path)
        if not isinstance(image, nib.MGHImage) or sorted(image.shape)[:-1] != [1, 1]:
            raise ValueError("no overlay")
        check_vertices(path, side, max(image.shape), mesh)
        return np.asarray(image.dataobj, dtype=np.float64).ravel()
    except DAMAGED as error:
        raise DataError(f"{path} is not a complete overlay of one map. Write it again.") from error


def _read_cifti(path: Path, mesh: Mesh) -> NDArray[np.float64]:
    try:
        image = open_image(path)
        dense = image.shape == (1, grayordinates(image))
        values = np.asarray(image.dataobj if dense else [], dtype=np.float64)
    except DAMAGED as error:
        raise DataError(f"{path} is not a complete CIFTI file. Write it again.") from error
    if not dense or values.shape != image.shape:
        raise DataError(f"{path} is not a dense file of one map. Give one map per file.")
    return np.asarray(values[0][cortex_rows(path, image, mesh)])


def _checked(path: Path, values: NDArray[np.float64], gaps: float) -> NDArray[np.float64]:
    """Return the values of one file; up to the fraction ``gaps`` may be missing, as NaN."""
    known = np.isfinite(values)
    lacking = int(np.count_nonzero(~known))
    if not known.any():
        raise DataError(f"{path} has no finite value at the study's vertices. Check its map.")
    if lacking > gaps * len(values):
        kind = GapsError if gaps else DataError
        raise kind(f"{path} has no number at {lacking:,} of the study's vertices. Repair it.")
    if not values[known].any():
        raise DataError(f"{path} is zero at all of the study's vertices. Check its map.")
    return np.where(known, values, np.nan)
