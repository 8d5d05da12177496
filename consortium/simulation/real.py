"""Real scans out of public packages, dealt to sites as if each stretch of time were a person.

The packages carry a few short series of one or two people. Cut in time, they become
*pseudo-subjects*: enough to run every command on true scanner data, but no consortium, and a
guarantee for unit 'subject' is then one for a stretch of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.simulation.dataset import MadeUpRun, require_empty, start_derivatives, write_run
from consortium.space.nifti import UNREADABLE

SERIES = {
    "nibabel": ("tests/data/functional.nii",),
    "nitime": ("data/fmri1.nii.gz", "data/fmri2.nii.gz"),
}
"""Packages that carry 4-D images, and where; all under permissive licences."""
SPACE = "scanner"
BRAIN = 0.2
"""A voxel whose mean is above this part of the largest mean is taken for brain."""


@dataclass(frozen=True)
class RealData:
    """Where everything is."""

    sites: dict[str, Path]
    """Each site's BIDS data set; its images are in ``space-scanner``."""
    mask: Path
    """A mask on the images' own grid, for the study's ``data.mask``."""


def known_series() -> dict[str, tuple[Path, ...]]:
    """List the images of those packages in `SERIES` that are installed."""
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
    """Cut series in time and deal the pieces to sites, in turn.

    Raises DataError if an image is not 4-D, lies on another grid than the first, or is too short
    for so many pieces, or if there are fewer pieces than sites. Raises OutputError if a site's
    folder holds files already.

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
        msg = f"{len(series)} series in {pieces} pieces don't serve {len(sites)} sites; "
        raise DataError(msg + "cut into more pieces.")
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
        raise DataError(f"{path} can't be read as NIfTI; check that it is there, whole.") from error
    if len(image.shape) != 4:
        raise DataError(f"{path} has {len(image.shape)} axes; give a 4-D series of volumes.")
    return image


def _require_one_grid(paths: Sequence[Path], series: Sequence[nib.Nifti1Image]) -> None:
    first = series[0]
    for path, image in zip(paths, series, strict=True):
        if image.shape[:3] != first.shape[:3] or not np.allclose(image.affine, first.affine):
            raise DataError(f"{path} lies on another grid than {paths[0]}; split it on its own.")


def _cut(image: nib.Nifti1Image, pieces: int) -> list[nib.Nifti1Image]:
    volumes = image.shape[3]
    if volumes < 2 * pieces:
        msg = f"{volumes} volumes don't make {pieces} pieces of two or more; cut into fewer."
        raise DataError(msg)
    edges = np.linspace(0, volumes, pieces + 1).astype(int)
    # As float32: integers would be scaled anew for each piece, and so rounded differently.
    values = [np.asarray(image.dataobj[..., i:j], dtype=np.float32) for i, j in pairwise(edges)]
    header = image.header.copy()
    header.set_data_dtype(np.float32)
    return [nib.Nifti1Image(piece, image.affine, header) for piece in values]


def _brain(series: Sequence[nib.Nifti1Image]) -> nib.Nifti1Image:
    """Mark the bright voxels of the mean of all volumes."""
    means: list[NDArray[np.float64]] = [np.asarray(image.dataobj).mean(axis=3) for image in series]
    mean = np.mean(means, axis=0)
    return nib.Nifti1Image((mean > BRAIN * mean.max()).astype(np.uint8), series[0].affine)
