"""Regions of an atlas as a study's features: a public linear map from voxels to regions."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consortium.errors import DataError
from consortium.space.grid import Grid, is_invertible
from consortium.space.nifti import UNREADABLE, is_kept, load_nifti
from consortium.space.sampling import sample, voxel_places


@dataclass(frozen=True, eq=False)
class Regions:
    """Weights of V voxels in D regions."""

    weights: Any
    """Not negative; every row adds up to one."""
    names: tuple[str, ...] = ()
    """Of the regions, if files are told apart by them."""

    @property
    def features(self) -> int:
        """D, number of regions."""
        return int(self.weights.shape[0])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights, in float32, and of names if there are any."""
        content = hashlib.sha256(repr(self.weights.shape).encode())
        for part in (self.weights.indptr, self.weights.indices):
            content.update(part.astype("<i8").tobytes())
        content.update(self.weights.data.astype("<f4").tobytes())
        content.update("\n".join(self.names).encode())
        return content.hexdigest()

    def average(self, series: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mean courses of the regions: T x V to T x D."""
        return np.asarray((self.weights.astype(np.float32) @ series.T).T)

    def paint(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Give every voxel the value of its region: D x K to V x K.

        A voxel in several regions gets their mean by weight; one in none is zero.
        """
        total = np.asarray(self.weights.sum(axis=0)).ravel()
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        return np.asarray((self.weights.T @ values) * inverse[:, None])


def read_maps(path: Path, grid: Grid) -> NDArray[np.float32]:
    """Read maps of a 4-D (or 3-D) NIfTI at the voxels of a grid, resampled linearly.

    Raises DataError if the file can't be used.

    Returns
    -------
    array of float32, shape (V, K)
    """
    image, values = read_image(path, "file of maps")
    return sample_maps(values[..., None] if values.ndim == 3 else values, image, grid).T


def read_regions(path: Path, grid: Grid) -> Regions:
    """Read an atlas: a 3-D image of whole numbers (labels), or 4-D with a map for each region.

    An atlas on another grid is resampled: labels to the nearest voxel, maps linearly. Raises
    DataError if the file can't be used, or a region has no voxel in the study's mask.

    Parameters
    ----------
    grid : Grid
        The study's voxels.

    Returns
    -------
    Regions
        In the order of the labels (0 is outside), or of the maps; negative weights count as zero.
    """
    image, values = read_image(path, "atlas")
    if values.ndim == 3:
        rows = _labels(values, image, grid, path)
    else:
        rows = sparse.csr_array(
            np.maximum(sample_maps(values, image, grid).astype(np.float64), 0.0)
        )
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if not len(sums) or not (sums > 0).all():
        number = int(np.argmin(sums)) + 1 if len(sums) else 0
        msg = f"Region {number} of the atlas {path} has no voxel in the study's mask; remove it"
        raise DataError(f"{msg}, or refine the grid.")
    return Regions(sparse.csr_array(sparse.diags_array(1.0 / sums) @ rows))


def read_image(
    path: Path, what: str, *, at_home: bool = False
) -> tuple[nib.Nifti1Image, NDArray[np.float32]]:
    """Read a 3-D or 4-D image of finite numbers, and its values.

    Raises DataError if it is none, or must not leave the hospital where it was made.

    Parameters
    ----------
    what : str
        Its name in messages.
    at_home : bool
        Whether nothing of it leaves the hospital, so that it may be one that is kept there.
    """
    try:
        image = load_nifti(path)
        values = np.asarray(image.dataobj, dtype=np.float32)
    except UNREADABLE as error:
        raise DataError(f"The {what} {path} can't be read; give a whole NIfTI file.") from error
    if is_kept(image) and not at_home:
        raise DataError(
            f"The {what} {path} is made of a hospital's own participants without noise and must "
            "not leave it; take maps that a study released."
        )
    if values.ndim not in (3, 4) or not np.isfinite(values).all():
        raise DataError(f"The {what} {path} is no 3-D or 4-D image of finite numbers; correct it.")
    if not is_invertible(image.affine):
        raise DataError(f"The {what} {path} has a singular affine; repair its sform and qform.")
    return image, values


def _labels(values: NDArray[np.float32], image: nib.Nifti1Image, grid: Grid, path: Path) -> Any:
    """One row of ones for each label of the whole atlas, in the labels' order."""
    labels = np.unique(values)
    if not np.array_equal(labels, np.rint(labels)):
        raise DataError(f"The atlas {path} holds fractions; give labels, or a map for each region.")
    labels = labels[labels != 0]
    found = sample(values, voxel_places(image.affine, grid), order=0)
    voxels = np.flatnonzero(found)
    rows = np.searchsorted(labels, found[voxels])
    ones = np.ones(len(voxels))
    return sparse.csr_array((ones, (rows, voxels)), shape=(len(labels), grid.features))


def sample_maps(
    values: NDArray[np.float32], image: nib.Nifti1Image, grid: Grid
) -> NDArray[np.float32]:
    """Values of I x J x K x R maps at the voxels of a grid, linearly: R x V."""
    places = voxel_places(image.affine, grid)
    sampled = [sample(values[..., k], places, order=1) for k in range(values.shape[3])]
    return np.array(sampled, dtype=np.float32)
