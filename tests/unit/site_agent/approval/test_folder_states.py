"""The states of a site's folder are recorded in its ledger, and older ones are noticed."""

import shutil
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import ConfigurationError, StudyError
from consortium.membership.keys import load_identity
from consortium.membership.roster import Roster
from site_agent.approval.approval import Terms, approvals, approve, retire_record
from site_agent.approval.folder_states import FolderStates
from site_agent.config import SiteConfig
from site_agent.enrolment.pinned_consortium import PinnedConsortium, read_pinned
from site_agent.layout import APPROVED, PINNED
from site_agent.ledger.export import export_json
from site_agent.ledger.ledger import Ledger
from site_agent.status import read_status
from tests.support.membership_files import papers, public, publish

HEADER = "participant_id\treason\n"


def _states(place: DemoFolders, table: Path | None = None) -> FolderStates:
    folder = place.site("north")
    config = SiteConfig.load(folder).model_copy(update={"left_out": table})
    return FolderStates(folder, config, load_identity(folder), Ledger(config.ledger))


def _approve(place: DemoFolders, runs: int = 1) -> None:
    folder, files = place.site("north"), place.files
    identity = load_identity(folder)
    approve(folder, "north", identity, files.study, files.roster, Terms(runs))


def _lines(states: FolderStates) -> list[tuple[str, int, str]]:
    """Approvals and rosters that were recorded."""
    lines = [entry.charge for entry in states.ledger.entries() if entry.event == "state"]
    return [(x.stage, x.round, x.statistic) for x in lines if x.stage != "left-out"]


@pytest.fixture
def office(tmp_path: Path) -> tuple[DemoFolders, Roster]:
    place, members = papers(tmp_path)
    _approve(place)
    return place, members


def test_each_state_is_recorded_once(office: tuple[DemoFolders, Roster]) -> None:
    place, members = office
    states = _states(place)
    for _ in range(3):
        assert states.settle("noon") == []
    serial = members.serial
    first = [("approval", 1, "approved"), ("roster", serial, f"number {serial}")]
    assert _lines(states) == first
    _approve(place, runs=2)
    retire_record(place.site("north"), load_identity(place.site("north")), "small")
    states.settle("later")
    assert _lines(states) == [*first, ("approval", 3, "withdrawn")]
    assert states.ledger.total("", "subject") == 0.0
    export_json(states.ledger, site="north", at="noon", key=load_identity(place.site("north")).key)


def test_approvals_that_are_older_than_the_ledger_do_not_count(
    office: tuple[DemoFolders, Roster], tmp_path: Path
) -> None:
    place, _ = office
    folder, identity = place.site("north"), load_identity(place.site("north"))
    shutil.copytree(folder / APPROVED, tmp_path / "backup")
    retire_record(folder, identity, "small")
    states = _states(place)
    states.settle("noon")
    shutil.rmtree(folder / APPROVED)
    shutil.copytree(tmp_path / "backup", folder / APPROVED)
    assert len(approvals(folder, identity)) == 1
    with pytest.raises(StudyError, match="records number 2 after this number 1"):
        states.verify()
    assert len(approvals(folder, identity)) == 1  # to verify is not to change
    (listed,) = read_status(folder).approved
    assert "small.json: an approval must be the newest to count" in listed.refused
    (line,) = states.settle("noon")
    assert "small.json: an approval must be the newest to count" in line
    assert approvals(folder, identity) == []
    assert states.settle("noon") == []
    _approve(place)
    assert states.settle("noon") == []
    assert len(approvals(folder, identity)) == 1
    assert _lines(states)[-1] == ("approval", 3, "approved")


def test_a_roster_older_than_the_ledgers_is_refused(
    office: tuple[DemoFolders, Roster], tmp_path: Path
) -> None:
    place, members = office
    folder, states = place.site("north"), _states(place)
    states.settle("noon")
    shutil.copy(folder / PINNED, tmp_path / "backup")
    publish(place, members.with_site("other", public(7)))
    _approve(place)
    states.settle("noon")
    newest = read_pinned(folder)
    assert newest is not None
    shutil.copy(tmp_path / "backup", folder / PINNED)
    for check in (states.verify, lambda: states.settle("noon")):
        with pytest.raises(StudyError, match=f"must be number {newest.serial} or newer"):
            check()
    (folder / PINNED).unlink()
    with pytest.raises(StudyError, match="and there is none"):
        states.verify()
    other = PinnedConsortium(public(9), newest.serial, newest.roster)
    with pytest.raises(StudyError, match="must be number"):
        states.check_roster(other)
    forked = PinnedConsortium(newest.centre, newest.serial, "another")
    with pytest.raises(StudyError, match="and this is another one"):
        states.check_roster(forked)
    states.accept_roster(other, "noon")  # as 'join' does
    states.check_roster(other)


def _left_out(states: FolderStates) -> list[str]:
    return [each.label for each in states.left_out_before(["001", "2", "3", "4"])]


def test_a_left_out_table_may_grow_and_shrinks_only_if_confirmed(
    office: tuple[DemoFolders, Roster], tmp_path: Path
) -> None:
    place, _ = office
    table = tmp_path / "left_out.tsv"
    states = _states(place, table)
    for rows in ("sub-1\tage\n", "sub-1\tage\nsub-2\tmotion\n", "2\tmotion\nSUB-01\tage\n"):
        table.write_text(HEADER + rows, encoding="utf-8")
        assert states.settle_left_out("noon") == []
    assert _left_out(states) == ["001", "2"]
    table.write_text(f"{HEADER}2\tmotion\nsub-3\tage\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="last run, and 1 participant is missing"):
        states.verify()
    assert states.count_left_out() == (2, 1)
    for _ in range(2):
        assert len(states.settle_left_out("noon")) == 1
        assert _left_out(states) == ["001", "2", "3"]
    (sentence,) = _states(place).settle_left_out("noon")  # site.yaml names no table any more
    assert "3 participants are missing" in sentence
    assert _left_out(states) == ["001", "2", "3"]
    states.confirm_left_out("noon")
    assert states.settle_left_out("noon") == []
    assert states.count_left_out() == (2, 0)
    assert _left_out(states) == ["2", "3"]
    table.unlink()
    assert states.settle_left_out("noon") == []  # a run can't load its data then
    assert _left_out(states) == ["2", "3"]


@pytest.mark.parametrize("rows", ["", "sub-1\tage\n", "sub-1\tage\n1\tmotion\n", None])
def test_the_number_of_lines_does_not_depend_on_who_is_left_out(
    rows: str | None, office: tuple[DemoFolders, Roster], tmp_path: Path
) -> None:
    place, _ = office
    table = tmp_path / "left_out.tsv"
    states = _states(place, None if rows is None else table)
    table.write_text(f"{HEADER}{rows}", encoding="utf-8")
    before = states.ledger.head().seq
    for _ in range(2):
        states.settle_left_out("noon")
    assert states.ledger.head().seq - before == 2


def test_the_marks_of_a_left_out_table_charge_no_one(
    office: tuple[DemoFolders, Roster], tmp_path: Path
) -> None:
    place, _ = office
    table = tmp_path / "left_out.tsv"
    table.write_text(f"{HEADER}sub-1\tage\n", encoding="utf-8")
    states = _states(place, table)
    states.settle_left_out("noon")
    assert states.ledger.knows_any(["2"])  # no one was charged
    exported = export_json(
        states.ledger, site="north", at="noon", key=load_identity(place.site("north")).key
    )
    assert b"sub-1" not in exported
    assert b"participant" not in exported
