"""Names of a data set's files."""

import numpy as np
import pytest

from consortium.report.bids import map_stem, mask_stem, resolution_label
from consortium.space.grid import Grid
from tests.support.report_samples import box_grid, sample_study


@pytest.mark.parametrize(("edge", "label"), [(4.0, "4"), (2.5, "2p5"), (10.0, "10")])
def test_resolution_is_a_label(edge, label):
    assert resolution_label(box_grid(edge)) == label


def test_voxels_that_are_no_cubes_have_no_resolution_entity():
    flat = Grid(np.ones((2, 2, 2), dtype=np.bool_), np.diag([3.0, 3.0, 5.0, 1.0]))
    assert "_res-" not in map_stem(sample_study(), flat)


def test_a_mask_is_of_a_template_and_of_no_task():
    assert mask_stem(sample_study(), box_grid()) == (
        "tpl-MNI152NLin2009cAsym_res-4_desc-threehospitalsaverage"
    )


@pytest.mark.parametrize(("measure", "task"), [("image", False), ("amplitude", True)])
def test_maps_of_single_images_name_no_task(measure, task):
    view = {"name": "faces", "source": "fmri", "measure": measure}
    view |= {"image": "desc-faces_statmap"} if measure == "image" else {}
    stem = map_stem(sample_study(features=[view]), box_grid(), "faces")
    assert ("_task-rest_" in stem) == task
    assert stem.endswith("desc-threehospitalsaveragefaces")
