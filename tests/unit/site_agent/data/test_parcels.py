"""Numbers of parcels as nibabel writes them are read as nibabel reads them, by parcels' names."""

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
    with pytest.raises(DataError, match="has no participant's folder"):
        read_table(tmp_path, VIEW)


COURSES = "xcp_d/sub-*/func/sub-*_task-rest_space-fsLR_seg-Glasser_den-91k_timeseries.ptseries.nii"
EDGES = TableView.model_validate(
    {
        "name": "edges",
        "source": "table",
        "file": COURSES,
        "columns": {"*-*": {"low": -1, "high": 1}},
        "regions": ["R_V1_ROI", "other", "L_V1_ROI"],
    }
)


def courses_of(root, label, names=NAMES, seed=0):
    path = root / COURSES.replace("sub-*", f"sub-{label}")
    series = np.random.default_rng(seed).standard_normal((30, len(names)))
    return write_parcels(path, series + series[:, :1], names)


def test_correlations_of_parcels_courses_are_those_of_nibabels_values(tmp_path):
    others = "R_V1_ROI", "spare", "L_V1_ROI", "other"  # in another order
    paths = {label: courses_of(tmp_path, label, seed=int(label)) for label in "12"}
    paths["3"] = courses_of(tmp_path, "3", others)
    found, lacking = read_table(tmp_path, EDGES)
    assert not lacking
    for label, path in paths.items():
        image = nib.load(path)
        names = list(image.header.get_axis(1).name)
        order = [names.index(name) for name in ("R_V1_ROI", "other", "L_V1_ROI")]
        every = np.corrcoef(np.asarray(image.dataobj, dtype=np.float64)[:, order].T)
        np.testing.assert_allclose(found[label], every[[0, 0, 1], [1, 2, 2]], rtol=0, atol=1e-12)


def _other_parcels(root):
    courses_of(root, "2", ("L_Vis1_ROI", "other", "R_Vis1_ROI"))


def _a_map(root):
    path = courses_of(root, "2")
    made = write_parcels(path.with_name("x.pscalar.nii"), [2, 3, 4], NAMES)
    made.replace(path)


def _cut_short(root):
    path = courses_of(root, "2")
    path.write_bytes(path.read_bytes()[:-200])


@pytest.mark.parametrize("write", [_other_parcels, _a_map, _cut_short])
def test_who_has_no_courses_of_the_studys_parcels_is_left_out_with_a_sentence(tmp_path, write):
    courses_of(tmp_path, "1")
    write(tmp_path)
    found, lacking = read_table(tmp_path, EDGES)
    assert list(found) == ["1"]
    assert "column R_V1_ROI-other" in lacking["2"].detail
