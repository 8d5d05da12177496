"""A study's mesh is the files beside the study file, whatever these say of others."""

from pathlib import Path

import numpy as np
import pytest

from consortium.errors import DataError
from consortium.space.mesh import read_mesh
from consortium.views.meshes import MESHES, MeshFiles

ELSEWHERE = """\
<?xml version="1.0" encoding="UTF-8"?>
<GIFTI Version="1.0" NumberOfDataArrays="1"><MetaData/><LabelTable/>
<DataArray Intent="NIFTI_INTENT_SHAPE" DataType="NIFTI_TYPE_FLOAT32" Dim0="{vertices}"
ArrayIndexingOrder="RowMajorOrder" Dimensionality="1" Encoding="ExternalFileBinary"
Endian="LittleEndian" ExternalFileName="{name}" ExternalFileOffset="0"><MetaData/><Data></Data>
</DataArray></GIFTI>
"""


@pytest.mark.parametrize("name", ["../hospital/scan.bin", "beside.bin"])
def test_a_studys_file_does_not_lead_to_the_sites_other_files(tmp_path: Path, name: str) -> None:
    vertices, study = MESHES["fsaverage5"].vertices, tmp_path / "study"
    for folder in (study, tmp_path / "hospital"):
        folder.mkdir()
    np.ones(vertices, np.float32).tofile(study / name)
    for side in "LR":
        text = ELSEWHERE.format(vertices=vertices, name=name)
        (study / f"{side}.wall.gii").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="give a whole GIFTI file, with its numbers in it"):
        read_mesh(MeshFiles("fsaverage5", None, ("L.wall.gii", "R.wall.gii")), study)
