"""Noise whose strength, width and left-right symmetry differ between places.

Each of the three is raised or lowered at every place until the mean projector of participants with
this noise has the same diagonal there, the same correlation with near places, and the same
correlation with the opposite hemisphere as the released matrix (an iterative moment fit).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.group_ica.kernels.smooth_shape import MIRROR, SmoothShape, distances
from consortium.base.array import Array

_NEAREST = 6
_OPPOSITE = 4
"""Numbers of places that count as near a place, and as near its mirror image."""
_CENTRAL = 12.0  # mm from the midline: a place whose mirror image is one of its near places
_MOST_STRONG = 3.0
"""Largest ratio of a place's standard deviation to the geometric mean of all."""
_MOST_WIDE = 1.7
"""Largest ratio of a place's width to the kernel's, and of the kernel's to it."""
_LEAST_SYMMETRIC = 0.05
_WEAKEST = 1e-4
_UNRELATED = 0.02
"""Least diagonal entry relative to the mean one, and least correlation, in a ratio."""
_SPEED = 0.35
"""Power of a ratio of correlations in one step. With 0.7 steps overshoot, since a place's width
changes the correlations of its neighbours too."""
_STEP = (0.5, 2.0)
_STRENGTH_STEP = (0.1, 10.0)


class LocalMoments(NamedTuple):
    """Diagonal of a matrix of places, and mean correlations of each place, each of shape (d,)."""

    diagonal: Array
    near: Array
    """With the nearest places."""
    opposite: Array
    """With the places nearest to the mirror image."""


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Empirical Bayes shrinkage of noisy local moments towards their means over wider regions."""

    around: Array
    """Shape (d, d). Weights of the means."""
    reliable: tuple[float, float, float]
    """Fraction of each moment's deviations from its means that is not noise of the release."""

    @classmethod
    def of(cls, released: LocalMoments, around: Array, deviation: float) -> "Shrinkage":
        """Return the shrinkage of a release whose entries have this standard deviation of noise."""
        size = max(float(released.diagonal.mean()), np.finfo(np.float64).tiny)
        entries = deviation**2, *(deviation**2 / (2 * n * size**2) for n in (_NEAREST, _OPPOSITE))

        def reliable(moment: Array, noise: float) -> float:
            spread = float(np.square(moment - around @ moment).mean())
            return max(1.0 - noise / spread, 0.0) if spread > 0 else 0.0

        first, second, third = map(reliable, released, entries)
        return cls(around, (first, second, third))

    def __call__(self, moments: LocalMoments) -> LocalMoments:
        """Return moments, each shrunk by its own fraction."""
        return LocalMoments(
            *(
                part * moment + (1.0 - part) * (self.around @ moment)
                for part, moment in zip(self.reliable, moments, strict=True)
            )
        )


@dataclass(frozen=True, eq=False)
class NearPlaces:
    """Places in the brain that are near each place, and near its mirror image."""

    near: NDArray[np.int_]
    """Shape (d, `_NEAREST`)."""
    opposite: NDArray[np.int_]
    """Shape (d, `_OPPOSITE`)."""
    central: NDArray[np.bool_]
    """Shape (d,). Whether a place is on the midline."""

    @classmethod
    def of(cls, coordinates: Array) -> "NearPlaces":
        """Return the neighbours of places (d x 3) in mm of the MNI152 space."""
        apart = distances(coordinates, coordinates)
        np.fill_diagonal(apart, np.inf)
        near = np.argsort(apart, axis=1, kind="stable")[:, : min(_NEAREST, len(apart) - 1)]
        across = distances(coordinates, coordinates * MIRROR)
        opposite = np.argsort(across, axis=1, kind="stable")[:, :_OPPOSITE]
        return cls(near, opposite, np.abs(coordinates[:, 0]) < _CENTRAL)

    def moments(self, matrix: Array) -> LocalMoments:
        """Return the local moments of a mean of projectors (d x d), noisy or not."""
        diagonal = np.maximum(np.diag(matrix), 0.0)
        roots = np.sqrt(np.maximum(diagonal, _WEAKEST * max(diagonal.mean(), _WEAKEST)))

        def correlation(others: NDArray[np.int_]) -> Array:
            products = (roots[:, None] * roots[others]).sum(axis=1)
            entries = np.take_along_axis(matrix, others, axis=1).sum(axis=1)
            found = np.divide(entries, products, out=np.zeros_like(entries), where=products > 0)
            return np.asarray(found)

        return LocalMoments(diagonal, correlation(self.near), correlation(self.opposite))


