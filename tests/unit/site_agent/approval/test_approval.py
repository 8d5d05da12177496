"""Approvals: exactly this study, mask and keys, so often, so dearly and so long."""

import json
import shutil
from datetime import date
from pathlib import Path

import pytest

from consortium.base.atomic import write_bytes
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import (
    BudgetError,
    ConfigurationError,
    ConsortiumError,
    OutputError,
    PrivacyError,
    SignatureError,
    StudyError,
)
from consortium.membership.consent import Consent
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import Roster
from consortium.privacy.gdp import epsilon_of
from consortium.study.plan import promised_mu
from consortium.study.spec import Study
from site_agent.approval import approval as approving
from site_agent.approval.approval import (
    Approval,
    Terms,
    approvals,
    approve,
    approve_papers,
    read_papers,
    retire_record,
)
from site_agent.approval.permission import Permission
from site_agent.enrolment import pinned_consortium
from site_agent.enrolment.pinned_consortium import read_pinned
from site_agent.layout import APPROVED, PINNED, SERIALS, WITHDRAWN
from site_agent.ledger.ledger import Charge, Ledger
from tests.support.charges import held
from tests.support.membership_files import PLAIN, papers, public, publish

TODAY = date(2026, 11, 21)


def yes(place: DemoFolders, terms: Terms = Terms()) -> Approval:  # noqa: B008 - frozen
    """East says yes to the study as it lies there."""
    folder, files = place.site("east"), place.files
    return approve(folder, "east", load_identity(folder), files.study, files.roster, terms)


def known(place: DemoFolders) -> list[Approval]:
    """What east has approved."""
    return approvals(place.site("east"), load_identity(place.site("east")))


@pytest.fixture
def town(tmp_path: Path) -> tuple[DemoFolders, Roster]:
    return papers(tmp_path)


def test_what_was_approved_is_read_again(town: tuple[DemoFolders, Roster]) -> None:
    place, members = town
    assert known(place) == []
    first = yes(place, Terms(3, 9.5, date(2027, 1, 31)))
    assert known(place) == [first]
    assert first.keys == members.keys
    assert yes(place, Terms(4)) != first
    assert [each.terms for each in known(place)] == [Terms(4)]  # a newer yes replaces it


def test_the_first_yes_pins_the_consortium(town: tuple[DemoFolders, Roster]) -> None:
    place, members = town
    yes(place)
    trust = read_pinned(place.site("east"))
    assert trust is not None
    assert (trust.centre, trust.serial) == (members.centre, members.serial)


