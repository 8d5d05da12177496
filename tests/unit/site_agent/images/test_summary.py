"""Summary of a site's images: facts, and warnings where a choice or a value may be wrong."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.algorithms.base import Serious
from consortium.space.atlas import Target
from consortium.space.study_space import Space, ViewSpace
from consortium.study.data_section import DataSection
from consortium.views.fmri import FmriView
from site_agent.data.bids import find_subjects
from site_agent.data.survey import Subject
from site_agent.data.understood import Understanding
from site_agent.images.measures import read_contrasts
from site_agent.images.summary import summarize_images, summarize_series
from tests.support.tiny_images import (
    AFFINE,
    FUNC,
    save,
    save_confounds,
    save_subject,
    tiny_grid,
    tiny_series,
    without_orientation,
)

TARGET = Target(tiny_grid())


def found_in(root: Path, data: DataSection) -> tuple[Subject, ...]:
    """Participants of a data set."""
    return find_subjects(root, data)[0]


def serious(found: Understanding) -> list[str]:
    """Warnings of a summary."""
    return [note for note in found.notes if isinstance(note, Serious)]


def with_step(bold: Path, step: float, unit: str = "sec") -> Path:
    """Write a repetition time and its unit into an image's header."""
    image = nib.load(bold)
    values = np.asarray(image.dataobj)
    image.header.set_zooms((*image.header.get_zooms()[:3], step))
    image.header.set_xyzt_units(xyz="mm", t=unit)
    nib.save(nib.Nifti1Image(values, image.affine, image.header), bold)
    return bold


def _facts(found: Understanding) -> dict[str, str]:
    return dict(found.facts)


def test_facts_of_an_ordinary_data_set(tmp_path: Path) -> None:
    for number in range(3):
        bold = save_subject(tmp_path, f"0{number}", tiny_series(number, volumes=24 + 6 * number))
        with_step(bold, 2.0)
        save_confounds(bold, {"a": np.arange(24.0 + 6 * number), "b": np.ones(24 + 6 * number)})
    data = DataSection(confounds=["a", "b*"])
    found = summarize_series(found_in(tmp_path, data), data, TARGET)
    facts = _facts(found)
    assert facts["repetition time"] == "2 s from the header (3 participants)"
    assert facts["voxels and orientation"] == "4 × 4 × 4 mm RAS (3 participants)"
    assert facts["volumes"] == "median 30, 24 to 36, of 3 participants"
    assert facts["least degrees of freedom left"] == "20 of 24 volumes (sub-00)"
    assert facts["label desc-"] == "desc-preproc (3 participants)"
    assert found.notes == ()


def test_several_labels_are_a_warning_whose_line_ends_it(tmp_path: Path) -> None:
    for number in range(12):
        kinds = ("denoised", "denoisedSmoothed")[: 1 + number % 2] if number < 6 else ("other",)
        for kind in kinds:
            name = f"sub-{number:02d}_{FUNC}".replace("preproc", kind)
            save(tmp_path / f"sub-{number:02d}" / "func" / name, tiny_series(number))
    data = DataSection()
    found = summarize_series(found_in(tmp_path, data), data, TARGET)
    (note,) = serious(found)
    assert "desc-denoised (6 participants), desc-other (6 participants)." in note
    assert "desc-denoisedSmoothed (3 participants) also fit" in note
    assert "'data: {description: denoised}'" in note
    stated = DataSection(description="denoised")
    again = summarize_series(found_in(tmp_path, stated), stated, TARGET)
    assert (len(found_in(tmp_path, stated)), serious(again)) == (6, [])


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("res-1_desc-preproc", "res-2_desc-preproc"), {"entities": {"res": "1"}}),
        (("cohort-5_desc-preproc", "cohort-6_desc-preproc"), {"space": "MNI152NLin2009cAsym+5"}),
        (("desc-preproc", "desc-smooth"), {"description": "preproc"}),
    ],
)
def test_two_versions_for_all_are_a_warning_whose_line_ends_it(tmp_path, names, line) -> None:
    for label in ("01", "02"):
        for name in names:
            image = f"sub-{label}_{FUNC}".replace("desc-preproc", name)
            save(tmp_path / f"sub-{label}" / "func" / image, tiny_series())
    data = DataSection()
    (note,) = serious(summarize_series(found_in(tmp_path, data), data, TARGET))
    ((key, value),) = line.items()
    words = (
        f"{{{', '.join(f'{k}: {v!r}' for k, v in value.items())}}}" if key == "entities" else value
    )
    assert f"'data: {{{key}: {words}}}'" in note
    stated = DataSection.model_validate(line)
    assert len(found_in(tmp_path, stated)) == 2
    assert not serious(summarize_series(found_in(tmp_path, stated), stated, TARGET))


def test_a_recording_in_two_formats_is_a_warning(tmp_path: Path) -> None:
    bold = save_subject(tmp_path, "01", tiny_series())
    save(bold.with_name(bold.name.removesuffix(".gz")), tiny_series(1))
    (note,) = serious(summarize_series(found_in(tmp_path, DataSection()), DataSection(), TARGET))
    assert "1 participant have a recording both as .nii and as .nii.gz" in note


