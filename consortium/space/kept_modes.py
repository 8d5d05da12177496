"""A mesh's modes, worked out once for a computer's user: public, and the same for every study."""

from functools import lru_cache, partial

import numpy as np

from consortium.algorithms.base import SurfacePlaces
from consortium.base.array import Array
from consortium.base.kept_arrays import kept_arrays
from consortium.kernels import surface_modes as kernel
from consortium.kernels.surface_modes import SurfaceModes, surface_modes
from consortium.space.mesh import Hemisphere, Mesh


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
