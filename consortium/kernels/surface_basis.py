"""Public basis of smooth maps on the cortex, from the modes of both hemispheres.

It corresponds to `smooth_basis` on voxels, with waves along the cortex instead of blobs. The modes
below a cut-off span it. The basis of their span is independent of how a computer rotates them: it
is the basis nearest to the projections of single vertices, the modes' first anchors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from consortium.base.array import Array
from consortium.errors import StudyError
from consortium.kernels.spatial_ica import nearest_rotation
from consortium.kernels.surface_modes import SurfaceModes

_FEWEST = 2  # modes of a hemisphere; the first is constant


def turn_of(modes: SurfaceModes, size: int) -> Array:
    """Return T, which turns the longest modes φ into orthonormal maps φT around anchors."""
    waves = modes.vectors[:, :size]
    gram = waves.T @ waves
    sizes, turns = np.linalg.eigh((gram + gram.T) / 2)
    root = (turns * sizes**-0.5) @ turns.T
    return np.asarray(root @ nearest_rotation(root @ waves[modes.anchors[:size]].T))


@dataclass(frozen=True, eq=False)
class SurfaceBasis:
    """Maps over the V vertices of both hemispheres whose waves are longer than a cut-off.

    `sizes` and all later properties raise StudyError if no wave of a hemisphere is as long.
    """

    coordinates: Array
    """Vertices in mm, one hemisphere after the other, shape (V, 3)."""
    modes: Sequence[SurfaceModes]
    """Modes of each hemisphere."""
    cutoff: float
    """Shortest wavelength in mm."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of maps of each hemisphere."""
        found = tuple(side.below(self.cutoff) for side in self.modes)
        if min(found) < _FEWEST:
            raise StudyError(
                f"The cutoff must be shorter than a hemisphere, got {self.cutoff:.3g} mm. Set a "
                "shorter cutoff."
            )
        return found

    @property
    def size(self) -> int:
        """d, number of maps."""
        return sum(self.sizes)

    @cached_property
    def centres(self) -> Array:
        """Anchors in mm, around which the maps are located: shape (d, 3)."""
        places = []
        start = 0
        for side, size in zip(self.modes, self.sizes, strict=True):
            places.append(self.coordinates[start + side.anchors[:size]])
            start += len(side.vectors)
        return np.concatenate(places)

    @cached_property
    def _turns(self) -> tuple[Array, ...]:
        pairs = zip(self.modes, self.sizes, strict=True)
        return tuple(turn_of(side, size) for side, size in pairs)

    @cached_property
    def matrix(self) -> Array:
        """Φ, orthonormal columns, each zero on one hemisphere: shape (V, d)."""
        pairs = zip(self.modes, self._turns, strict=True)
        return np.asarray(block_diag(*(side.vectors[:, : len(t)] @ t for side, t in pairs)))

    @property
    def for_series(self) -> Array:
        """Φ, as in `SmoothBasis`."""
        return self.matrix

    def times(self, weights: Array) -> Array:
        """Return Φ ``weights`` (d x K): shape (V, K)."""
        return np.asarray(self.matrix @ weights)

    def coefficients(self, values: Array) -> Array:
        """Return Φᵀ ``values`` (V x K): shape (d, K)."""
        return np.asarray(self.matrix.T @ values)
