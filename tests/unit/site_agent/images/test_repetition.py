"""Repetition times with their sources: two that disagree, one that is a default, none at all."""

import json
from pathlib import Path

import nibabel as nib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from site_agent.data.survey import RecordingRun
from site_agent.images.repetition import Timing, seconds_apart, timing_of
from site_agent.images.summary import summarize_series
from tests.support.tiny_images import AFFINE, save_subject, tiny_series
from tests.unit.site_agent.images.test_summary import found_in, serious, with_step


def _run(folder: Path, step: float = 2.0, unit: str = "sec") -> RecordingRun:
    bold = save_subject(folder, "01", tiny_series())
    return RecordingRun(with_step(bold, step, unit))


def _tell(run: RecordingRun, text: str) -> Path:
    path = run.bold.with_name(run.bold.name.replace(".nii.gz", ".json"))
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("step", "unit", "seconds"),
    [(2.0, "sec", 2.0), (2000.0, "msec", 2.0), (7.2e5, "usec", 0.72), (1.0, "sec", 1.0)],
)
def test_the_header_is_read_in_its_own_unit(tmp_path: Path, step, unit, seconds) -> None:
    found = timing_of(_run(tmp_path, step, unit))
    assert found.origin == "header"
    assert found.seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("step", "unit"),
    [(2.0, "unknown"), (2000.0, "unknown"), (2000.0, "sec"), (2.0, "msec"), (0, "sec")],
)
def test_a_number_that_would_have_to_be_guessed_is_refused(tmp_path: Path, step, unit) -> None:
    with pytest.raises(DataError, match="a repetition time in s is required"):
        timing_of(_run(tmp_path, step, unit))


DAMAGED = {
    "cut": '{"RepetitionTime": 2',
    "text": "two seconds",
    "list": "[2]",
    "word": '{"RepetitionTime": "two"}',
    "null": '{"RepetitionTime": null}',
    "true": '{"RepetitionTime": true}',
    "milliseconds": '{"RepetitionTime": 2000}',
    "negative": '{"RepetitionTime": -2}',
    "nan": '{"RepetitionTime": NaN}',
    "comma": '{"RepetitionTime": "2,0"}',
    "empty": "",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_an_unreadable_json_file_is_not_an_absent_one(tmp_path: Path, case: str) -> None:
    run = _run(tmp_path)
    path = _tell(run, DAMAGED[case])
    with pytest.raises(DataError, match=path.name):
        seconds_apart(run)


def test_a_broken_link_to_a_json_file_is_not_an_absent_one(tmp_path: Path) -> None:
    run = _run(tmp_path)
    path = run.bold.with_name(run.bold.name.replace(".nii.gz", ".json"))
    path.symlink_to(tmp_path / "annex")
    with pytest.raises(DataError, match=path.name):
        seconds_apart(run)


def test_a_json_file_without_the_field_leaves_it_to_the_next_and_the_header(tmp_path: Path) -> None:
    run = _run(tmp_path)
    near = _tell(run, '{"TaskName": "rest"}')
    assert timing_of(run) == Timing(2.0, "header")
    far = tmp_path / "task-rest_bold.json"
    far.write_text('{"RepetitionTime": 3}')
    inherited = RecordingRun(run.bold, sidecars=(near, far))
    assert timing_of(inherited) == Timing(3.0, "JSON", (2.0,))
    assert timing_of(inherited).disagrees


@given(st.floats(0.01, 60), st.floats(-0.05, 0.05))
def test_times_disagree_beyond_one_percent(seconds: float, part: float) -> None:
    found = Timing(seconds, "JSON", (seconds * (1 + part),))
    if abs(abs(part) - 0.01) > 1e-6:
        assert found.disagrees == (abs(part) > 0.01)


def test_a_disagreement_and_a_default_are_warnings_with_counts(tmp_path: Path) -> None:
    for label, step in {"01": 2.0, "02": 1.0, "03": 2.0}.items():
        with_step(save_subject(tmp_path, label, tiny_series()), step)
    bold = with_step(save_subject(tmp_path, "04", tiny_series()), 2.0)
    _tell(RecordingRun(bold), json.dumps({"RepetitionTime": 2.5}))
    data = DataSection(high_pass=0.01)
    notes = serious(summarize_series(found_in(tmp_path, data), data))
    assert any(
        "1 participant (sub-04): the repetition times in the nearest JSON" in each for each in notes
    )
    assert any(
        "1 participant (sub-02): the repetition time is exactly 1 s" in each for each in notes
    )
    assert len(notes) == 2
    plain = summarize_series(found_in(tmp_path, data), DataSection())
    assert not serious(plain)
    assert len(plain.notes) == 1
    assert nib.load(bold).affine[0, 0] == AFFINE[0, 0]


def test_a_nearer_json_file_may_override_a_general_one(tmp_path: Path) -> None:
    with_step(save_subject(tmp_path, "01", tiny_series()), 2.0)
    (tmp_path / "bold.json").write_text('{"RepetitionTime": 1.0}')
    (tmp_path / "task-rest_bold.json").write_text('{"RepetitionTime": 2.0}')
    data = DataSection(high_pass=0.01)
    assert not serious(summarize_series(found_in(tmp_path, data), data))
    (tmp_path / "task-rest_bold.json").write_text('{"RepetitionTime": 1.5}')
    (note,) = serious(summarize_series(found_in(tmp_path, data), data))
    assert "nearest JSON file and in the header differ" in note


def test_a_number_without_a_unit_is_shown(tmp_path: Path) -> None:
    with_step(save_subject(tmp_path, "01", tiny_series()), 2.0, "unknown")
    facts = dict(summarize_series(found_in(tmp_path, DataSection()), DataSection()).facts)
    assert facts["repetition time"] == (
        "unknown, since the header states 2 without a unit of time (1 participant)"
    )
