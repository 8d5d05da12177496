"""Names of places."""

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.space.anatomy import LONGEST, read_anatomy, read_names

AFFINE = np.diag([4.0, 4.0, 4.0, 1.0])


@pytest.fixture
def atlas(tmp_path):
    values = np.zeros((10, 10, 10), dtype=np.int16)
    values[0:2, 0, 0], values[9, 9, 9] = 7, 12
    path = tmp_path / "atlas.nii.gz"
    nib.save(nib.Nifti1Image(values, AFFINE), path)
    (tmp_path / "atlas.tsv").write_text(
        "index\tname\tcolor\n7\tLeft Corner\tred\n12\tFar Corner\tblue\n"
    )
    return path


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ((0, 0, 0), "Left Corner"),
        ((5, 1, 1), "Left Corner"),
        ((4, 6, 0), "6 mm from Left Corner"),
        ((36, 36, 36), "Far Corner"),
        ((20, 20, 20), ""),
    ],
)
def test_a_place_has_the_name_of_its_region_or_of_one_nearby(atlas, place, name):
    assert read_anatomy(atlas).name_at(np.array(place, dtype=float)) == name


def test_a_label_that_the_table_does_not_name_has_no_name(atlas):
    atlas.with_name("atlas.tsv").write_text("index\tname\n12\tFar Corner\n")
    assert read_anatomy(atlas).name_at(np.zeros(3)) == ""


def test_a_name_is_one_short_printable_line(tmp_path):
    path = tmp_path / "names.tsv"
    path.write_text(f"index\tname\n1\tleft\x1b[31m\u202eside {'x' * 300}\n")
    (name,) = read_names(path).values()
    assert name.isprintable()
    assert len(name) <= LONGEST


@pytest.mark.parametrize(
    "text", ["", "label\tname\n1\ta\n", "index\tname\none\ta\n", "index\tname\n1\n"]
)
def test_a_table_of_another_form_is_refused_in_a_sentence(tmp_path, text):
    path = tmp_path / "names.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match="columns index and name"):
        read_names(path)


def test_an_atlas_of_fractions_is_refused(tmp_path):
    path = tmp_path / "maps.nii"
    nib.save(nib.Nifti1Image(np.full((2, 2, 2), 0.5, dtype=np.float32), AFFINE), path)
    with pytest.raises(DataError, match="3-D image of labels"):
        read_anatomy(path)
