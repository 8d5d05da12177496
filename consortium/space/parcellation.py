"""An atlas on a mesh: parcels of vertices, from CIFTI's labels, and their series by name.

Source: CIFTI-2 (``.dlabel.nii``, ``.ptseries.nii``); key 0 is what no parcel has.
"""

from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from consortium.errors import DataError
from consortium.space.atlas import Regions
from consortium.space.cifti import STRUCTURES, check_vertices, grayordinates
from consortium.space.mesh import DAMAGED, SIDE_NAMES, Hemisphere, Mesh
from consortium.space.nifti import open_image


def read_parcellation(path: Path, mesh: Mesh) -> Regions:
    """Read the parcels of a mesh's cortex; vertices of its medial wall count for none.

    Raises DataError if the file can't be used, is of another mesh, or names two parcels alike.

    Parameters
    ----------
    path : Path
        CIFTI with one map of labels (``.dlabel.nii``).

    Returns
    -------
    Regions
        Means over the mesh's D vertices, in the order of the labels' keys, with their names.
    """
    try:
        image = open_image(path)
        labels = image.header.get_axis(0)
        if not isinstance(labels, nib.cifti2.LabelAxis) or image.shape != (1, grayordinates(image)):
            raise ValueError("no labels of grayordinates")
        keys = np.asarray(image.dataobj, dtype=np.float64)[0]
        if not np.array_equal(keys, np.rint(keys)):
            raise ValueError("no keys")
        found = np.concatenate([_keys_of(path, image, keys, side, mesh) for side in mesh.sides])
        names = {int(key): str(name) for key, (name, _) in labels.label[0].items()}
    except DAMAGED as error:
        raise DataError(f"The atlas {path} is no whole .dlabel.nii with one map.") from error
    there = np.unique(found[found != 0])
    region_names = tuple(names.get(int(key), "") for key in there)
    if not region_names or "" in region_names or len({*region_names}) < len(region_names):
        raise DataError(
            f"The atlas {path} has not a name of its own for each parcel on the cortex; give one "
            "with a name for each."
        )
    vertices = np.flatnonzero(found)
    rows = np.searchsorted(there, found[vertices])
    weights = 1.0 / np.bincount(rows)[rows]
    shape = len(there), mesh.features
    return Regions(sparse.csr_array((weights, (rows, vertices)), shape=shape), region_names)


def _keys_of(
    path: Path, image: nib.Cifti2Image, keys: NDArray[Any], side: Hemisphere, mesh: Mesh
) -> NDArray[Any]:
    """Keys at the vertices of one cortex; 0 where the file has none."""
    whole = np.zeros(len(side.cortex))
    for model in image.header.matrix.get_index_map(1).brain_models:
        if model.brain_structure == STRUCTURES[side.side]:
            check_vertices(path, side, int(model.surface_number_of_vertices), mesh)
            start, vertices = int(model.index_offset), np.fromiter(model.vertex_indices, np.intp)
            whole[vertices] = keys[start : start + len(vertices)]
    if not whole.any():
        raise DataError(
            f"The atlas {path} has no parcel in the {SIDE_NAMES[side.side]} hemisphere; give one "
            "of both."
        )
    return whole[side.cortex]


def parcels_of(image: nib.Cifti2Image) -> int:
    """How many parcels a file says that it has; 0 for a file of something else."""
    places = image.header.matrix.get_index_map(1)
    if places.indices_map_to_data_type != "CIFTI_INDEX_TYPE_PARCELS":
        return 0
    return len(list(places.parcels))


def parcel_places(path: Path, image: nib.Cifti2Image, regions: Regions) -> NDArray[np.intp]:
    """Which columns of a file of parcels an atlas's regions are, by name.

    Raises DataError if one is not there, or twice.
    """
    names = [str(parcel.name) for parcel in image.header.matrix.get_index_map(1).parcels]
    lacking = [name for name in regions.names if names.count(name) != 1]
    if lacking:
        more = f" (and {len(lacking) - 1} others)" if lacking[1:] else ""
        raise DataError(
            f"{path} has not one parcel '{lacking[0]}'{more}, as the study's atlas has; give the "
            "series of that atlas."
        )
    return np.array([names.index(name) for name in regions.names])
