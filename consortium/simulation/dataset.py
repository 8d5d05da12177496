"""Writing BIDS derivatives: preprocessed runs with their confounds, as fMRIPrep leaves them.

Real scans of public packages are distributed to sites as if each time segment were a participant.
The packages contain a few short series of one or two people. Their time segments are
*pseudo-subjects*: enough to run every command on real scanner data, but not a consortium. A
guarantee for unit 'subject' is then one for a time segment.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError, OutputError
from consortium.space.nifti import UNREADABLE

BIDS_VERSION = "1.10.0"
SLOPE = 0.5
"""Scanner units per stored integer; the largest value of int16 is then 16383."""
_LEVEL = 1  # ISA-L's fastest that looks for repetitions
SERIES = {
    "nibabel": ("tests/data/functional.nii",),
    "nitime": ("data/fmri1.nii.gz", "data/fmri2.nii.gz"),
}
"""Packages that carry 4-D images, and where; all under permissive licences."""
SPACE = "scanner"
BRAIN = 0.2
"""A voxel whose mean is above this part of the largest mean is taken for brain."""


@dataclass(frozen=True)
class MadeUpRun:
    """Names of a simulated run in its BIDS data set."""

    subject: str
    task: str
    space: str
    """BIDS labels without their keys: letters and digits."""
    repetition_time: float
    """Seconds from volume to volume."""


def start_derivatives(
    folder: Path,
    name: str,
    subjects: Sequence[str],
    columns: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Make a BIDS derivatives data set without runs.

    Raises OutputError if the folder is not empty, since it may have another data set's subjects.

    Parameters
    ----------
    folder : Path
        Made if it is missing; must be empty.
    name : str
        Title of the data set.
    subjects : sequence of str
        Labels without ``sub-``.
    columns : mapping of str to sequence of str, optional
        Further columns of ``participants.tsv``, in the subjects' order.
    """
    require_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "Name": name,
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "cape-consortium"}],
    }
    write_indented(folder / "dataset_description.json", description)
    table = {"participant_id": [f"sub-{subject}" for subject in subjects], **(columns or {})}
    lines = ["\t".join(row) for row in [tuple(table), *zip(*table.values(), strict=True)]]
    (folder / "participants.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def require_empty(folder: Path) -> None:
    """Refuse a folder for simulated data that is not empty; raises OutputError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} is not an empty folder. Remove it or choose another.")


def write_run(
    folder: Path,
    run: MadeUpRun,
    image: nib.Nifti1Image,
    confounds: Mapping[str, NDArray[Any]] | None = None,
) -> Path:
    """Write one simulated run into a data set.

    Parameters
    ----------
    folder : Path
        The data set.
    image : nibabel.Nifti1Image
        4-D, in the space of ``run``.
    confounds : mapping of str to array of shape (T,), optional
        Columns of the confounds table; NaN is written n/a.

    Returns
    -------
    Path
        The image.
    """
    func = folder / f"sub-{run.subject}" / "func"
    func.mkdir(parents=True, exist_ok=True)
    stem = f"sub-{run.subject}_task-{run.task}"
    bold = func / f"{stem}_space-{run.space}_desc-preproc_bold.nii.gz"
    save_packed(image, bold)
    sidecar = {"TaskName": run.task, "RepetitionTime": run.repetition_time, "SkullStripped": False}
    write_indented(bold.with_name(bold.name.removesuffix(".nii.gz") + ".json"), sidecar)
    if confounds:
        write_table(func / f"{stem}_desc-confounds_timeseries.tsv", confounds)
    return bold


def save_packed(image: nib.Nifti1Image, path: Path) -> None:
    """Write a ``.nii.gz``, by ISA-L where the package isal is installed: five times faster."""
    try:
        from isal.igzip import IGzipFile
    except ImportError:
        nib.save(image, path)
        return
    with path.open("wb") as file, IGzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
        image.to_stream(packed)


def stored_image(
    values: NDArray[np.float32],
    mask: NDArray[np.bool_],
    affine: NDArray[np.float64],
    repetition_time: float,
) -> nib.Nifti1Image:
    """Pack a D x T block as 16-bit integers on its grid, zero outside the mask.

    Integers of `SLOPE` units compress several times better than float32.
    """
    # A NIfTI file has one volume after the other, which is Fortran order.
    volume = np.zeros((*mask.shape, values.shape[1]), dtype=np.int16, order="F")
    volume[mask] = np.clip(np.rint(values / SLOPE), -32768, 32767).astype(np.int16)
    image = nib.Nifti1Image(volume, affine)
    image.header.set_slope_inter(SLOPE, 0)
    image.header.set_xyzt_units("mm", "sec")
    image.header.set_zooms((*image.header.get_zooms()[:3], repetition_time))
    image.set_sform(affine, code=4)
    image.set_qform(affine, code=4)
    return image


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write a TSV file of a simulated data set with a header line."""
    rows = zip(*columns.values(), strict=True)
    lines = ("\t".join("n/a" if np.isnan(x) else f"{x:.8g}" for x in row) for row in rows)
    path.write_text("\n".join(["\t".join(columns), *lines]) + "\n", encoding="utf-8")


def write_indented(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON of a simulated data set that people can read."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class RealData:
    """Folders of a data set that is written from given scans."""

    sites: dict[str, Path]
    """Each site's BIDS data set; its images are in ``space-scanner``."""
    mask: Path
    """A mask on the images' own grid, for the study's ``data.mask``."""


def known_series() -> dict[str, tuple[Path, ...]]:
    """List the images of those packages in `SERIES` that are installed, for simulated sites."""
    found = {}
    for package, names in SERIES.items():
        spec = find_spec(package)
        homes = (spec.submodule_search_locations or []) if spec else []
        paths = tuple(Path(home) / name for home in homes for name in names)
        if paths and all(path.is_file() for path in paths):
            found[package] = paths
    return found


def split_over_sites(
    folder: Path, images: Sequence[Path], *, sites: Sequence[str], pieces: int, task: str = "rest"
) -> RealData:
    """Distribute pieces of real series to simulated sites, in turn.

    Raises DataError if an image is not 4-D, is on another grid than the first, or is too short for
    the number of pieces, or if there are fewer pieces than sites. Raises OutputError if a site's
    folder has files already.

    Parameters
    ----------
    folder : Path
        Gets ``<site>/bids`` per site and ``mask.nii.gz``.
    images : sequence of Path
        4-D NIfTI series on one grid.
    sites : sequence of str
        Names.
    pieces : int
        Pseudo-subjects per series, as equal as can be; at least two volumes each.
    task : str
        BIDS label.

    Returns
    -------
    RealData
    """
    series = [_read(path) for path in images]
    if pieces * len(series) < len(sites):
        msg = f"{len(series)} series in {pieces} pieces don't serve {len(sites)} sites. "
        raise DataError(msg + "Cut into more pieces.")
    _require_one_grid(images, series)
    dealt = [piece for image in series for piece in _cut(image, pieces)]
    made = RealData({site: folder / site / "bids" for site in sites}, folder / "mask.nii.gz")
    for bids in made.sites.values():
        require_empty(bids)
    for number, (site, bids) in enumerate(made.sites.items()):
        own = {f"{index + 1:03d}": piece for index, piece in enumerate(dealt[number :: len(sites)])}
        start_derivatives(bids, f"Stretches of real scans, pseudo-subjects of {site}", tuple(own))
        for label, piece in own.items():
            write_run(
                bids, MadeUpRun(label, task, SPACE, float(piece.header.get_zooms()[3])), piece
            )
    nib.save(_brain(series), made.mask)
    return made


def _read(path: Path) -> nib.Nifti1Image:
    try:
        image = nib.load(path)
    except UNREADABLE as error:
        raise DataError(
            f"{path} can't be read as NIfTI. Check that it exists and is complete."
        ) from error
    if len(image.shape) != 4:
        raise DataError(f"{path} has {len(image.shape)} axes. Give a 4-D series of volumes.")
    return image


def _require_one_grid(paths: Sequence[Path], series: Sequence[nib.Nifti1Image]) -> None:
    first = series[0]
    for path, image in zip(paths, series, strict=True):
        if image.shape[:3] != first.shape[:3] or not np.allclose(image.affine, first.affine):
            raise DataError(f"{path} is on another grid than {paths[0]}. Split it on its own.")


def _cut(image: nib.Nifti1Image, pieces: int) -> list[nib.Nifti1Image]:
    volumes = image.shape[3]
    if volumes < 2 * pieces:
        msg = f"{volumes} volumes don't make {pieces} pieces of two or more; cut into fewer."
        raise DataError(msg)
    edges = np.linspace(0, volumes, pieces + 1).astype(int)
    # As float32: integers would be scaled again for each piece, and so rounded differently.
    values = [np.asarray(image.dataobj[..., i:j], dtype=np.float32) for i, j in pairwise(edges)]
    header = image.header.copy()
    header.set_data_dtype(np.float32)
    return [nib.Nifti1Image(piece, image.affine, header) for piece in values]


def _brain(series: Sequence[nib.Nifti1Image]) -> nib.Nifti1Image:
    """Mark the bright voxels of the mean of all volumes."""
    means: list[NDArray[np.float64]] = [np.asarray(image.dataobj).mean(axis=3) for image in series]
    mean = np.mean(means, axis=0)
    return nib.Nifti1Image((mean > BRAIN * mean.max()).astype(np.uint8), series[0].affine)
