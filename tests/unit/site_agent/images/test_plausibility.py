"""Values and files that may be wrong: named in `check`, with counts, and never left out."""

import shutil
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.space.study_space import ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.fmri import FmriView
from consortium.views.surface import SurfaceView
from site_agent.images.summary import summarize_images, summarize_maps
from tests.contract.inputs.images import MESH, cortex
from tests.support.surfaces import write_values
from tests.support.tiny_images import AFFINE, save, tiny_series
from tests.unit.site_agent.images.test_summary import serious

VIEW = ViewSpace(FmriView(name="map", source="fmri", measure="image", image="statmap"), 11)
VERTICES = 10_242


def image(root: Path, label: str, scale: float = 1.0, more: str = "") -> Path:
    """Write a participant's image of values around 1000 times a scale."""
    path = root / f"sub-{label}" / f"sub-{label}_{more}space-MNI152NLin2009cAsym_statmap.nii.gz"
    return save(path, scale * tiny_series(int(label))[..., 0])


def side(root: Path, label: str, hemi: str, scale: float = 1.0) -> Path:
    """Write one side of a participant's map of values around 2.5 times a scale."""
    path = root / f"sub-{label}" / f"sub-{label}_hemi-{hemi}_space-{MESH}_thickness.shape.gii"
    generator = np.random.default_rng([int(label), ord(hemi)])
    write_values(path, (scale * generator.uniform(2, 3, VERTICES)).astype(np.float32))
    return path


def of_images(root: Path) -> tuple[dict[str, str], list[str]]:
    """Facts and warnings of a data set of images."""
    found = summarize_images(root, VIEW, DataSection())
    return dict(found.facts), serious(found)


def of_maps(root: Path) -> tuple[dict[str, str], list[str]]:
    """Facts and warnings of a data set of maps."""
    named = {"name": "cortex", "source": "surface", "mesh": MESH, "values": "thickness"}
    view = ViewSpace(SurfaceView.model_validate(named), 2 * VERTICES, mesh=cortex())
    found = summarize_maps(root, view, DataSection())
    return dict(found.facts), serious(found)


def test_an_ordinary_data_set_has_a_scale_and_no_warning(tmp_path: Path) -> None:
    for label in ("01", "02", "03"):
        image(tmp_path / "a", label, float(label))
        for hemi in "LR":
            side(tmp_path / "b", label, hemi)
    facts, notes = of_images(tmp_path / "a")
    assert facts["median absolute value of view 'map'"].startswith("1.0")
    assert facts["median absolute value of view 'map'"].endswith("of 3 participants")
    assert notes == []
    facts, notes = of_maps(tmp_path / "b")
    assert facts["median absolute value of view 'cortex'"].startswith("2.5")
    assert notes == []


@pytest.mark.parametrize(("scale", "warns"), [(1000.0, True), (0.001, True), (20.0, False)])
def test_images_in_another_unit_are_a_warning(tmp_path: Path, scale: float, warns: bool) -> None:
    for number in range(1, 6):
        image(tmp_path, f"0{number}", scale if number == 3 else 1.0)
    _, notes = of_images(tmp_path)
    assert len(notes) == warns
    for note in notes:
        assert "1 participant (sub-03) has more than 10 times" in note


def test_maps_in_another_unit_are_a_warning(tmp_path: Path) -> None:
    for number in range(1, 4):
        for hemi in "LR":
            side(tmp_path, f"0{number}", hemi, 1000.0 if number == 2 else 1.0)
    _, (note,) = of_maps(tmp_path)
    assert "1 participant (sub-02)" in note


def test_huge_values_are_a_warning(tmp_path: Path) -> None:
    image(tmp_path, "01")
    path = image(tmp_path, "02")
    values = np.asarray(nib.load(path).dataobj).copy()
    values[1, 2, 1] = 3e22
    save(path, values)
    _, (note,) = of_images(tmp_path)
    assert "1 participant (sub-02) has an absolute value above 1e+20" in note


def test_one_image_for_two_participants_is_a_warning(tmp_path: Path) -> None:
    first = image(tmp_path, "01")
    shutil.copy(first, image(tmp_path, "02"))
    image(tmp_path, "03")
    _, (note,) = of_images(tmp_path)
    assert "2 participants (sub-01, sub-02) have a file with the same content" in note


def test_one_file_for_both_hemispheres_is_a_warning(tmp_path: Path) -> None:
    for label in ("01", "02"):
        left, right = (side(tmp_path, label, hemi) for hemi in "LR")
    shutil.copy(left, right)
    _, (note,) = of_maps(tmp_path)
    assert "1 participant (sub-02) has two files with the same content" in note


@pytest.mark.parametrize(("mirrored", "warns"), [(True, True), (False, False)])
def test_orientations_that_exchange_left_and_right_are_a_warning(
    tmp_path: Path, mirrored: bool, warns: bool
) -> None:
    image(tmp_path, "01")
    path = image(tmp_path, "02")
    found = nib.load(path)
    other = np.diag([-1.0 if mirrored else 1.0, 1, 1, 1]) @ AFFINE
    found.set_sform(AFFINE, code=4)
    found.set_qform(other, code=1)
    nib.save(nib.Nifti1Image(np.asarray(found.dataobj), None, found.header), path)
    _, notes = of_images(tmp_path)
    assert ["(sub-02): sform and qform disagree" in note for note in notes] == [True] * warns


def test_images_of_different_tasks_are_a_warning(tmp_path: Path) -> None:
    for label, task in {"01": "task-motor_", "02": "task-motor_", "03": "task-nback_"}.items():
        image(tmp_path, label, more=task)
    facts, (note,) = of_images(tmp_path)
    assert facts["label task-"].startswith("task-motor (2 participants), task-nback (1")
    assert "of different tasks: task-motor (2 participants), task-nback (1 participant)" in note
    shutil.rmtree(tmp_path / "sub-03")
    assert of_images(tmp_path)[1] == []
