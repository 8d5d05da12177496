"""One value per vertex of each person, from CIFTI, a pair of GIFTI or a pair of overlays.

Nothing goes into a person's vector but that person's own files and the study's public mesh.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.space.cifti import check_vertices, cortex_rows, grayordinates
from consortium.space.mesh import DAMAGED, SIDE_NAMES, Hemisphere, Mesh, load_gifti, mesh_values
from consortium.space.nifti import open_image
from consortium.space.study_space import ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.meshes import MeshKind
from consortium.views.surface import SurfaceView
from site_agent.data.bids import entities, has_entities, is_on, misplaced_file
from site_agent.data.scaling import Vector, scale_vector
from site_agent.data.survey import Reason, SkippedPerson

_BOTH = "LR"
Sides = dict[str, Path]
"""Files of a map, by the hemispheres that they hold: one of `_BOTH`, or one of each."""


def read_surfaces(
    source: Path, data: DataSection, view: ViewSpace[SurfaceView]
) -> tuple[dict[str, Vector], list[SkippedPerson]]:
    """Read every person's map on the study's mesh.

    Raises DataError if nobody has a map.

    Parameters
    ----------
    source : Path
        The site's data set, of BIDS or of FreeSurfer's folders named ``sub-*``.
    data : DataSection
        Its session, run, acquisition, direction and echo choose files.
    view : ViewSpace
        Of surfaces.

    Returns
    -------
    vectors : dict of str to array, shape (D_view,)
        By person's label, without ``sub-``.
    skipped : list of Skipped
        Everybody else.
    """
    vectors: dict[str, Vector] = {}
    skipped: list[SkippedPerson] = []
    for home in sorted(path for path in source.glob("sub-*") if path.is_dir()):
        outcome = _of_person(home, data, view)
        if isinstance(outcome, SkippedPerson):
            skipped.append(outcome)
        else:
            vectors[home.name.removeprefix("sub-")] = outcome
    if not vectors and all(each.reason in ("no-view", "not-chosen") for each in skipped):
        raise DataError(
            f"{source} holds no {_wanted(view.view)} in a folder sub-*; check path and name."
        )
    return vectors, skipped


def _of_person(
    home: Path, data: DataSection, view: ViewSpace[SurfaceView]
) -> Vector | SkippedPerson:
    assert view.mesh is not None  # noqa: S101 - a view of surfaces has one
    label, settings = home.name.removeprefix("sub-"), view.view
    named = list(_on_mesh(home, settings.values, view.mesh.kind))
    chosen = [path for path in named if has_entities(entities(path), data)]
    strange = misplaced_file(home, chosen)
    if strange is not None:
        return SkippedPerson(label, "unusable", strange)
    if not chosen:
        reason: Reason = "not-chosen" if named else "no-view"
        return SkippedPerson(label, reason, f"{home} holds no {_wanted(settings)}.")
    try:
        values = _read(_one_map(home, chosen, settings.values), view.mesh)
        return scale_vector(values, 1.0, settings.center, settings.normalize, home)
    except DataError as error:
        return SkippedPerson(label, "unusable", str(error))


def _wanted(view: SurfaceView) -> str:
    return f"map of {view.values} on {view.mesh} (.dscalar.nii, .shape.gii, .func.gii or .mgh)"


def _on_mesh(home: Path, values: str, kind: MeshKind) -> Iterator[Path]:
    """List a folder's files of a map, but for those that are named as of another mesh."""
    patterns = _patterns(values)
    for path in sorted(home.rglob(f"*{values}*")):
        fits = is_on(entities(path), kind)
        if fits and any(each.fullmatch(path.name) for each in patterns):
            yield path


def _patterns(values: str) -> tuple[re.Pattern[str], ...]:
    """How files of a map are called: CIFTI, GIFTI, FreeSurfer's overlays."""
    end = re.escape(values)
    return (
        re.compile(rf".+_{end}\.dscalar\.nii"),
        re.compile(rf"(.*_)?hemi-(?P<side>[LR])(_.*)?_{end}\.(shape|func)\.gii"),
        re.compile(rf"(?P<side>[lr])h\.{end}(\..+)?\.mg[hz]"),
    )


def _one_map(home: Path, paths: Iterable[Path], values: str) -> Sides:
    """The files of a person's one map, of the first kind that there is.

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
            raise DataError(f"{home} holds {len(maps)} maps of {values}; name more of the end.")
        for sides in maps.values():
            return _complete(sides)
    raise DataError(f"{home} holds no map of {values}; correct the name.")


def _complete(sides: Sides) -> Sides:
    for side, other in (("L", "R"), ("R", "L")):
        if side in sides and other not in sides:
            raise DataError(
                f"{sides[side]} has no {SIDE_NAMES[other]} hemisphere beside it; add its file."
            )
    return sides


def _read(sides: Sides, mesh: Mesh) -> NDArray[np.float64]:
    """Values at the study's vertices, shape (D,).

    Raises DataError if a file can't be read, is of another mesh, has another medial wall, or lacks
    a value.
    """
    if _BOTH in sides:
        return _read_cifti(sides[_BOTH], mesh)
    return np.concatenate([_read_side(sides[side.side], side, mesh) for side in mesh.sides])


def _read_side(path: Path, side: Hemisphere, mesh: Mesh) -> NDArray[np.float64]:
    if path.suffix != ".gii":
        return _finite(path, _overlay(path, side, mesh)[side.cortex])
    whole = mesh_values(path, load_gifti(path, side.side))
    check_vertices(path, side, len(whole), mesh)
    return _finite(path, whole[side.cortex])


def _overlay(path: Path, side: Hemisphere, mesh: Mesh) -> NDArray[np.float64]:
    """Values of one of FreeSurfer's overlays, shape (N,)."""
    try:
        image = open_image(path)
        if not isinstance(image, nib.MGHImage) or sorted(image.shape)[:-1] != [1, 1]:
            raise ValueError("no overlay")
        check_vertices(path, side, max(image.shape), mesh)
        return np.asarray(image.dataobj, dtype=np.float64).ravel()
    except DAMAGED as error:
        raise DataError(f"{path} is no whole overlay of one map; write it again.") from error


def _read_cifti(path: Path, mesh: Mesh) -> NDArray[np.float64]:
    try:
        image = open_image(path)
        dense = image.shape == (1, grayordinates(image))
        values = np.asarray(image.dataobj if dense else [], dtype=np.float64)
    except DAMAGED as error:
        raise DataError(f"{path} is no whole CIFTI file; write it again.") from error
    if not dense or values.shape != image.shape:
        raise DataError(f"{path} is no dense file of one map; give one map per file.")
    return _finite(path, values[0][cortex_rows(path, image, mesh)])


def _finite(path: Path, values: NDArray[np.float64]) -> NDArray[np.float64]:
    lacking = int(np.count_nonzero(~np.isfinite(values)))
    if lacking:
        raise DataError(f"{path} has no number at {lacking:,} of the study's vertices; repair it.")
    if not values.any():
        raise DataError(f"{path} is zero at all of the study's vertices; check its map.")
    return values
