"""Images of participants as a temporary BIDS data set.

The estimators read images with the same code as a site. Files are linked, not copied. Only images
in memory and prepared blocks are written, readable by their owner only. Arrays and tables of
participants, a row each, may replace images.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import nibabel as nib
import numpy as np
from nibabel.gifti import GiftiDataArray, GiftiImage
from numpy.typing import NDArray

from consortium.errors import DataError, StudyError
from consortium.simulation.dataset import start_derivatives
from consortium.space.mesh import SIDE_NAMES
from consortium.study.data_section import DataSection
from consortium.views.meshes import MESHES

if TYPE_CHECKING:
    from nilearn.surface import SurfaceImage

Img: TypeAlias = "str | Path | nib.Nifti1Image | SurfaceImage"
"""A NIfTI file, or an image in memory, of voxels or on the cortex."""
Participant: TypeAlias = "Img | Sequence[Img]"
"""One participant's image, or images of several runs."""
Imgs: TypeAlias = "str | Path | Sequence[Participant]"
"""A BIDS data set, or one entry for each participant."""

MAP = "desc-map_statmap"
"""End of the name of a participant's single image."""
_ENDINGS = (".nii.gz", ".nii")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a folder that only its owner may read, which is removed when the block ends."""
    with TemporaryDirectory(prefix="consortium-") as name:
        yield Path(name)


def lay_out(
    folder: Path,
    imgs: Imgs,
    data: DataSection,
    columns: Mapping[str, Sequence[Any]] | None = None,
    *,
    series: bool = True,
) -> Path:
    """Write participants' images as a temporary BIDS data set.

    Parameters
    ----------
    folder : Path
        Empty, or a new one.
    imgs : path, or sequence of a participant each
        A path is that of a BIDS data set and is returned unchanged.
    data : DataSection
        The study's: its task and space, which become parts of the files' names.
    columns : mapping of str to sequence, optional
        Columns of the participants, in the images' order, for ``participants.tsv``.
    series : bool
        Whether images are 4-D series, or one 3-D image per participant.

    Raises
    ------
    DataError
        If participants are missing, an image appears twice, a file is missing, or a column has
        another length.
    """
    if isinstance(imgs, str | Path):
        return Path(imgs)
    people = [[*p] if isinstance(p, list | tuple) else [p] for p in imgs]
    _check_once([run for runs in people for run in runs])
    labels = [f"{number:05d}" for number in range(1, len(people) + 1)]
    start_derivatives(folder, "Images of one data set", labels, as_text(columns or {}, len(people)))
    for label, runs in zip(labels, people, strict=True):
        if not series and len(runs) > 1:
            raise DataError(
                f"Each participant must have one image, and participant {int(label)} has "
                f"{len(runs)}. Give one."
            )
        func = folder / f"sub-{label}" / "func"
        func.mkdir(parents=True)
        for number, run in enumerate(runs, start=1):
            if is_surface(run):
                _put_sides(run, func, f"sub-{label}_task-{data.task}_run-{number}", data)
                continue
            end = "desc-preproc_bold" if series else MAP
            name = f"sub-{label}_task-{data.task}_run-{number}_space-{data.space}_{end}"
            _put(run, func / name)
    return folder


def is_surface(given: object) -> TypeGuard[SurfaceImage]:
    """Return whether an image that a notebook passes is one of nilearn's on the cortex."""
    return hasattr(given, "mesh") and hasattr(given, "data")


def _put_sides(given: SurfaceImage, func: Path, stem: str, data: DataSection) -> None:
    """Write a series on the cortex as GIFTI of each hemisphere."""
    if data.mesh is None:
        raise DataError(
            "An image is on the cortex. Name its public mesh, as data={'mesh': 'fsaverage5'}."
        )
    kind = MESHES[data.mesh]
    for side, half in SIDE_NAMES.items():
        values = np.asarray(given.data.parts[half], dtype=np.float32)
        volumes = values.reshape(len(values), -1).T
        # Packing takes longer than all else, and the folder is gone in a moment.
        arrays = [GiftiDataArray(volume, encoding="GIFTI_ENCODING_B64BIN") for volume in volumes]
        name = f"{stem}_hemi-{side}_space-{kind.space}_den-{kind.density}_bold.func.gii"
        nib.save(GiftiImage(darrays=arrays), func / name)


