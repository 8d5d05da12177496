"""Ways of taking directions apart into maps: weighted varimax, and spatial ICA.

Weighted varimax: maps of simple structure, out of directions that each count by their strength.

Independent component analysis makes directions white first, so that weak and noisy ones count as
much as strong ones, and has to cut at the edge of the noise. Here each direction counts by its
eigenvalue, nothing is cut, and the rotation is the one whose loadings vary most in size
(Kaiser 1958). It sees released numbers only, so that it costs no privacy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from consortium.base.array import Array
from consortium.kernels.spatial_ica import separate

Paint = Callable[[Array], Array]
"""Weights over the basis (d x R) to values of voxels (V x R)."""

_REPLAY_STARTS = 2


class SeparationMethod(Protocol):
    """How directions become maps: by varimax, or by ICA."""

    def first(
        self, vectors: Array, excess: Array, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """Maps (V x R', mean 0, variance 1) and their weights over the basis (d x R')."""

    def again(
        self, vectors: Array, excess: Array, size: int, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """The same of a replay, of which R' = ``size`` are wanted."""


@dataclass(frozen=True)
class Varimax:
    """Each direction counts by its excess; one that is the same everywhere, not at all."""

    paint: Paint
    """To the voxels over which maps are to be simple."""

    def first(
        self, vectors: Array, excess: Array, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """As `SeparationMethod`."""
        del generator
        maps, unmixing = separate_weighted(self.paint(vectors), excess)
        return maps, vectors @ unmixing

    def again(
        self, vectors: Array, excess: Array, size: int, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """As `SeparationMethod`."""
        del size
        return self.first(vectors, excess, generator)


@dataclass(frozen=True)
class FastIca:
    """Independent components over the voxels, from several starts."""

    paint: Paint
    starts: int

    def first(
        self, vectors: Array, excess: Array, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """As `SeparationMethod`; directions that are nearly the same everywhere are left out."""
        del excess
        parts = separate(self.paint(vectors), self.starts, generator)
        return parts.maps, vectors @ parts.unmixing

    def again(
        self, vectors: Array, excess: Array, size: int, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        """As `SeparationMethod`."""
        del excess
        parts = separate(self.paint(vectors), _REPLAY_STARTS, generator, size)
        return parts.maps, vectors @ parts.unmixing


ITERATIONS = 100
TOLERANCE = 1e-6
"""Of the criterion, an iteration's part of it."""


def varimax(loadings: Array, iterations: int = ITERATIONS, tolerance: float = TOLERANCE) -> Array:
    """Rotation T whose ``loadings @ T`` have the largest variance of their squares.

    Parameters
    ----------
    loadings : array, shape (V, R)

    Returns
    -------
    array, shape (R, R)
        From the identity on, so that it is the same wherever it is worked out.
    """
    rotation, last = np.eye(loadings.shape[1]), 0.0
    for _ in range(iterations):
        turned = loadings @ rotation
        squares = turned * turned
        slopes = loadings.T @ (turned * (squares - squares.mean(axis=0)))
        left, sizes, right = np.linalg.svd(slopes)
        rotation, total = left @ right, float(sizes.sum())
        if total <= last * (1.0 + tolerance):
            break
        last = total
    return rotation


def separate_weighted(maps: Array, weights: Array) -> tuple[Array, Array]:
    """Maps of simple structure.

    Parameters
    ----------
    maps : array, shape (V, R)
        Directions, painted; none of them constant.
    weights : array, shape (R,)
        How much each counts, 0 or more.

    Returns
    -------
    maps : array, shape (V, R)
        Mean 0, and variance 1 over the voxels.
    unmixing : array, shape (R, R)
        They are the centred maps that came in times this.
    """
    centred = maps - maps.mean(axis=0)
    scale = np.sqrt(np.mean(np.square(centred * weights)))
    weights = weights / (scale if scale > 0 else 1.0)
    unmixing = weights[:, None] * varimax(centred * weights)
    found = centred @ unmixing
    spread = found.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return found / spread, unmixing / spread
