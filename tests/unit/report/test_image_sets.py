"""A result's sets of maps on disk."""

import json

import nibabel as nib
import numpy as np

from consortium.algorithms.base import Result
from consortium.algorithms.findings import Finding, ImageSet
from consortium.report.image_sets import write_image_sets
from consortium.space.study_space import Space
from tests.support.report_samples import box_grid, sample_study


def test_a_set_of_one_map_is_one_image_with_its_entities_and_what_is_known_of_it(tmp_path):
    grid = box_grid()
    values = np.arange(grid.features, dtype=float)[:, None]
    one = ImageSet(
        values,
        "t-values of age.",
        ("age",),
        entities={"contrast": "age", "stat": "t"},
        found=(False,),
        accuracy=(Finding(0.9, state="not told"),),
    )
    (path,) = write_image_sets(tmp_path, sample_study(), Space(grid), Result({}, images={"t": one}))
    assert path.name.endswith(
        "_res-4_contrast-age_stat-t_desc-threehospitalsaverage_statmap.nii.gz"
    )
    image = np.asarray(nib.load(tmp_path / path).dataobj)
    assert image.shape == grid.shape
    np.testing.assert_array_equal(image[grid.mask], values[:, 0])
    sidecar = (tmp_path / path).with_name(path.name.replace(".nii.gz", ".json"))
    about = json.loads(sidecar.read_text())
    assert about["Found"] == [False]
    assert about["Accuracy"] == ["not told"]


def test_more_maps_are_the_volumes_of_one_image(tmp_path):
    grid = box_grid()
    two = ImageSet(np.ones((grid.features, 2)), "Maps.", ("a", "b"), suffix="components")
    (path,) = write_image_sets(
        tmp_path, sample_study(), Space(grid), Result({}, images={"maps": two})
    )
    assert nib.load(tmp_path / path).shape == (*grid.shape, 2)
    assert write_image_sets(tmp_path / "none", sample_study(), Space(grid), Result({})) == []
    assert not (tmp_path / "none").exists()
