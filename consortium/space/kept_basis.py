"""A grid's smooth basis, worked out once for a computer's user."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consortium.base.array import Array
from consortium.base.kept_arrays import kept_arrays
from consortium.kernels import smooth_basis
from consortium.kernels.smooth_basis import SmoothBasis

_ROWS = 20_000  # voxels at a time, so that no map lies in memory in float64


@dataclass(frozen=True, eq=False)
class KeptBasis(SmoothBasis):
    """A smooth basis over the voxels of a grid; what takes long comes from the user's caches."""

    digest: str
    """The grid's."""

    @cached_property
    def centres(self) -> Array:
        """As of `SmoothBasis`."""
        return self._kept("centres", lambda: super(KeptBasis, self).centres)

    @cached_property
    def factor(self) -> Array:
        """As of `SmoothBasis`."""
        return self._kept("factor", lambda: super(KeptBasis, self).factor)

    @cached_property
    def for_series(self) -> Array:
        """Φ in float32, as series of images are."""
        return self._kept("maps", self._narrow)

    def _narrow(self) -> Array:
        maps = np.empty((len(self.coordinates), self.size), dtype=np.float32)
        for start in range(0, len(maps), _ROWS):
            rows = slice(start, start + _ROWS)
            maps[rows] = self.at(self.coordinates[rows])
        return maps

    def _kept(self, what: str, make: Callable[[], Array]) -> Array:
        key = f"{what} {float(self.cutoff).hex()} {self.digest}"
        return kept_arrays("basis", key, smooth_basis.__file__, lambda: {what: make()})[what]
