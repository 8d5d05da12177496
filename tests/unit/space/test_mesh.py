"""A study's mesh is the files beside the study file, whatever these say of others."""

import os
import tracemalloc
from base64 import b64encode
from pathlib import Path
from zlib import compress

import nibabel as nib
import numpy as np
import pytest
from nibabel.gifti import GiftiDataArray, GiftiImage

from benchmarks.loading_surface import VERTICES, made_up_mesh
from consortium.errors import DataError
from consortium.space import mesh
from consortium.space.mesh import cortex_rows, grayordinates, load_gifti, read_mesh
from consortium.views.meshes import MESHES, MeshFiles

MESH, PATH = made_up_mesh(), Path("x.dscalar.nii")
ELSEWHERE = """\
<?xml version="1.0" encoding="UTF-8"?>
<GIFTI Version="1.0" NumberOfDataArrays="1"><MetaData/><LabelTable/>
<DataArray Intent="NIFTI_INTENT_SHAPE" DataType="NIFTI_TYPE_FLOAT32" Dim0="{vertices}"
ArrayIndexingOrder="RowMajorOrder" Dimensionality="1" Encoding="ExternalFileBinary"
Endian="LittleEndian" ExternalFileName="{name}" ExternalFileOffset="0"><MetaData/><Data></Data>
</DataArray></GIFTI>
"""


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
        with pytest.raises(DataError, match=r"has no right cortex. Give both hemispheres"):
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


@pytest.mark.parametrize("name", ["../hospital/scan.bin", "beside.bin"])
def test_a_studys_file_does_not_lead_to_the_sites_other_files(tmp_path: Path, name: str) -> None:
    vertices, study = MESHES["fsaverage5"].vertices, tmp_path / "study"
    for folder in (study, tmp_path / "hospital"):
        folder.mkdir()
    np.ones(vertices, np.float32).tofile(study / name)
    for side in "LR":
        text = ELSEWHERE.format(vertices=vertices, name=name)
        (study / f"{side}.wall.gii").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="Give a whole GIFTI file, with its numbers in it"):
        read_mesh(MeshFiles("fsaverage5", None, ("L.wall.gii", "R.wall.gii")), study)


PACKED = """\
<?xml version="1.0" encoding="UTF-8"?>
<GIFTI Version="1.0" NumberOfDataArrays="1"><MetaData/><LabelTable/>
<DataArray Intent="NIFTI_INTENT_SHAPE" DataType="NIFTI_TYPE_FLOAT32" Dim0="10"
ArrayIndexingOrder="RowMajorOrder" Dimensionality="1" Encoding="GZipBase64Binary"
Endian="LittleEndian" ExternalFileName="" ExternalFileOffset=""><Data>{data}</Data>
</DataArray></GIFTI>
"""


def test_a_file_that_unpacks_to_more_than_it_can_mean_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, maps = tmp_path / "L.func.gii", np.zeros((2, 1000), np.float32)
    GiftiImage(darrays=[GiftiDataArray(each) for each in maps]).to_filename(path)
    monkeypatch.setattr(mesh, "_MOST_UNPACKED", maps.nbytes)
    assert len(load_gifti(path, "L").darrays) == 2
    monkeypatch.setattr(mesh, "_MOST_UNPACKED", maps.nbytes - 1)
    with pytest.raises(DataError, match="Give a whole GIFTI file"):
        load_gifti(path, "L")


def test_a_bomb_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, size = tmp_path / "L.wall.gii", 200 << 20
    monkeypatch.setattr(mesh, "_MOST_UNPACKED", 1 << 20)
    data = b64encode(compress(bytes(size))).decode()
    path.write_text(PACKED.format(data=data), encoding="utf-8")
    tracemalloc.start()
    with pytest.raises(DataError, match="Give a whole GIFTI file"):
        load_gifti(path, "L")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 10


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "L.wall.gii")
    with pytest.raises(DataError, match="is not a regular file"):
        load_gifti(tmp_path / "L.wall.gii", "L")
