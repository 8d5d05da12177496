"""Names of files: their entities, a study's choice, and the order of versions."""

from pathlib import Path

import pytest

from consortium.study.data_section import DataSection
from site_agent.data.names import (
    entities,
    has_version,
    is_in_space,
    labels_by,
    preference,
    recording_key,
    recording_pattern,
    same_recording,
)


def test_a_cohort_in_the_label_of_a_space_is_an_entity() -> None:
    spellings = ("x_space-MNIInfant+2_bold.nii", "x_space-MNIInfant_cohort-2_bold.nii.gz")
    found = [entities(Path(name)) for name in spellings]
    assert found[0] == found[1] == {"space": "MNIInfant", "cohort": "2", "suffix": "bold"}
    assert is_in_space(found[0], DataSection(space="MNIInfant+2"))
    assert is_in_space(found[0], DataSection(space="MNIInfant"))
    assert not is_in_space(found[0], DataSection(space="MNIInfant+3"))


@pytest.mark.parametrize(
    ("name", "strict", "fits"),
    [
        ("desc-a_res-2_bold.nii", True, True),
        ("desc-a_bold.nii", True, False),
        ("desc-a_bold.nii", False, True),
        ("bold.nii", False, True),
        ("desc-b_res-2_bold.nii", False, False),
        ("desc-a_res-02_bold.nii", True, False),
    ],
)
def test_versions_are_asked_for_strictly_or_not(name: str, strict: bool, fits: bool) -> None:
    data = DataSection(description="a", entities={"res": "2"})
    assert has_version(entities(Path(name)), data, strict=strict) == fits


def test_an_index_is_a_number_and_a_label_is_not() -> None:
    one, other = (entities(Path(f"sub-1_{run}_bold.nii")) for run in ("run-1", "run-01"))
    assert recording_key(one) != recording_key(other)
    assert same_recording(one) == same_recording(other)
    data = DataSection(entities={"chunk": "1"})
    assert has_version(entities(Path("x_chunk-01_bold.nii")), data)


def test_versions_are_sorted_by_a_public_order() -> None:
    names = [
        "x_desc-preproc_bold.nii.gz",
        "x_res-2_desc-preproc_bold.nii.gz",
        "x_bold.nii",
        "x_bold.nii.gz",
        "x_desc-denoised_bold.nii.gz",
        "x_desc-denoisedSmoothed_bold.nii.gz",
    ]
    found = sorted(map(Path, names[::-1]), key=preference)
    assert [path.name for path in found] == names
    assert list(labels_by(found, "desc")) == ["preproc", "", "denoised", "denoisedSmoothed"]


def test_the_pattern_names_all_that_a_study_asks_for() -> None:
    data = DataSection(session="a", run=2, description="b", entities={"res": "2"}, space="S+5")
    assert recording_pattern(data) == "task-rest, ses-a, run-2, desc-b, res-2 in space-S+5"
