"""An image's values at the study's voxels, smoothed and sampled by one linear operator.

Smoothing a released map reduces its noise without any privacy loss: noise is independent from voxel
to voxel and a network is not. Only voxels of the mask count. So the brain's edge is not dimmed, and
the remaining noise is known exactly in every voxel.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from nibabel.affines import apply_affine, voxel_sizes
from numpy.typing import NDArray
from scipy import ndimage

from consortium.space.grid import Grid
from consortium.space.mesh import Mesh

Floats = NDArray[np.float64]
Resampler = Callable[[NDArray[Any]], NDArray[Any]]
"""From a volume (I x J x K) to the D voxels of a grid's mask."""

_ORDER = 3
_NOTHING = 1e-3
"""Standard deviation in voxels of a Gaussian whose weight of a neighbour is 0 in floating point."""
_NEGLIGIBLE = 1e-12
"""Weight, relative to the largest of an axis, that is taken as zero."""
_ALIGNED = 1e-6
"""Voxels by which an image's axes may turn away from the grid's over its whole length."""
Places = NDArray[np.float64]
FWHM_PER_SIGMA = float(np.sqrt(8.0 * np.log(2.0)))
REACH = 3.0
"""Standard deviations at which kernels are cut."""


def resampler(affine: Floats, shape: tuple[int, ...], grid: Grid, sigma: NDArray[Any]) -> Resampler:
    """Make what smooths an image by a Gaussian and interpolates it by cubic splines.

    Where the axes of image and grid are parallel, as in template spaces, both are products of one
    small matrix for each axis, which is as exact and many times faster. A volume in the order and
    the precision of its file (Fortran, float32) is not copied, and computed in its precision.

    Parameters
    ----------
    affine : array, shape (4, 4)
        The image's, which can be inverted.
    shape : tuple of int
        (I, J, K) of the image.
    sigma : array, shape (3,)
        Standard deviation of the Gaussian in the image's voxels; all zero for none.
    """
    axes = _axes(affine, shape, grid, sigma)
    if axes is None:
        return _general(voxel_places(affine, grid), np.where(sigma < _NOTHING, 0.0, sigma))
    kept = np.ravel_multi_index(np.nonzero(grid.mask), grid.shape, order="F")

    def along_axes(volume: NDArray[Any]) -> NDArray[Any]:
        precision = np.result_type(volume.dtype, np.float32)
        first, second, third = (axis.astype(precision) for axis in axes)
        stored = np.ascontiguousarray(volume.T, dtype=precision)  # K x J x I, as files have it
        box = third @ stored.reshape(len(stored), -1)
        box = second @ box.reshape(-1, *stored.shape[1:])
        return np.asarray((box.reshape(-1, stored.shape[2]) @ first.T).ravel()[kept])

    return along_axes


def common_voxels(
    affine: Floats, shape: tuple[int, ...], grid: Grid, sigma: NDArray[Any]
) -> NDArray[np.intp] | None:
    """Return where an image has the voxels of a grid's mask, if `resampler` would only copy them.

    So it is for images whose voxels are the grid's, shifted or flipped by whole voxels, as those
    of other templates are. In float32 each value has then a weight of 1 and no other weight.

    Parameters
    ----------
    affine, shape, grid, sigma
        As for `resampler`.

    Returns
    -------
    array of int, shape (D,), or None
        Places in the image as it is stored (Fortran order), in the order of the mask's voxels.
    """
    axes = _axes(affine, shape, grid, sigma)
    if axes is None:
        return None
    own = []
    for axis, used in zip(axes, np.nonzero(grid.mask), strict=True):
        weights = axis.astype(np.float32)
        needed = weights[np.unique(used)]
        if not ((needed == 1).sum(axis=1) == 1).all() or np.count_nonzero(needed) != len(needed):
            return None
        own.append(weights.argmax(axis=1)[used])
    return np.asarray(np.ravel_multi_index(tuple(own), tuple(shape[:3]), order="F"))


def _axes(
    affine: Floats, shape: tuple[int, ...], grid: Grid, sigma: NDArray[Any]
) -> list[Floats] | None:
    """Return the weights along each axis, or None where image and grid are not parallel."""
    to_image = np.linalg.inv(affine) @ grid.affine
    turned = np.abs(to_image[:3, :3] - np.diag(np.diag(to_image))[:3, :3]) * max(grid.shape)
    if (turned > _ALIGNED).any():
        return None
    widths = np.where(sigma < _NOTHING, 0.0, sigma)
    return [
        _axis(int(shape[k]), grid.shape[k], to_image[k, k], to_image[k, 3], float(widths[k]))
        for k in range(3)
    ]


def _general(places: Floats, sigma: NDArray[Any]) -> Resampler:
    def anywhere(volume: NDArray[Any]) -> NDArray[Any]:
        smooth = ndimage.gaussian_filter(volume, sigma) if sigma.any() else volume
        return sample(smooth, places, order=_ORDER)

    return anywhere


@lru_cache(maxsize=64)  # most images of a data set have one grid
def _axis(length: int, count: int, step: float, start: float, sigma: float) -> Floats:
    """Return weights of the voxels of one axis at the grid's places along it: (count, length)."""
    basis = np.eye(length)
    if sigma:
        basis = ndimage.gaussian_filter1d(basis, sigma, axis=0)
    places = np.round(start + step * np.arange(count), 9)[None]  # the last voxel is inside
    columns = [
        ndimage.map_coordinates(column, places, order=_ORDER, mode="constant") for column in basis.T
    ]
    weights = np.stack(columns, axis=1)
    # Products with numbers near the smallest of float32 take ten times as long.
    return np.where(np.abs(weights) > _NEGLIGIBLE * np.abs(weights).max(initial=0.0), weights, 0.0)


def voxel_places(affine: NDArray[np.float64], grid: Grid) -> Places:
    """Return the centres of the study's voxels in an image's own indices.

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
    """Return the fraction of a study's places that are inside an image of this shape (I, J, K)."""
    last = np.array(shape[:3])[:, None] - 0.5
    return float(((places >= -0.5) & (places <= last)).all(axis=0).mean())


def lies_in(grid: Grid, affine: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which voxels of an image of this affine and shape are in the mask: (I, J, K)."""
    to_grid = np.linalg.inv(grid.affine) @ affine
    voxels = np.indices(shape[:3], dtype=np.float32).reshape(3, -1)
    places = to_grid[:3, :3] @ voxels + to_grid[:3, 3:]
    inside = sample(grid.mask.astype(np.uint8), np.asarray(places), order=0)
    return inside.reshape(shape[:3]).astype(bool)


def sample(volume: NDArray[Any], places: Places, order: int) -> NDArray[Any]:
    """Return values of a volume at the places, by splines of an order; zero outside it.

    Parameters
    ----------
    volume : array, shape (I, J, K)
    places : array, shape (3, D)
        From `voxel_places`.
    order : int
        0 for the nearest voxel, 1 for linear, 3 for cubic interpolation, which nilearn does.
    """
    return np.asarray(ndimage.map_coordinates(volume, places, order=order, mode="constant"))


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
    """Return a Gaussian at whole voxels."""
    steps = np.arange(-int(np.ceil(REACH * sigma)), int(np.ceil(REACH * sigma)) + 1)
    return np.asarray(np.exp(-0.5 * (steps / sigma) ** 2))


def _correlate(volume: Floats, kernels: list[Floats]) -> Floats:
    """Correlate with a product of one kernel along each axis; zero outside."""
    for axis, kernel in enumerate(kernels):
        volume = ndimage.correlate1d(volume, kernel, axis=axis, mode="constant")
    return volume
