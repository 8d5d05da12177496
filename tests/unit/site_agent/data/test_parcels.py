"""A number per parcel as nibabel writes it is read as nibabel reads it, by the parcel's name."""

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.views.table import TableView
from site_agent.data.tsv import read_table
from tests.support.surfaces import halves_of, write_cifti, write_parcels

FILE = "sub-*/anat/sub-*_thickness.pscalar.nii"
VIEW = TableView.model_validate(
    {
        "name": "cortex",
        "source": "table",
        "file": FILE,
        "columns": {"*": {"low": 1, "high": 5}},
        "regions": ["R_V1_ROI", "L_V1_ROI"],
    }
)
NAMES = ("L_V1_ROI", "other", "R_V1_ROI")


def path_of(root, label):
    return root / FILE.replace("sub-*", f"sub-{label}")


def test_values_are_nibabels_in_the_studys_order(tmp_path):
    values = np.random.default_rng(0).uniform(1, 5, (2, 3)).astype(np.float32)
    for label, own in zip("12", values, strict=True):
        write_parcels(path_of(tmp_path, label), own, NAMES)
    found, lacking = read_table(tmp_path, VIEW)
    assert not lacking
    for label in "12":
        stored = np.asarray(nib.load(path_of(tmp_path, label)).dataobj, dtype=np.float64)[0]
        np.testing.assert_allclose(found[label], (stored[[2, 0]] - 3) / 2, rtol=0, atol=1e-15)


def _lacks(root):
    write_parcels(path_of(root, "2"), [2, 3], NAMES[:2])


def _hole(root):
    write_parcels(path_of(root, "2"), [2, 3, np.nan], NAMES)


def _twice(root):
    write_parcels(path_of(root, "2"), [2, 3, 4], ("L_V1_ROI", "R_V1_ROI", "R_V1_ROI"))


def _two_maps(root):
    write_parcels(path_of(root, "2"), [2, 3, 4], NAMES, maps=2)


def _vertices(root):
    write_cifti(path_of(root, "2"), *halves_of("fsaverage5"), "fsaverage5")


def _damaged(root):
    path_of(root, "2").parent.mkdir(parents=True)
    path_of(root, "2").write_bytes(b"no image")


def _unknown_structure(root):
    write_parcels(path_of(root, "2"), [2, 3, 4], NAMES)
    path = path_of(root, "2")
    path.write_bytes(path.read_bytes().replace(b"CIFTI_STRUCTURE_", b"CIFTI_STRUCTURX_"))


@pytest.mark.parametrize(
    "write", [_lacks, _hole, _twice, _two_maps, _vertices, _damaged, _unknown_structure]
)
def test_who_has_no_one_number_for_each_is_left_out(tmp_path, write):
    write_parcels(path_of(tmp_path, "1"), [2, 3, 4], NAMES)
    write(tmp_path)
    found, lacking = read_table(tmp_path, VIEW)
    assert list(found) == ["1"]
    assert lacking["2"].reason == "no-view"
    assert "_V1_ROI" in lacking["2"].detail


def test_a_site_without_persons_is_told(tmp_path):
    with pytest.raises(DataError, match="has no folder sub-"):
        read_table(tmp_path, VIEW)
