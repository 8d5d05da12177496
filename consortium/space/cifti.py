"""Where a CIFTI file has the vertices of a mesh."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.space.mesh import SIDE_NAMES, Hemisphere, Mesh

_STRUCTURES = {"L": "CIFTI_STRUCTURE_CORTEX_LEFT", "R": "CIFTI_STRUCTURE_CORTEX_RIGHT"}


def cortex_rows(path: Path, places: Any, mesh: Mesh) -> NDArray[np.intp]:
    """Which of a file's grayordinates the mesh's D vertices are, in their order: shape (D,).

    Parameters
    ----------
    path : Path
        The file, for messages.
    places : nibabel.cifti2.BrainModelAxis
        Of the file.

    Raises
    ------
    DataError
        If a hemisphere is missing, is of another mesh or has another medial wall.
    """
    models = {name: (rows, model) for name, rows, model in places.iter_structures()}
    found = [_of_side(path, models.get(_STRUCTURES[s.side]), s, mesh) for s in mesh.sides]
    return np.concatenate(found)


def _of_side(
    path: Path, model: tuple[slice, Any] | None, side: Hemisphere, mesh: Mesh
) -> NDArray[np.intp]:
    if model is None or _STRUCTURES[side.side] not in model[1].nvertices:  # or of voxels
        raise DataError(f"{path} has no {SIDE_NAMES[side.side]} cortex; give both hemispheres.")
    rows, own = model
    check_vertices(path, side, int(own.nvertices[_STRUCTURES[side.side]]), mesh)
    order = np.argsort(own.vertex)
    if not np.array_equal(own.vertex[order], np.flatnonzero(side.cortex)):
        raise DataError(
            f"{path} has {len(order):,} vertices of the {SIDE_NAMES[side.side]} cortex, and the "
            f"study's {side.features:,} are others; use the study's medial wall."
        )
    return np.asarray((rows.start or 0) + order)


def check_vertices(path: Path, side: Hemisphere, vertices: int, mesh: Mesh) -> None:
    """Raise DataError unless a hemisphere has as many vertices as the mesh."""
    if vertices != mesh.kind.vertices:
        raise DataError(
            f"{path} has {vertices:,} vertices in the {SIDE_NAMES[side.side]} hemisphere, where "
            f"{mesh.name} has {mesh.kind.vertices:,}; resample it to {mesh.name}."
        )
