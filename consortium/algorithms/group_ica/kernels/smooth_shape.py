"""Anisotropy and left-right symmetry of smooth participants, estimated from a released matrix.

Scans may be smoother along one axis than along another, and both hemispheres may vary together.
The mean projector of participants with such a covariance and no network has, up to the edges of
the brain, entries that depend on the displacement between two places, and on the displacement
between one place and the mirror image of the other. Both parts have ellipsoids as level sets, of
the same shape as those of the covariance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from consortium.base.array import Array

MIRROR = np.array([-1.0, 1.0, 1.0])
"""Image of a place of the MNI152 space in the other hemisphere."""
_NEAR = 50.0  # mm: pairs of places further apart say nothing of a shape
_MOST_PAIRS = 40_000
_START = 15.0  # mm
_MOST_RATIO = 5.0  # of the longest axis over the shortest
_MOST_STEPS = 30
_LOWER = np.tril_indices(3)


@dataclass(frozen=True, eq=False)
class SmoothShape:
    """Shape of a covariance that depends only on displacements."""

    root: Array
    """Shape (3, 3). ``|root.T @ displacement|`` is a distance; its determinant is 1."""
    mirrored: float
    """Covariance of a place with the mirror image of another over that with the other, 0 to 1."""

    def kernels(self, coordinates: Array, kernels: Sequence[tuple[float, int]]) -> Iterator[Array]:
        """Yield covariances exp(-(distance/ℓ)^p) between places (d x 3), each d x d."""
        places = coordinates @ self.root
        images = (coordinates * MIRROR) @ self.root
        direct = distances(places, places)
        across = distances(places, images)
        for length, power in kernels:
            mirror_image = np.exp(-((across / length) ** power))
            # An oblique ellipsoid is not its own mirror image.
            mirror_image = (mirror_image + mirror_image.T) / 2.0
            yield np.exp(-((direct / length) ** power)) + self.mirrored * mirror_image


EVEN = SmoothShape(np.eye(3), 0.0)
"""The same in all directions, and hemispheres that vary independently."""


def distances(places: Array, others: Array) -> Array:
    """Return distances between places (n x 3) and others (m x 3), n x m."""
    squares = np.sum(places**2, axis=1)[:, None] + np.sum(others**2, axis=1)
    return np.asarray(np.sqrt(np.maximum(squares - 2.0 * places @ others.T, 0.0)))


def estimate_shape(matrix: Array, coordinates: Array) -> SmoothShape:
    """Estimate the shape by least squares over pairs of near places.

    The entry of a pair is c + a g(δ) + b g(δ'), with δ the displacement, δ' that from the mirror
    image, and g(δ) = exp(-δᵀ L Lᵀ δ / 2).

    Parameters
    ----------
    matrix : array, shape (d, d)
        A noisy mean of projectors, whose dimensions are places.
    coordinates : array, shape (d, 3)
        In mm of the MNI152 space.
    """
    direct, across, entries = _pairs(matrix, coordinates)

    def design(lower: Array) -> Array:
        root = _root(lower)
        bells = [np.exp(-0.5 * np.square(each @ root).sum(axis=1)) for each in (direct, across)]
        return np.column_stack([np.ones(len(entries)), *bells])

    def residuals(lower: Array) -> Array:
        columns = design(lower)
        return np.asarray(entries - columns @ np.linalg.lstsq(columns, entries)[0])

    if len(entries) <= len(_LOWER[0]) + 3:
        return EVEN
    found = least_squares(residuals, np.eye(3)[_LOWER], max_nfev=_MOST_STEPS).x
    _, own, other = np.linalg.lstsq(design(found), entries)[0]
    mirrored = float(np.clip(other / own, 0.0, 1.0)) if own > 0 else 0.0
    return SmoothShape(_of_one_volume(_root(found)), mirrored)


def _pairs(matrix: Array, coordinates: Array) -> tuple[Array, Array, Array]:
    """Return displacements of near pairs, those from mirror images, and the matrix's entries."""
    images = coordinates * MIRROR
    near = np.minimum(distances(coordinates, coordinates), distances(coordinates, images)) < _NEAR
    one, other = np.nonzero(np.triu(near))
    step = -(-len(one) // _MOST_PAIRS)
    one = one[:: max(step, 1)]
    other = other[:: max(step, 1)]
    direct = coordinates[one] - coordinates[other]
    across = coordinates[one] - images[other]
    return direct, across, matrix[one, other]


def _root(lower: Array) -> Array:
    root = np.zeros((3, 3))
    root[_LOWER] = lower / _START
    return root


def _of_one_volume(root: Array) -> Array:
    """Return the shape with determinant 1, and axes of limited differences in length."""
    left, sizes, _ = np.linalg.svd(root)
    sizes = np.maximum(sizes, sizes.max() / _MOST_RATIO)
    return np.asarray(left * (sizes / np.cbrt(np.prod(sizes))))
