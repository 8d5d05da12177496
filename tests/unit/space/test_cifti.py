"""Where a CIFTI file has a mesh's vertices, whatever the order and company in which it has them."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from benchmarks.loading_surface import VERTICES, made_up_mesh
from consortium.errors import DataError
from consortium.space.cifti import cortex_rows, grayordinates

MESH, PATH = made_up_mesh(), Path("x.dscalar.nii")


def surface(name: str, vertices: np.ndarray) -> nib.cifti2.BrainModelAxis:
    return nib.cifti2.BrainModelAxis.from_surface(vertices, VERTICES, name)


def image_of(*models: nib.cifti2.BrainModelAxis) -> nib.Cifti2Image:
    axis = sum(models[1:], start=models[0])
    return nib.Cifti2Image(np.zeros((1, len(axis))), (nib.cifti2.ScalarAxis(["a"]), axis))


def test_rows_are_those_of_the_vertices_in_the_meshs_order() -> None:
    left, right = (np.flatnonzero(side.cortex) for side in MESH.sides)
    below = nib.cifti2.BrainModelAxis.from_mask(np.ones((2, 2, 2)), "BrainStem", np.eye(4))
    image = image_of(below, surface("CortexRight", right), surface("CortexLeft", left[::-1]))
    rows = cortex_rows(PATH, image, MESH)
    assert grayordinates(image) == 8 + len(left) + len(right)
    vertices = np.concatenate([np.full(8, -1), right, left[::-1]])
    np.testing.assert_array_equal(vertices[rows], np.concatenate([left, right]))


def test_voxels_named_as_a_cortex_and_a_missing_one_are_none() -> None:
    left = surface("CortexLeft", np.flatnonzero(MESH.left.cortex))
    voxels = nib.cifti2.BrainModelAxis.from_mask(np.ones((2, 2, 2)), "CortexRight", np.eye(4))
    for image in (image_of(left), image_of(left, voxels)):
        with pytest.raises(DataError, match="has no right cortex; give both hemispheres"):
            cortex_rows(PATH, image, MESH)


def test_a_file_of_parcels_has_no_grayordinates() -> None:
    parcels = nib.cifti2.ParcelsAxis.from_brain_models([("a", surface("CortexLeft", np.arange(9)))])
    image = nib.Cifti2Image(np.zeros((1, 1)), (nib.cifti2.ScalarAxis(["a"]), parcels))
    assert grayordinates(image) == 0


def test_a_model_that_does_not_say_its_vertices_is_one_error_of_its_file() -> None:
    left, right = (np.flatnonzero(side.cortex) for side in MESH.sides)
    image = image_of(surface("CortexLeft", left), surface("CortexRight", right))
    model = list(image.header.matrix.get_index_map(1).brain_models)[1]
    model.surface_number_of_vertices = None
    with pytest.raises(DataError, match="does not say which vertices of the right cortex"):
        cortex_rows(PATH, image, MESH)
