"""Whom a study takes: each person by their own line, and nobody whom the hospital leaves out."""

from pathlib import Path

import pytest

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from site_agent.config import SiteConfig
from site_agent.data.people import candidates, chosen_by, left_out_here, read_left_out
from site_agent.data.survey import SkippedPerson, in_turn

LINES = (
    "participant_id\tdiagnosis\tage",
    "sub-01\tcontrol\t20",
    "sub-02\tpatient\t30",
    "sub-03\tcontrol\t70",
    "sub-04\tcontrol\tn/a",
    "06\tcontrol\t65",
)
RULES = {"diagnosis": {"levels": ["control"]}, "age": {"low": 18, "high": 65}}
EVERYBODY = ["01", "02", "03", "04", "05", "06"]


def data(**persons) -> DataSection:
    return DataSection.model_validate({"persons": persons or RULES})


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def bids(tmp_path: Path) -> Path:
    folder = tmp_path / "bids"
    folder.mkdir()
    for label in EVERYBODY:
        (folder / f"sub-{label}").mkdir()
    write(folder / "participants.tsv", *LINES)
    return folder


def test_who_fits_all_rules_is_taken_and_every_other_is_told_why(bids: Path) -> None:
    told = {each.label: each for each in chosen_by(bids, data())(EVERYBODY)}
    assert sorted(told) == ["02", "03", "04", "05"]
    assert {each.reason for each in told.values()} == {"not-chosen"}
    assert (
        told["03"].detail == "sub-03 does not fit the study's rules for diagnosis, age; left out."
    )
    assert "has no line for sub-05" in told["05"].detail


def test_one_person_is_chosen_whatever_the_others_lines_say(bids: Path) -> None:
    before = {each.label for each in chosen_by(bids, data())(EVERYBODY)}
    others = [line.replace("control", "patient") for line in LINES[2:]]
    write(bids / "participants.tsv", *LINES[:2], *others)
    after = {each.label for each in chosen_by(bids, data())(EVERYBODY)}
    assert ("01" in before) == ("01" in after) is False


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("participant_id\tage", "sub-01\t20"), "a column 'diagnosis' is required"),
        (
            ("participant_id\tage\tage\tdiagnosis", "01\t1\t2\ta"),
            "must have one column 'age', and line 1 names 2",
        ),
    ],
)
def test_a_table_that_leaves_it_open_is_an_error(bids: Path, lines, said: str) -> None:
    write(bids / "participants.tsv", *lines)
    with pytest.raises(DataError, match=said):
        list(chosen_by(bids, data())(EVERYBODY))


def test_who_has_two_rows_that_differ_is_not_chosen(bids: Path) -> None:
    write(bids / "participants.tsv", *LINES)
    before = {each.label for each in chosen_by(bids, data())(EVERYBODY)}
    assert "01" not in before
    write(bids / "participants.tsv", *LINES, "sub-01\tpatient\t3")
    assert {each.label for each in chosen_by(bids, data())(EVERYBODY)} == before | {"01"}


def test_rules_without_a_table_are_an_error(bids: Path) -> None:
    (bids / "participants.tsv").unlink()
    with pytest.raises(DataError, match=r"participants\.tsv: a table is required here"):
        list(chosen_by(bids, data())(EVERYBODY))
    with pytest.raises(DataError, match=r"A list of images has no participants\.tsv"):
        list(chosen_by([bids / "a.nii"], data())(EVERYBODY))


def test_the_hospitals_own_table_leaves_out_with_its_reason(tmp_path: Path) -> None:
    table = write(tmp_path / "out.tsv", "participant_id\treason", "sub-02\twithdrew consent")
    (told,) = left_out_here(table)(["01", "02"])
    assert told == SkippedPerson(
        "02", "left-out-here", f"sub-02 is excluded by {table}: withdrew consent"
    )
    assert list(left_out_here(None)(["01", "02"])) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("participant_id\twhy", "sub-02\tx"), "a column 'reason' is required"),
        (("participant_id\treason", "\twithdrew"), "line 2: every row must have a label"),
    ],
)
def test_a_table_that_is_not_clear_stops_the_site(tmp_path: Path, lines, said: str) -> None:
    with pytest.raises(DataError, match=said):
        list(left_out_here(write(tmp_path / "out.tsv", *lines))(["02"]))
    with pytest.raises(DataError, match=r"gone\.tsv: a table is required here"):
        list(left_out_here(tmp_path / "gone.tsv")(["02"]))


@pytest.mark.parametrize(
    "rows", [("sub-02\t",), ("sub-02",), ("sub-02\tage", "2\tage"), ("02\tage", "02\tmotion")]
)
def test_who_has_a_faulty_row_is_left_out_all_the_same(tmp_path: Path, rows) -> None:
    """A refusal of the whole run would show that somebody was added to the table."""
    table = write(tmp_path / "out.tsv", "participant_id\treason", *rows)
    assert [each.label for each in left_out_here(table)(["01", "02"])] == ["02"]
    with pytest.raises(DataError):
        read_left_out(table)


def test_candidates_are_those_whom_neither_leaves_out(bids: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "out.tsv", "participant_id\treason", "01\tmoved away")
    config = SiteConfig(name="east", dataset=bids, exchange="x", left_out=table)
    assert candidates(config, data()) == ["06"]
    assert candidates(config, DataSection()) == EVERYBODY[1:]


def test_the_first_who_leaves_a_person_out_gives_the_reason() -> None:
    def first(labels):
        return [SkippedPerson(x, "not-chosen", "a") for x in labels if x == "1"]

    def rest(labels):
        return [SkippedPerson(x, "over-limit", "b") for x in labels]

    assert [each.detail for each in in_turn(first, rest)(["1", "2"])] == ["a", "b"]
