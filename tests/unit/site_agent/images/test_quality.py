"""Images that can be used and look odd are named to the site's own people, and no others are."""

import nibabel as nib
import numpy as np
import pytest

from consortium.study.data_section import DataSection
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.quality import quality_remarks
from tests.support.tiny_images import AFFINE, save, tiny_series


def _told(path, **settings):
    return quality_remarks([Subject("x", (RecordingRun(path),))], DataSection(**settings))


def _with_forms(path, apart, qform_code=4):
    image = nib.Nifti1Image(tiny_series(), AFFINE)
    moved = AFFINE.copy()
    moved[0, 3] += apart
    image.header.set_sform(AFFINE, code=4)
    image.header.set_qform(moved, code=qform_code)
    nib.save(image, path)
    return path


@pytest.mark.parametrize(("voxels", "named"), [(0.0, False), (0.4, False), (0.6, True)])
def test_forms_that_disagree_by_half_a_voxel_are_named(tmp_path, voxels, named):
    size = float(np.linalg.norm(AFFINE[:3, 0]))
    told = _told(_with_forms(tmp_path / "scan_bold.nii", voxels * size))
    assert [f"up to {voxels * size:.1f} mm apart" in odd for odd in told] == [True] * named


def test_a_qform_without_a_code_says_nothing(tmp_path):
    assert not _told(_with_forms(tmp_path / "scan_bold.nii", 50.0, qform_code=0))


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.05, 1.6])
def test_a_first_volume_far_from_the_next_is_named(tmp_path, factor):
    series = np.abs(tiny_series()) + 1000
    series[..., 0] *= factor
    path = save(tmp_path / "scan_bold.nii.gz", series)
    told = _told(path)
    assert bool(told) == (abs(factor - 1) > 0.1), told
    assert all("non_steady_state_outlier*" in odd for odd in told)
    assert not _told(path, confounds=["non_steady_state_outlier*"])


def test_an_image_that_cannot_be_read_is_left_to_loading(tmp_path):
    (tmp_path / "scan_bold.nii").write_bytes(b"no image")
    assert not _told(tmp_path / "scan_bold.nii")
