"""Recordings that differ from a site's others, for its own people."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.study.data_section import DataSection
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.recordings import quality_remarks, recording_remarks
from tests.support.data_fields import tell_time
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


def person(folder: Path, label: str, *lengths: int, step: float | None = 2.0) -> Subject:
    runs = []
    for number, volumes in enumerate(lengths):
        path = folder / f"sub-{label}_run-{number}_bold.nii.gz"
        save(path, tiny_series(volumes=volumes))
        if step is not None:
            tell_time(path, step)
        runs.append(RecordingRun(path))
    return Subject(label, tuple(runs))


def test_recordings_that_are_alike_are_passed_over(tmp_path: Path) -> None:
    people = [person(tmp_path, f"{n}", 30 + n, 31) for n in range(4)]
    assert recording_remarks(people) == ()
    assert recording_remarks([]) == ()


def test_shorter_longer_and_slower_ones_are_named(tmp_path: Path) -> None:
    people = [person(tmp_path, f"{n}", 30) for n in range(6)]
    people += [person(tmp_path, "short", 20), person(tmp_path, "long", 90)]
    people += [person(tmp_path, "slow", 30, step=2.2)]
    length, step = recording_remarks(people)
    assert "sub-short_run-0_bold.nii.gz and 1 other (sub-long_run-0_bold.nii.gz)" in length
    assert "have 20 to 90 volumes, where the median is 30" in length
    assert "sub-slow_run-0_bold.nii.gz has 2.2 s from volume to volume" in step


def test_a_damaged_file_or_one_without_times_stops_nothing(tmp_path: Path) -> None:
    people = [person(tmp_path, f"{n}", 30) for n in range(3)]
    people += [person(tmp_path, "x", 10, step=None), person(tmp_path, "y", 30)]
    people[-1].runs[0].bold.write_bytes(b"damaged")
    (length,) = recording_remarks(people)
    assert "sub-x_run-0_bold.nii.gz has 10 volumes" in length
