"""Smooth bases and modes of a mesh, kept for whoever uses this computer."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from consortium.algorithms.base import SurfacePlaces
from consortium.base.array import Array
from consortium.base.kept_arrays import kept_arrays
from consortium.kernels import smooth_basis
from consortium.kernels import surface_modes as kernel
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.kernels.surface_modes import SurfaceModes, surface_modes
from consortium.space.mesh import Hemisphere, Mesh

_ROWS = 20_000  # voxels at a time, so that no map lies in memory in float64


def surface_places(mesh: Mesh) -> SurfacePlaces:
    """Where a mesh's vertices are; its modes are worked out when they are first asked for."""
    return SurfacePlaces(mesh.coordinates, partial(_modes_of, mesh))


def _modes_of(mesh: Mesh) -> tuple[SurfaceModes, ...]:
    return tuple(_side_modes(mesh.digest, side) for side in mesh.sides)


@lru_cache(maxsize=4)  # of two meshes in one process
def _side_modes(digest: str, side: Hemisphere) -> SurfaceModes:
    key, make = f"{digest} {side.side}", partial(_modes, side)
    kept = kept_arrays("modes", key, kernel.__file__, make)
    return SurfaceModes(kept["values"], kept["vectors"], kept["anchors"], float(kept["area"]))


def _modes(side: Hemisphere) -> dict[str, Array]:
    found = surface_modes(side.coordinates, side.triangles, side.cortex)
    area = np.array(found.area)
    return {
        "values": found.values,
        "vectors": found.vectors,
        "anchors": found.anchors,
        "area": area,
    }


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
