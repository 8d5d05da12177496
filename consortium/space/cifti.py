"""Where a CIFTI file has the vertices of a mesh.

Asked are the models of its header as they stand: nibabel's axes take longer to make than a series
takes to read.
"""

from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.space.mesh import DAMAGED, SIDE_NAMES, Hemisphere, Mesh

STRUCTURES = {"L": "CIFTI_STRUCTURE_CORTEX_LEFT", "R": "CIFTI_STRUCTURE_CORTEX_RIGHT"}


def grayordinates(image: nib.Cifti2Image) -> int:
    """How many a dense file says that it has; 0 for a file of something else."""
    places = image.header.matrix.get_index_map(1)
    if places.indices_map_to_data_type != "CIFTI_INDEX_TYPE_BRAIN_MODELS":
        return 0
    return sum(int(model.index_count) for model in places.brain_models)


def cortex_rows(path: Path, image: nib.Cifti2Image, mesh: Mesh) -> NDArray[np.intp]:
    """Which grayordinates of a dense file the mesh's D vertices are, in their order: shape (D,).

    Raises DataError if a hemisphere is missing, is of another mesh or has another medial wall.

    Parameters
    ----------
    path : Path
        The file, for messages.
    """
    models = image.header.matrix.get_index_map(1).brain_models
    named = {model.brain_structure: model for model in models}
    found = [_of_side(path, named.get(STRUCTURES[s.side]), s, mesh) for s in mesh.sides]
    return np.concatenate(found)


def _of_side(path: Path, model: Any, side: Hemisphere, mesh: Mesh) -> NDArray[np.intp]:
    if model is None or model.model_type != "CIFTI_MODEL_TYPE_SURFACE":
        raise DataError(f"{path} has no {SIDE_NAMES[side.side]} cortex; give both hemispheres.")
    try:
        many, start = int(model.surface_number_of_vertices), int(model.index_offset)
        vertices = np.fromiter(model.vertex_indices, np.intp)
    except DAMAGED as error:
        raise DataError(
            f"{path} does not say which vertices of the {SIDE_NAMES[side.side]} cortex it has; "
            "write it again."
        ) from error
    check_vertices(path, side, many, mesh)
    order = np.argsort(vertices, kind="stable")
    if not np.array_equal(vertices[order], np.flatnonzero(side.cortex)):
        raise DataError(
            f"{path} has {len(order):,} vertices of the {SIDE_NAMES[side.side]} cortex, and the "
            f"study's {side.features:,} are others; use the study's medial wall."
        )
    return np.asarray(start + order)


def check_vertices(path: Path, side: Hemisphere, vertices: int, mesh: Mesh) -> None:
    """Raise DataError unless a hemisphere has as many vertices as the mesh."""
    if vertices != mesh.kind.vertices:
        raise DataError(
            f"{path} has {vertices:,} vertices in the {SIDE_NAMES[side.side]} hemisphere, where "
            f"{mesh.name} has {mesh.kind.vertices:,}; resample it to {mesh.name}."
        )
