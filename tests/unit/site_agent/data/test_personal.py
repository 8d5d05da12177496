"""FreeSurfer's stats files as a view: regions by name, persons by folder."""

import numpy as np
import pytest

from consortium.errors import DataError
from consortium.views.table import TableView
from site_agent.data.tsv import read_table

APARC = """\
# Title Segmentation Statistics
# Measure Cortex, MeanThickness, Mean Thickness, {mean}, mm
# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg
bankssts   1200  800  2100  {thick}
insula     2200  1500 6900  3.0
"""
COLUMNS = {
    "bankssts_ThickAvg": {"low": 1, "high": 4},
    "insula_GrayVol": {"low": 0, "high": 13800},
    "MeanThickness": {"low": 1, "high": 4},
}


def view(file="freesurfer/sub-*/stats/lh.aparc.stats"):
    return TableView(name="cortex", source="table", file=file, columns=COLUMNS)


def put(folder, person, text, name="lh.aparc.stats"):
    path = folder / "freesurfer" / person / "stats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_regions_and_whole_brain_numbers_are_found_by_name(tmp_path):
    put(tmp_path, "sub-01", APARC.format(thick=2.5, mean=2.8))
    put(tmp_path, "sub-02", APARC.format(thick=4.0, mean=1.0))
    put(tmp_path, "fsaverage", APARC.format(thick=1, mean=1))
    vectors, lacking = read_table(tmp_path, view())
    assert sorted(vectors) == ["01", "02"]
    assert np.allclose(vectors["01"], [0.0, 0.0, 0.2])
    assert np.allclose(vectors["02"], [1.0, 0.0, -1.0])
    assert not lacking


@pytest.mark.parametrize("text", ["", "# ColHeaders StructName ThickAvg\nbankssts", "\x00" * 10])
def test_who_lacks_a_region_is_left_out_with_a_sentence(tmp_path, text):
    put(tmp_path, "sub-01", APARC.format(thick=2.5, mean=2.8))
    put(tmp_path, "sub-02", text)
    put(tmp_path, "sub-03", APARC.format(thick="nan", mean=2.8))
    (tmp_path / "freesurfer" / "sub-04").mkdir()
    vectors, lacking = read_table(tmp_path, view())
    assert list(vectors) == ["01"]
    assert sorted(lacking) == ["02", "03", "04"]
    assert "column bankssts_ThickAvg has no value" in lacking["04"].detail


@pytest.mark.parametrize("file", ["../sub-*/lh.aparc.stats", "/etc/sub-*/passwd", "sub-*/../../x"])
def test_a_study_does_not_lead_out_of_the_data_set(tmp_path, file):
    (tmp_path / "site" / "sub-01").mkdir(parents=True)
    with pytest.raises(DataError, match="not in the site's data set"):
        read_table(tmp_path / "site", view(file))


@pytest.mark.parametrize(
    "file",
    [
        "sub-*1/sub-*/lh.stats",
        "asub-*/sub-*/lh.stats",
        "sub-*/sub-*1/lh.stats",
        "sub-*/sub-*1.stats",
    ],
)
def test_nobody_brings_another_persons_numbers(tmp_path, file):
    for person in (
        "sub-01",
        "sub-011",
    ):  # the second would come as the first's, at the first's cost
        path = tmp_path / file.replace("sub-*", person)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(APARC.format(thick=2.5, mean=2.8), encoding="utf-8")
        (tmp_path / person).mkdir(exist_ok=True)
    with pytest.raises(DataError, match="may be another participant's"):
        read_table(tmp_path, view(file))


def test_a_link_out_of_the_data_set_is_not_followed(tmp_path):
    put(tmp_path / "other", "sub-01", APARC.format(thick=2.5, mean=2.8))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "freesurfer").symlink_to(tmp_path / "other" / "freesurfer")
    with pytest.raises(DataError, match="not in the site's data set"):
        read_table(tmp_path / "site", view())


def test_a_person_who_is_a_link_out_of_the_data_set_is_left_out(tmp_path):
    put(tmp_path / "other", "sub-02", APARC.format(thick=2.5, mean=2.8))
    put(tmp_path / "site", "sub-01", APARC.format(thick=2.5, mean=2.8))
    link = tmp_path / "site" / "freesurfer" / "sub-02"
    link.symlink_to(tmp_path / "other" / "freesurfer" / "sub-02")
    vectors, lacking = read_table(tmp_path / "site", view())
    assert list(vectors) == ["01"]
    assert list(lacking) == ["02"]


def test_a_path_without_persons_is_refused(tmp_path):
    (tmp_path / "freesurfer").mkdir()
    with pytest.raises(DataError, match="no folder sub-"):
        read_table(tmp_path, view())