def copy_surfaces(folder: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a mesh's public files next to a study; returns the section with their new names."""
    found = dict(data)
    for field in ("surfaces", "cortex"):
        if found.get(field):
            pairs = zip(SIDE_NAMES, found[field], strict=True)
            made = [(Path(given), folder / f"{side}.{field}.gii") for side, given in pairs]
            found[field] = [Path(shutil.copyfile(*pair)).name for pair in made]
    return found


def copy_beside(folder: Path, given: Img, name: str) -> str:
    """Copy a public image next to a study and return its file's name.

    Raises
    ------
    DataError
        If it is not a NIfTI image.
    """
    path = _put(given, folder / name)
    if path.is_symlink():
        source = path.resolve()
        path.unlink()
        shutil.copyfile(source, path)
    return path.name


def _check_once(runs: Sequence[Img]) -> None:
    """Refuse an image that appears twice: its participant would count, and lose, twice."""
    if not runs:
        raise DataError("The sequence of images is empty. Give one entry for each participant.")
    seen = [str(Path(r).resolve()) if isinstance(r, str | Path) else id(r) for r in runs]
    for number, each in enumerate(seen, start=1):
        if each in seen[: number - 1]:
            raise DataError(
                f"Image {number} appears twice, and a participant who counts as two has half the "
                "protection. Give each participant one entry, as a list if there are several "
                "runs."
            )


def _put(given: Img, stem: Path) -> Path:
    """Link a file, or write an image."""
    if isinstance(given, nib.Nifti1Image):
        path = stem.with_name(f"{stem.name}.nii")
        nib.save(given, path)
        return path
    if not isinstance(given, str | Path):
        raise DataError(
            "An image must be the path of a NIfTI file or a nibabel.Nifti1Image, got a "
            f"{type(given).__name__}."
        )
    source = Path(given).resolve()
    ending = next((end for end in _ENDINGS if source.name.endswith(end)), "")
    if not ending or not source.is_file():
        raise DataError(f"{given} must be a .nii or .nii.gz file, and it is not. Correct the list.")
    path = stem.with_name(f"{stem.name}{ending}")
    path.symlink_to(source)
    sidecar = source.with_name(f"{source.name.removesuffix(ending)}.json")
    if sidecar.is_file():
        stem.with_name(f"{stem.name}.json").symlink_to(sidecar)
    return path


def as_text(columns: Mapping[str, Sequence[Any]], participants: int) -> dict[str, list[str]]:
    """Return cells of a temporary table of participants, with every digit of a number.

    Raises
    ------
    DataError
        If a column has another length, or a cell that is not plain text.
    """
    found = {name: [str(value) for value in columns[name]] for name in columns}
    for name, values in found.items():
        if len(values) != participants:
            raise DataError(
                f"Column '{name}' must have one value for each of {participants} participants, "
                f"got {len(values)}. Correct it."
            )
        if any(not value.isprintable() for value in values):
            raise DataError(
                f"Column '{name}' must have only printable characters. Correct its cells."
            )
    return found


@dataclass(frozen=True, eq=False)
class ParticipantTable:
    """Columns of participants that a notebook passes, with their rows.

    Parameters
    ----------
    names : tuple of str
        Names of the columns, which become public.
    values : array, shape (participants, columns)
    limits : (float, float)
        Public limits of every column, to which values beyond them are moved.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    limits: tuple[float, float]

    def view(self, name: str) -> dict[str, Any]:
        """Return the view of a study with these numbers."""
        low, high = self.limits
        columns = {column: {"low": low, "high": high} for column in self.names}
        return {"name": name, "source": "table", "columns": columns}

    @property
    def columns(self) -> dict[str, list[float]]:
        """Columns by name."""
        return dict(zip(self.names, self.values.T.tolist(), strict=True))


def is_array(given: object) -> bool:
    """Return whether a notebook passes numbers, one row a participant: an array or a DataFrame."""
    if isinstance(given, np.ndarray):
        return given.ndim <= 2
    kinds = ("iloc", "toarray", "__array__")  # of pandas, of scipy's sparse matrices, of others
    return not hasattr(given, "dataobj") and any(hasattr(given, kind) for kind in kinds)


def is_table(given: object) -> TypeGuard[Mapping[str, Sequence[Any]]]:
    """Return whether a notebook passes columns by name: a mapping, or a DataFrame."""
    return isinstance(given, Mapping) or hasattr(given, "columns")


def participant_table(
    given: Any, limits: tuple[float, float] | None, front: str, *, checked: NDArray[Any]
) -> ParticipantTable:
    """Make a temporary table of participants from an array or a DataFrame.

    Parameters
    ----------
    given : array or DataFrame
    limits : (float, float), optional
    front : str
        Prefix of columns without a name, before their number from 1.
    checked : array, shape (participants, columns)
        The same as finite numbers.

    Raises
    ------
    StudyError
        If limits are missing.
    """
    if limits is None:
        raise StudyError(
            "limits: an array's columns need public limits. Give the least and the largest value "
            "that count, as limits=(-3, 3)."
        )
    numbered = (f"{front}{number}" for number in range(1, checked.shape[1] + 1))
    names = map(str, given.columns) if hasattr(given, "columns") else numbered
    return ParticipantTable(tuple(names), checked, (float(limits[0]), float(limits[1])))


def write_participants(
    folder: Path, columns: Mapping[str, Sequence[Any]], participants: int
) -> Path:
    """Write a temporary data set that has a table of participants and no images.

    Raises
    ------
    DataError
        As `as_text`.
    """
    labels = [f"{number:05d}" for number in range(1, participants + 1)]
    start_derivatives(
        folder, "Participants of one data set", labels, as_text(columns, participants)
    )
    return folder