@dataclass(frozen=True, eq=False)
class LocalNoise:
    """Strength, width and symmetry of noise at each place, each of shape (d,)."""

    strengths: Array
    """Standard deviation over its geometric mean."""
    widths: Array
    """Width over the kernel's."""
    symmetry: Array
    """Root of the covariance with the mirror image over the variance, 0 to 1."""
    central: NDArray[np.bool_]
    """Whether a place lies on the midline, where ``symmetry`` is not fitted."""

    @classmethod
    def even(cls, mirrored: float, neighbours: NearPlaces) -> "LocalNoise":
        """Return noise that is the same at all places."""
        ones = np.ones(len(neighbours.central))
        root = np.sqrt(max(mirrored, _LEAST_SYMMETRIC))
        return cls(ones, ones, root * ones, neighbours.central)

    def covariance(
        self, coordinates: Array, shape: SmoothShape, kernel: tuple[float, int]
    ) -> Array:
        """Return the covariance between places (d x 3), d x d, of Paciorek and Schervish (2006).

        ``shape`` gives its anisotropy, and ``kernel`` the length ℓ in mm and the power p of
        exp(-(distance/ℓ)^p).
        """
        length, power = kernel
        places = coordinates @ shape.root
        images = (coordinates * MIRROR) @ shape.root
        squares = (self.widths[:, None] ** 2 + self.widths**2) / 2.0
        scale = np.sqrt(np.outer(self.widths, self.widths) / squares) ** 3
        lengths = np.sqrt(squares)
        direct = np.exp(-((distances(places, places) / lengths / length) ** power))
        across = np.exp(-((distances(places, images) / lengths / length) ** power))
        both = np.outer(self.symmetry, self.symmetry) * (across + across.T) / 2.0
        return self.stronger(scale * (direct + both))

    def stronger(self, covariance: Array) -> Array:
        """Return a covariance of even noise with the strengths of this noise, d x d."""
        return np.asarray(self.strengths[:, None] * covariance * self.strengths)

    def adjusted(self, released: LocalMoments, own: LocalMoments) -> "LocalNoise":
        """Return noise whose moments are nearer to the released ones than its own moments."""
        least = np.finfo(np.float64).tiny
        stronger = np.clip(released.diagonal / np.maximum(own.diagonal, least), *_STRENGTH_STEP)
        wider = _change(released.near, own.near)
        symmetry = np.clip(
            self.symmetry * _change(released.opposite, own.opposite), _LEAST_SYMMETRIC, 1.0
        )
        return replace(
            self,
            strengths=_centred(self.strengths * np.sqrt(stronger)),
            widths=np.clip(self.widths * wider, 1.0 / _MOST_WIDE, _MOST_WIDE),
            symmetry=np.where(self.central, self.symmetry, symmetry),
        )


def _change(released: Array, own: Array) -> Array:
    ratio = np.maximum(released, _UNRELATED) / np.maximum(own, _UNRELATED)
    return np.asarray(np.clip(ratio, *_STEP) ** _SPEED)


def _centred(strengths: Array) -> Array:
    """Return positive strengths over their geometric mean, within the largest ratio to it."""
    over = strengths / np.exp(np.mean(np.log(strengths)))
    return np.asarray(np.clip(over, 1.0 / _MOST_STRONG, _MOST_STRONG))
