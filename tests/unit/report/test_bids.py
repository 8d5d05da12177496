"""Names and the description of a data set."""

from __future__ import annotations

import json

import numpy as np
import pytest

from consortium import __version__
from consortium.report.bids import map_stem, resolution_label, start_dataset
from consortium.space.grid import Grid
from tests.support.report_samples import box_grid, sample_study


def test_description_names_the_generator(tmp_path):
    start_dataset(tmp_path, sample_study())
    description = json.loads((tmp_path / "dataset_description.json").read_text())
    assert set(description) == {"Name", "BIDSVersion", "DatasetType", "GeneratedBy"}
    assert description["DatasetType"] == "derivative"
    assert description["GeneratedBy"] == [{"Name": "cape-consortium", "Version": __version__}]


def test_what_bids_does_not_know_is_ignored(tmp_path):
    start_dataset(tmp_path, sample_study())
    lines = (tmp_path / ".bidsignore").read_text().splitlines()
    assert {
        "*_components.*",
        "*_mask.*",
        "*_noise.*",
        "*_loadings.*",
        "*_results.*",
        "privacy_report.json",
        "report.html",
        "transcript",
    } <= set(lines)


@pytest.mark.parametrize(("edge", "label"), [(4.0, "4"), (2.5, "2p5"), (10.0, "10")])
def test_resolution_is_a_label(edge, label):
    assert resolution_label(box_grid(edge)) == label


def test_voxels_that_are_no_cubes_have_no_resolution_entity():
    flat = Grid(np.ones((2, 2, 2), dtype=np.bool_), np.diag([3.0, 3.0, 5.0, 1.0]))
    assert "_res-" not in map_stem(sample_study(), flat)
