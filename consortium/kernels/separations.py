"""Separation of directions into maps: weighted varimax, and spatial ICA.

Weighted varimax computes maps of simple structure from directions that are weighted by their
strength. Independent component analysis whitens directions, so weak and noisy ones have the weight
of strong ones, and it must cut at the edge of the noise. In weighted varimax each direction is
weighted by its eigenvalue, nothing is cut, and the rotation maximizes the variance of the squared
loadings (Kaiser 1958). It uses released numbers only, so it costs no privacy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from consortium.base.array import Array
from consortium.kernels.spatial_ica import separate

Paint = Callable[[Array], Array]
"""Function from weights over the basis (d x R) to values of voxels (V x R)."""

_REPLAY_STARTS = 2


class SeparationMethod(Protocol):
    """Method that turns directions into maps: varimax, or ICA."""

    def first(
        self, vectors: Array, excess: Array, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return maps (V x R', mean 0, variance 1) and their weights over the basis (d x R')."""

    def again(
        self, vectors: Array, excess: Array, size: int, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return the same for a replay, with R' = ``size``."""


@dataclass(frozen=True)
class Varimax:
    """Separation that weights each direction by its excess, and a constant direction by 0."""

    paint: Paint
    """Function to values of the voxels over which maps should be simple."""

    def first(
        self, vectors: Array, excess: Array, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return maps and weights, as `SeparationMethod`."""
        del generator
        maps, unmixing = separate_weighted(self.paint(vectors), excess)
        return maps, vectors @ unmixing

    def again(
        self, vectors: Array, excess: Array, size: int, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return maps and weights of a replay, as `SeparationMethod`."""
        del size
        return self.first(vectors, excess, generator)


@dataclass(frozen=True)
class FastIca:
    """Separation into independent components over the voxels, from several starts."""

    paint: Paint
    starts: int

    def first(
        self, vectors: Array, excess: Array, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return maps and weights, as `SeparationMethod`, without nearly constant directions."""
        del excess
        parts = separate(self.paint(vectors), self.starts, generator)
        return parts.maps, vectors @ parts.unmixing

    def again(
        self, vectors: Array, excess: Array, size: int, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return maps and weights of a replay, as `SeparationMethod`."""
        del excess
        parts = separate(self.paint(vectors), _REPLAY_STARTS, generator, size)
        return parts.maps, vectors @ parts.unmixing


ITERATIONS = 100
TOLERANCE = 1e-6
"""Relative increase of the criterion at which iteration stops."""
_FEW = 10
"""Iterations on the maps themselves. Networks take about as many, noise takes all."""
_MOST_BY_MOMENTS = 32
"""Maps of which the fourth moments are computed sooner than the iterations that are left."""
_PART = 4096


def varimax(loadings: Array, iterations: int = ITERATIONS, tolerance: float = TOLERANCE) -> Array:
    """Return the rotation T that maximizes the variance of the squares of ``loadings @ T``.

    Parameters
    ----------
    loadings : array, shape (V, R)

    Returns
    -------
    array, shape (R, R)
        T. Iteration starts from the identity, so every party computes the same rotation.
    """
    rotation = np.eye(loadings.shape[1])
    slopes = _slopes_by_maps(loadings)
    last = 0.0
    for turn in range(iterations):
        if turn == _FEW and len(rotation) <= _MOST_BY_MOMENTS:
            slopes = _slopes_by_moments(loadings)
        left, sizes, right = np.linalg.svd(slopes(rotation))
        rotation = left @ right
        total = float(sizes.sum())
        if total <= last * (1.0 + tolerance):
            break
        last = total
    return rotation


def _slopes_by_maps(loadings: Array) -> Callable[[Array], Array]:
    """Return a function from a rotation (R x R) to the derivatives of the criterion by it."""

    def slopes(rotation: Array) -> Array:
        turned = loadings @ rotation
        squares = turned * turned
        return np.asarray(loadings.T @ (turned * (squares - squares.mean(axis=0))))

    return slopes


def _slopes_by_moments(loadings: Array) -> Callable[[Array], Array]:
    """Return the same function, which uses second and fourth moments of the maps only.

    The moments are computed once, over pairs of maps.
    """
    places, many = loadings.shape
    first, second = np.triu_indices(many)
    fourth = np.zeros((len(first), len(first)))
    for begin in range(0, places, _PART):
        part = loadings[begin : begin + _PART]
        products = part[:, first] * part[:, second]
        fourth += products.T @ products
    fourth *= np.where(first == second, 1.0, 2.0)  # the sum over both orders of a pair
    moment = loadings.T @ loadings
    cubic = np.zeros((many, many, many))

    def slopes(rotation: Array) -> Array:
        pairs = fourth @ (rotation[first] * rotation[second])
        cubic[first, second] = pairs
        cubic[second, first] = pairs
        turned = moment @ rotation
        means = (rotation * turned).sum(axis=0) / places
        return np.asarray(np.einsum("iar,ar->ir", cubic, rotation) - turned * means)

    return slopes


def separate_weighted(maps: Array, weights: Array) -> tuple[Array, Array]:
    """Return maps of simple structure of the weighted directions.

    Parameters
    ----------
    maps : array, shape (V, R)
        Painted directions; none of them constant.
    weights : array, shape (R,)
        Weights of the directions, 0 or more.

    Returns
    -------
    maps : array, shape (V, R)
        Mean 0, and variance 1 over the voxels.
    unmixing : array, shape (R, R)
        Matrix that turns the centred input into the maps.
    """
    centred = maps - maps.mean(axis=0)
    scale = np.sqrt(np.mean(np.square(centred * weights)))
    weights = weights / (scale if scale > 0 else 1.0)
    unmixing = weights[:, None] * varimax(centred * weights)
    found = centred @ unmixing
    spread = found.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return found / spread, unmixing / spread