def test_links_are_counted_and_folders_that_are_not_read_are_named(tmp_path: Path) -> None:
    root = tmp_path / "bids"
    for session in "abc":
        stem = f"sub-01_ses-{session}_{FUNC}"
        place = root / "sub-01" if session == "a" else root / "store"
        save(
            (tmp_path if session == "c" else place) / f"ses-{session}" / "func" / stem,
            tiny_series(),
        )
    (root / "sub-01" / "ses-b").symlink_to(root / "store" / "ses-b")
    (root / "sub-01" / "ses-c").symlink_to(tmp_path / "ses-c")
    found = summarize_series(found_in(root, DataSection()), DataSection(), TARGET)
    facts = _facts(found)
    assert facts["linked folders"] == "1 folder of 1 participant followed"
    assert facts["recordings of a participant"] == "2 recordings (1 participant)"
    (note,) = serious(found)
    assert f"{root / 'sub-01' / 'ses-c'} is a link to {tmp_path / 'ses-c'}" in note


def test_a_damaged_file_stops_nothing(tmp_path: Path) -> None:
    for label in ("01", "02"):
        save_subject(tmp_path, label, tiny_series())
    broken = save_subject(tmp_path, "03", tiny_series())
    for content in (b"", b"no image", broken.read_bytes()[:30]):
        broken.write_bytes(content)
        facts = _facts(summarize_series(found_in(tmp_path, DataSection()), DataSection(), TARGET))
        assert facts["voxels and orientation"] == "4 × 4 × 4 mm RAS (2 participants)"


def test_images_without_an_orientation_are_a_warning(tmp_path: Path) -> None:
    without_orientation(save_subject(tmp_path, "01", tiny_series()))
    found = summarize_series(found_in(tmp_path, DataSection()), DataSection())
    assert "by a guess (1 participant)" in _facts(found)["voxels and orientation"]
    assert ["both 0" in each for each in serious(found)] == [True]


VIEW = ViewSpace(FmriView(name="task", source="fmri", measure="image", image="statmap"), 11)


def test_single_images_are_summarized(tmp_path: Path) -> None:
    for label, named in {"01": "space-MNI152NLin2009cAsym_", "02": ""}.items():
        volume = tiny_series(int(label))[..., 0]
        save(tmp_path / f"sub-{label}" / f"sub-{label}_{named}statmap.nii.gz", volume)
    path = save(tmp_path / "sub-03" / "sub-03_statmap.nii", tiny_series(3)[..., 0], AFFINE)
    without_orientation(path)
    space, data = Space(tiny_grid()), DataSection()
    found = summarize_images(tmp_path, VIEW, data)
    facts = _facts(found)
    assert "4 × 4 × 4 mm RAS (2 participants)" in facts["voxels and orientation"]
    assert "without space- (2 participants)" in facts["label space-"]
    assert ["(sub-03): sform_code" in each for each in serious(found)] == [True]
    vectors, skipped = read_contrasts(tmp_path, data, space, VIEW.view, 0.0)
    assert sorted(vectors) == ["01", "02"]
    assert "accept_unoriented" in skipped[0].detail
    vectors, skipped = read_contrasts(tmp_path, data, space, VIEW.view, 0.0, accept_unoriented=True)
    assert (sorted(vectors), skipped) == (["01", "02", "03"], [])


def test_a_folder_that_is_almost_a_participants_is_named(tmp_path: Path) -> None:
    save_subject(tmp_path, "01", tiny_series())
    for name in ("Sub-02", "sub_03", "subject-04", "submissions", "derivatives", "sub-05.txt"):
        (tmp_path / name).mkdir()
    (tmp_path / "SUB-06").touch()
    (note,) = serious(summarize_series(found_in(tmp_path, DataSection()), DataSection()))
    assert "Sub-02, sub_03, subject-04. Rename" in note
    assert note.startswith("3 folders in ")


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("ses-a", "ses-b"), {"session": "a"}),
        (("run-01", "run-02"), {"run": 1}),
        (("desc-x", "desc-y"), {"description": "x"}),
        (("res-1", "res-2"), {"entities": {"res": "1"}}),
    ],
)
def test_the_line_that_chooses_one_of_several_images_works(tmp_path, names, line) -> None:
    for number, name in enumerate(names):
        path = tmp_path / "sub-01" / f"sub-01_{name}_statmap.nii"
        save(path, tiny_series(number)[..., 0])
    space = Space(tiny_grid())
    values, (skipped,) = read_contrasts(tmp_path, DataSection(), space, VIEW.view, 0.0)
    words = str(line).replace("'", "") if "entities" not in line else "{entities: {res: '1'}}"
    assert (values, f"Write 'data: {words}'" in skipped.detail) == ({}, True)
    values, skipped = read_contrasts(
        tmp_path, DataSection.model_validate(line), space, VIEW.view, 0.0
    )
    assert (sorted(values), skipped) == (["01"], [])
