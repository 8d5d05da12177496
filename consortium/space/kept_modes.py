"""A mesh's modes, worked out once for a computer's user: public, and the same for every study.

They are kept in ``cape-consortium`` of the user's folder for caches (``XDG_CACHE_HOME``, or
``~/.cache``), under a name that says of which mesh they are. Where it can't be written, they are
worked out again.
"""

import hashlib
import io
import os
import zipfile
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from consortium.algorithms.base import SurfacePlaces
from consortium.base.atomic import write_bytes
from consortium.errors import OutputError
from consortium.kernels.surface_modes import MOST, SurfaceModes, surface_modes
from consortium.space.mesh import Hemisphere, Mesh

_VERSION = 1  # raise it when modes are worked out otherwise
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


def surface_places(mesh: Mesh) -> SurfacePlaces:
    """Where a mesh's vertices are; its modes are worked out when they are first asked for."""
    return SurfacePlaces(mesh.coordinates, partial(_modes_of, mesh))


def modes_folder() -> Path:
    """Where modes are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "cape-consortium"


def _modes_of(mesh: Mesh) -> tuple[SurfaceModes, ...]:
    return tuple(_side_modes(mesh.digest, side) for side in mesh.sides)


@lru_cache(maxsize=4)  # of two meshes in one process
def _side_modes(digest: str, side: Hemisphere) -> SurfaceModes:
    name = hashlib.sha256(f"{_VERSION} {MOST} {digest} {side.side}".encode()).hexdigest()
    path = modes_folder() / f"modes-{name}.npz"
    kept = _read(path, side)
    if kept is not None:
        return kept
    found = surface_modes(side.coordinates, side.triangles, side.cortex)
    with suppress(OutputError):
        write_bytes(path, _packed(found))
    return found


def _packed(modes: SurfaceModes) -> bytes:
    content = io.BytesIO()
    parts = {"values": modes.values, "vectors": modes.vectors, "anchors": modes.anchors}
    np.savez(content, allow_pickle=False, area=np.array(modes.area), **parts)
    return content.getvalue()


def _read(path: Path, side: Hemisphere) -> SurfaceModes | None:
    """What is kept, if it is there and whole."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            values, vectors = kept["values"], kept["vectors"]
            anchors, area = kept["anchors"], float(kept["area"])
    except _DAMAGED:
        return None
    whole = vectors.shape == (side.features, len(values)) and anchors.shape == values.shape
    return SurfaceModes(values, vectors, anchors, area) if whole else None
