"""Ways of taking directions apart into maps: weighted varimax, and spatial ICA."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from consortium.kernels.spatial_ica import separate
from consortium.kernels.varimax import separate_weighted

Array = NDArray[Any]
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
