"""An image's values at the study's voxels."""

from typing import Any

import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray
from scipy import ndimage

from consortium.space.grid import Grid

Places = NDArray[np.float64]


def voxel_places(affine: NDArray[np.float64], grid: Grid) -> Places:
    """Where the centres of the study's voxels lie in an image, in its own indices.

    Parameters
    ----------
    affine : array, shape (4, 4)
        The image's, which can be inverted.

    Returns
    -------
    array, shape (3, D)
    """
    return np.asarray(apply_affine(np.linalg.inv(affine), grid.coordinates).T)


def share_inside(places: Places, shape: tuple[int, ...]) -> float:
    """Part of the places that lie in an image of this shape (I, J, K)."""
    last = np.array(shape[:3])[:, None] - 0.5
    return float(((places >= -0.5) & (places <= last)).all(axis=0).mean())


def lies_in(grid: Grid, affine: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which voxels of an image of this affine and shape lie in the grid's mask: (I, J, K)."""
    to_grid = np.linalg.inv(grid.affine) @ affine
    voxels = np.indices(shape[:3], dtype=np.float32).reshape(3, -1)
    places = to_grid[:3, :3] @ voxels + to_grid[:3, 3:]
    inside = sample(grid.mask.astype(np.uint8), np.asarray(places), order=0)
    return inside.reshape(shape[:3]).astype(bool)


def sample(volume: NDArray[Any], places: Places, order: int) -> NDArray[Any]:
    """Values of a volume at the places, by splines of an order; zero outside it.

    Parameters
    ----------
    volume : array, shape (I, J, K)
    places : array, shape (3, D)
        From `voxel_places`.
    order : int
        0 for the nearest voxel, 1 for linear, 3 for cubic interpolation, which nilearn does.
    """
    return np.asarray(ndimage.map_coordinates(volume, places, order=order, mode="constant"))