def test_what_the_coordinator_is_told(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    approval = yes(place, Terms(3, 9.5, TODAY))
    assert approval.consent("east") == Consent("east", approval.study.digest, 3, 9.5, TODAY)


def test_other_keys_or_another_comment_are_another_approval(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, members = town
    yes(place)
    publish(place, members.with_site("west", public(9)))
    yes(place)
    place.files.study.write_text("# now with a comment\n" + PLAIN)
    with pytest.raises(SignatureError, match="the study file changed"):
        yes(place)
    publish(place, members.with_site("west", public(9)).with_site("new", public(10)))
    newest = yes(place)
    assert known(place) == [newest]  # one yes a study, the newest


@pytest.mark.parametrize("scheme", ["local", "none"])
def test_a_reference_is_not_approved_whoever_signs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Study, "check_scheme", lambda *_: None)
        place, _ = papers(tmp_path, PLAIN.replace("boost: exact", f"scheme: {scheme}"))
    with pytest.raises(StudyError, match=f"'{scheme}' is a reference"):
        yes(place)
    assert known(place) == []


def test_another_key_of_this_site_is_not_approved(town: tuple[DemoFolders, Roster]) -> None:
    place, members = town
    publish(place, members.with_site("east", public(9)))
    with pytest.raises(StudyError, match="as the key of 'east', and this site's is"):
        yes(place)


def test_a_roster_of_others_is_not_approved(
    town: tuple[DemoFolders, Roster], tmp_path: Path
) -> None:
    place, members = town
    yes(place)
    publish(place, members.without_site("west").with_site("west", public(9)))
    yes(place)
    publish(place, members)
    with pytest.raises(StudyError, match="Ask the coordinator for the newest"):
        yes(place)
    (place.files.keys / "keys").unlink()
    other = create_identity(place.files.keys, b"o" * 64).public
    publish(place, Roster(99, other, members.sites))
    with pytest.raises(SignatureError, match="this site has joined the consortium of"):
        yes(place)
    assert len(known(place)) == 1


def _record(place: DemoFolders) -> Path:
    (path,) = (place.site("east") / "approved").glob("*.json")
    return path


EDITS = {
    "runs": lambda r: r["terms"].update(runs=1000),
    "epsilon": lambda r: r["terms"].update(epsilon=None),
    "until": lambda r: r["terms"].update(until="2036-01-01"),
    "a promise": lambda r: r["study"]["privacy"].update(epsilon=80.0),
    "a key": lambda r: r["keys"].update(centre=public(9).hex()),
    "the file": lambda r: r.update(file="00" * 32),
    "the mask": lambda r: r.update(mask="00" * 32),
    "the folder": lambda r: r.update(folder="/elsewhere"),
    "more": lambda r: r.update(more=1),
    "less": lambda r: r.pop("folder"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_record_is_refused(edit: str, town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    yes(place, Terms(2, 9.0, TODAY))
    path = _record(place)
    record = json.loads(path.read_text())
    EDITS[edit](record)
    path.write_text(json.dumps(record))
    with pytest.raises(ConfigurationError, match="is not signed with this site's key"):
        known(place)


def test_a_record_of_another_site_is_refused(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    yes(place)
    with pytest.raises(ConfigurationError, match="is not signed with this site's key"):
        approvals(place.site("east"), load_identity(place.site("west")))


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"7", b"\xff", b"{}", b'{"signature": 7}'])
def test_a_damaged_record_is_named(damage: bytes, town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    yes(place)
    path = _record(place)
    path.write_bytes(damage)
    with pytest.raises(ConfigurationError, match=path.name):
        known(place)


def test_a_folder_that_can_not_be_written_is_told(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    (place.site("east") / "approved").write_text("in the way")
    with pytest.raises(ConfigurationError, match="can't be written"):
        yes(place)
    assert known(place) == []


@pytest.mark.parametrize("terms", [(0,), (-1,), (1, 0.0), (1, -1.0), (1, float("nan"))])
def test_terms_that_allow_nothing_are_none(terms: tuple[float, ...]) -> None:
    with pytest.raises(StudyError, match=r"--runs: must be|--epsilon: must be"):
        Terms(*terms)


# -- another run --------------------------------------------------------------------------


def _spend(place: DemoFolders, approval: Approval, run: int) -> Ledger:
    """Charge a whole run to east's ledger."""
    ledger = Ledger(place.site("east") / "ledger.sqlite")
    charge = Charge(
        dataset="scans",
        study="small",
        run=f"small-{run:04d}",
        round=1,
        stage="pca",
        statistic="second_moment",
        unit="subject",
        mu=promised_mu(approval.study),
        site=approval.keys["east"].hex(),
        centre=approval.keys["centre"].hex(),
        query="00" * 32,
        outsider=0.25,
    )
    ledger.reserve(held(ledger, charge), "noon")
    return ledger


def _refusal(approval: Approval, ledger: Ledger, today: date = TODAY) -> ConsortiumError | None:
    try:
        centres = frozenset({approval.keys["centre"].hex()})
        Permission(approval, centres, today).check_new_run(ledger)
    except ConsortiumError as error:
        return error
    return None


def test_so_many_runs_and_no_more(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    approval = yes(place, Terms(2))
    assert _refusal(approval, _spend(place, approval, 1)) is None
    error = _refusal(approval, _spend(place, approval, 2))
    assert isinstance(error, PrivacyError)
    assert "approved for 2 runs and had as many" in str(error)
    assert _refusal(yes(place, Terms(3)), _spend(place, approval, 2)) is None


def test_until_the_last_day(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    approval = yes(place, Terms(2, until=TODAY))
    ledger = Ledger(place.site("east") / "ledger.sqlite")
    assert _refusal(approval, ledger) is None
    error = _refusal(approval, ledger, date(2026, 11, 22))
    assert isinstance(error, PrivacyError)
    assert "ended on 2026-11-21" in str(error)


def test_so_dearly_and_no_dearer(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    approval = yes(place, Terms(5))
    delta = approval.study.privacy.delta
    twice = epsilon_of(promised_mu(approval.study) * 2**0.5, delta)
    enough, short = yes(place, Terms(5, twice)), yes(place, Terms(5, twice - 0.01))
    empty = Ledger(place.site("east") / "ledger.sqlite")
    assert _refusal(short, empty) is None
    ledger = _spend(place, approval, 1)
    assert _refusal(enough, ledger) is None
    error = _refusal(short, ledger)
    assert isinstance(error, BudgetError)
    assert f"could make it {twice:.4g}" in str(error)
    assert _refusal(enough, _spend(place, approval, 2)) is not None


def test_another_consortiums_study_of_that_name_does_not_count(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, _ = town
    approval = yes(place)
    keys = {**approval.keys, "centre": public(9)}
    other = Approval(approval.study, "", approval.mask, keys, approval.folder, Terms())
    ledger = _spend(place, other, 1)
    assert _refusal(approval, ledger) is None
    assert _refusal(other, ledger) is not None


def test_a_mask_that_changed_is_refused(tmp_path: Path) -> None:
    text = PLAIN.replace("{resolution: 30,", "{mask: mask.nii, resolution: 30,")
    (tmp_path / "mask.nii").write_bytes(b"one")
    place, _ = papers(tmp_path, text)
    approval = yes(place)
    ledger = Ledger(place.site("east") / "ledger.sqlite")
    assert _refusal(approval, ledger) is None
    (tmp_path / "mask.nii").write_bytes(b"two")
    assert "is not the one that was approved" in str(_refusal(approval, ledger))
    (tmp_path / "mask.nii").unlink()
    assert "can't be read" in str(_refusal(approval, ledger))


@pytest.mark.parametrize("by", ["copy", "move"])
@pytest.mark.parametrize("end", ["taken back", "replaced"])
def test_a_yes_that_ended_counts_no_more_wherever_its_record_lies(
    town: tuple[DemoFolders, Roster], by: str, end: str
) -> None:
    place, _ = town
    folder = place.site("east")
    yes(place, Terms(5))
    if end == "replaced":
        yes(place)
    else:
        retire_record(folder, load_identity(folder), "small")
    (old,) = (folder / APPROVED / WITHDRAWN).glob("*.json")
    target = folder / APPROVED / "small.json"
    if by == "copy":
        shutil.copy(old, target)
    else:
        old.replace(target)
    assert known(place) == []
    assert [yes(place, Terms(2))] == known(place)


def test_a_list_of_serial_numbers_that_was_altered_is_refused(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, _ = town
    folder = place.site("east")
    yes(place)
    path = folder / APPROVED / SERIALS
    text = path.read_text()
    path.write_text(text.replace('"small": 1', '"small": 2'))
    with pytest.raises(ConfigurationError, match="serials is not signed with this site's key"):
        known(place)
    path.write_text("{")
    with pytest.raises(ConfigurationError, match="serials is damaged"):
        known(place)


def test_what_was_shown_is_what_is_signed_though_the_files_change(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, members = town
    folder, files = place.site("east"), place.files
    identity = load_identity(folder)
    shown = read_papers(folder, "east", identity.public, files.study, files.roster)
    files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 40"))
    publish(place, members)
    approve_papers(folder, identity, shown, Terms())
    (found,) = known(place)
    assert found.study.privacy.epsilon == 8
    assert found.file == shown.signed.file


@pytest.mark.parametrize(
    ("full", "again"),
    [
        ("small.json", False),
        (SERIALS, False),
        (PINNED, False),
        ("small.json", True),
        (SERIALS, True),
        (PINNED, True),
        ("small-", True),
    ],
)
def test_an_approval_that_is_reported_as_failed_does_not_count(
    town: tuple[DemoFolders, Roster], monkeypatch: pytest.MonkeyPatch, full: str, again: bool
) -> None:
    place, _ = town
    before = [yes(place, Terms(3))] if again else []

    def write(path: Path, data: bytes, *, mode: int = 0o666) -> Path:
        puts_back = path.name == "small.json" and b'"runs": 3' in data
        if path.name.startswith(full) and not puts_back:
            raise OutputError(f"{path} can't be written. Check disk space.")
        return write_bytes(path, data, mode=mode)

    for module in (approving, pinned_consortium):
        monkeypatch.setattr(module, "write_bytes", write)
    with pytest.raises(ConfigurationError):
        yes(place, Terms(5))
    assert known(place) == before
    monkeypatch.undo()
    assert yes(place, Terms(5)) in known(place)
