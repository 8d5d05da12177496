"""Smoothing what was released already: less noise in a map for no privacy at all.

Noise is independent from voxel to voxel and a network is not. Only voxels of the mask count, so
that the brain's edge is not dimmed, and the noise that is left is known exactly in every voxel.
"""

from typing import Any

import numpy as np
from nibabel.affines import voxel_sizes
from numpy.typing import NDArray
from scipy import ndimage

from consortium.space.grid import Grid
from consortium.space.mesh import Mesh

Floats = NDArray[np.float64]

FWHM_PER_SIGMA = float(np.sqrt(8.0 * np.log(2.0)))
REACH = 3.0
"""Kernels are cut at so many standard deviations."""


def smooth_maps(
    values: NDArray[np.floating[Any]], deviation: float, grid: Grid | Mesh, fwhm: float
) -> tuple[Floats, Floats]:
    """Smooth maps over their voxels by a normalised Gaussian.

    Parameters
    ----------
    values : array, shape (V, R)
    deviation : float
        Standard deviation of the independent noise in every entry.
    grid : Grid or Mesh
        The V voxels; along a mesh nothing is smoothed, and no study asks for it.
    fwhm : float
        Full width of the kernel at half its maximum in mm; 0 for none.

    Returns
    -------
    values : array, shape (V, R)
    deviations : array, shape (V,)
        Of the noise that is left.
    """
    if not fwhm or isinstance(grid, Mesh):
        return np.asarray(values, dtype=np.float64), np.full(len(values), deviation)
    kernels = [_kernel(fwhm / FWHM_PER_SIGMA / edge) for edge in voxel_sizes(grid.affine)]
    inside = grid.mask.astype(np.float64)
    weight = _correlate(inside, kernels)[grid.mask]
    squared = _correlate(inside, [kernel**2 for kernel in kernels])[grid.mask]
    smooth = np.empty(values.shape)
    for column, each in enumerate(values.T):
        volume = np.zeros(grid.shape)
        volume[grid.mask] = each
        smooth[:, column] = _correlate(volume, kernels)[grid.mask] / weight
    return smooth, deviation * np.sqrt(squared) / weight


def _kernel(sigma: float) -> Floats:
    """Gaussian at whole voxels."""
    steps = np.arange(-int(np.ceil(REACH * sigma)), int(np.ceil(REACH * sigma)) + 1)
    return np.asarray(np.exp(-0.5 * (steps / sigma) ** 2))


def _correlate(volume: Floats, kernels: list[Floats]) -> Floats:
    """Correlate with a product of one kernel along each axis; zero outside."""
    for axis, kernel in enumerate(kernels):
        volume = ndimage.correlate1d(volume, kernel, axis=axis, mode="constant")
    return volume
