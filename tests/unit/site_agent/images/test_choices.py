"""Labels of chosen files, counted by participant."""

from pathlib import Path

import pytest

from consortium.study.data_section import DataSection
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.choices import Choices, home_of

PREPROC = Path("sub-1_task-rest_desc-preproc_bold.nii.gz")


def test_one_label_for_all_is_a_fact_and_no_warning() -> None:
    choices = Choices(DataSection())
    for label in "abc":
        choices.add(label, PREPROC, [PREPROC])
    assert [tuple(fact) for fact in choices.facts()] == [
        ("label desc-", "desc-preproc (3 participants)"),
        ("label task-", "task-rest (3 participants)"),
    ]
    assert list(choices.notes()) == []


@pytest.mark.parametrize("stated", [{}, {"entities": {"res": "2"}}])
def test_a_label_that_the_study_states_is_not_warned_of(stated: dict) -> None:
    choices = Choices(DataSection.model_validate(stated))
    choices.add("a", Path("x_res-2_bold.nii"), [Path("x_res-1_bold.nii")])
    assert len(list(choices.notes())) == (0 if stated else 1)


def test_the_folder_of_a_participant_is_found_and_a_listed_file_has_none() -> None:
    path = Path("/data/sub-1/ses-a/func") / PREPROC
    assert home_of(Subject("1", (RecordingRun(path),))) == Path("/data/sub-1")
    assert home_of(Subject("1", (RecordingRun(Path("/x") / PREPROC),))) is None
