"""An atlas that can be made anywhere: the brain cut into cubes."""

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.space.grid import Grid

LEAST = 0.2
"""A cube with less than this part of its voxels in the brain is joined to no region."""


def cube_labels(grid: Grid, edge: float) -> NDArray[np.int16]:
    """Label the mask's voxels by the cube that contains their centre.

    Parameters
    ----------
    grid : Grid
    edge : float
        Edge of a cube, in mm.

    Returns
    -------
    array, shape of the grid
        1, 2, ... in the brain; 0 outside and in cubes that only touch it.
    """
    cubes = np.floor(grid.coordinates / edge).astype(int)
    _, number, count = np.unique(cubes, axis=0, return_inverse=True, return_counts=True)
    kept = count >= LEAST * count.max()
    labels = np.where(kept, np.cumsum(kept), 0)
    volume = np.zeros(grid.shape, dtype=np.int16)
    volume[grid.mask] = labels[number.ravel()]
    return volume


def cube_atlas(grid: Grid, edge: float) -> nib.Nifti1Image:
    """Return `cube_labels` as an image in the grid's space."""
    return nib.Nifti1Image(cube_labels(grid, edge), grid.affine)
