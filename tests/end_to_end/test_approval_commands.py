"""The commands with which a site's people take back a yes, and vouch for and check a ledger."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nibabel as nib
import pytest

from consortium.base.lock import only_one
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.clock import Clock
from consortium.errors import LedgerError
from consortium.membership.consent import Consent, read_consents
from consortium.membership.keys import load_identity
from consortium.membership.roster import Roster, fingerprint, read_roster
from consortium.secagg import CENTRE
from consortium.study.reader import read_study
from site_agent.agent import Agent
from site_agent.approval.approval import approvals
from site_agent.config import SiteConfig
from site_agent.layout import LEDGER, PINNED
from site_agent.ledger.ledger import Charge, Ledger
from tests.support.charges import held
from tests.support.command_line import Said, enter, refused
from tests.support.membership_files import PLAIN, give_scans, papers, publish

Town = tuple[DemoFolders, Roster]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    found = papers(tmp_path)
    give_scans(found[0])
    return found


def _approve(place: DemoFolders) -> None:
    files = place.files
    words = ("approve", files.study, "--roster", files.roster, "--yes")
    assert enter("site-agent", *words, "-f", place.site("east")).code == 0


def _asked(place: DemoFolders, *words: object, **typed: Any) -> Said:
    rest = (place.files.study, "--roster", place.files.roster, "-f", place.site("east"))
    return enter("site-agent", "approve", *rest, *words, **typed)


def test_a_yes_shows_the_study_and_is_asked_once(town: Town) -> None:
    place, _ = town
    said = _asked(place, answer="n\n", terminal=True)
    assert (said.code, said.err) == (
        1,
        "site-agent: Nothing was done, because the answer was no.\n",
    )
    assert "6 participants qualify, with 144 volumes." in said.out
    assert said.out.count("Approve this study?") == 1
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []
    heads = place.files.exchange / "ledgers" / "east"
    before = sorted(heads.glob("*"))
    said = _asked(place, answer="y\n", terminal=True)
    assert (said.code, said.err) == (0, "")
    assert len(sorted(heads.glob("*"))) > len(before)
    assert "One run costs ε ≤ 8" in said.out
    assert "Approved: small: ica" in said.out
    assert len(approvals(place.site("east"), load_identity(place.site("east")))) == 1


def test_where_nobody_can_be_asked_a_yes_needs_its_option(town: Town) -> None:
    place, _ = town
    said = _asked(place, answer="y\n")
    assert (said.code, said.out) == (1, "")
    assert said.err == (
        "site-agent: A terminal is required for this question. Check the study with "
        "'site-agent check', and approve it with --yes.\n"
    )
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []
    assert "Approved: small" in _asked(place, "--yes").out


def test_a_study_that_nobody_here_fits_is_not_approved(town: Town) -> None:
    place, _ = town
    for path in place.dataset("east").glob("sub-*/**/*_bold.nii.gz"):
        scan = nib.load(path)
        nib.save(nib.Nifti1Image(scan.get_fdata()[..., :5], scan.affine), path)
    said = _asked(place, "--yes")
    assert said.code == 1
    assert "REFUSED: All 6 subjects are left out" in said.out
    assert said.err.startswith("site-agent: small is not approved: ")
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []


def test_a_yes_can_start_the_agent_unless_it_works_already(town: Town) -> None:
    place, _ = town
    with only_one(place.site("east"), "agent"):
        said = _asked(place, "--yes", "--start")
    assert said.code == 0
    assert "at work already and takes part" in said.out
    place.files.exchange.rename(place.root / "away")
    place.files.exchange.write_text("in the way")
    said = _asked(place, "--yes", "--start", "--once")
    assert said.code == 1  # of the agent, which was started and finds no exchange
    assert "to be an exchange" in said.err


def _consent(place: DemoFolders) -> Consent | None:
    study, keys = read_study(place.files.study), read_roster(place.files.roster).keys
    return read_consents(place.files.open_exchange(), study, keys)["east"]


def _agent(place: DemoFolders) -> Agent:
    return Agent(place.site("east"), Clock(), lambda: datetime.now(UTC), lambda _: None)


def test_a_yes_is_taken_back_here_and_on_the_exchange(town: Town) -> None:
    place, _ = town
    folder = ("-f", place.site("east"))
    said = refused("site-agent", "withdraw", "small", *folder)
    assert "'small' is not an approved study (none). Correct the name" in said
    _approve(place)
    said = refused("site-agent", "withdraw", "../small", *folder)
    assert "'../small' is not an approved study (small)" in said
    done = enter("site-agent", "withdraw", "small", *folder)
    assert (done.code, done.out) == (0, "Withdrawn: small is no longer approved.\n")
    assert "approved" not in enter("site-agent", "status", *folder).out
    consent = _consent(place)
    assert consent is not None
    assert consent.runs == 0
    _approve(place)
    consent = _consent(place)
    assert consent is not None
    assert consent.runs == 1


def test_status_says_the_same_to_scripts_and_to_people(town: Town) -> None:
    place, _ = town
    folder = ("-f", place.site("east"))
    _approve(place)
    found = json.loads(enter("site-agent", "status", "--json", *folder).out)
    told = enter("site-agent", "status", *folder).out
    (approved,) = found["approved"]
    assert (approved["study"], approved["runs"], approved["refused"]) == ("small", 1, None)
    assert (approved["runs_left"], "1 run, 1 left" in told) == (1, True)
    assert (found["site"], found["running"], found["waiting"]) == ("east", False, None)
    for each in (found["key"], found["fingerprint"], found["exchange"], "agent      not running"):
        assert each in told


def test_a_run_under_way_is_not_left(town: Town) -> None:
    place, roster = town
    folder = place.site("east")
    _approve(place)
    key, centre = load_identity(folder).public.hex(), roster.keys[CENTRE].hex()
    text = ("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.1)
    held(Ledger(folder / LEDGER), Charge(*text, key, centre, "9e" * 32, 0.05), loss=1.0)
    assert "1 run, 0 left" in enter("site-agent", "status", "-f", folder).out


def test_the_doctor_says_the_same_to_scripts_and_to_people(town: Town) -> None:
    place, _ = town
    folder = ("-f", place.site("east"))
    printed = enter("site-agent", "doctor", "--json", *folder)
    told = enter("site-agent", "doctor", *folder)
    found = json.loads(printed.out)
    assert printed.code == told.code == any(check["state"] == "fail" for check in found)
    lines = told.out.splitlines()
    names = [f"{check['state']:<5} {check['name']}: " for check in found]
    assert all(line.startswith(name) for line, name in zip(lines, names, strict=True))


def test_without_exchange_a_yes_is_taken_back_and_that_is_told_later(town: Town) -> None:
    place, _ = town
    _approve(place)
    exchange, away = place.files.exchange, place.root / "away"
    exchange.rename(away)
    exchange.write_text("in the way")
    done = enter("site-agent", "withdraw", "small", "-f", place.site("east"))
    assert done.code == 0
    assert "The coordinator is informed when the agent starts (" in done.out
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []
    exchange.unlink()
    away.rename(exchange)
    assert _consent(place) == Consent("east", read_study(place.files.study).digest, 1)
    _agent(place).post_consents()
    assert _consent(place) == Consent("east", read_study(place.files.study).digest, 0)


def test_a_damaged_yes_can_be_taken_back_and_a_newer_one_takes_the_older_back(town: Town) -> None:
    place, members = town
    _approve(place)
    first = read_study(place.files.study)
    place.files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 2"))
    publish(place, members)
    _approve(place)
    found = read_consents(place.files.open_exchange(), first, members.keys)["east"]
    assert found == Consent("east", first.digest, 0)
    (record,) = (place.site("east") / "approved").glob("*.json")
    record.write_text("{")
    assert enter("site-agent", "withdraw", "small", "-f", place.site("east")).code == 0
    _agent(place).post_consents()


def test_a_shorter_left_out_table_is_counted_and_confirmed(town: Town) -> None:
    place, _ = town
    folder, header = place.site("east"), "participant_id\treason\n"
    table = folder / "left_out.tsv"
    SiteConfig.load(folder).model_copy(update={"left_out": table}).save(folder)
    person = min(path.name for path in place.dataset("east").glob("sub-*"))
    table.write_text(f"{header}{person}\twithdrew\n")
    _approve(place)
    table.write_text(header)
    words = (place.files.study, "--roster", place.files.roster, "--yes", "-f", folder)
    assert "--confirm" in enter("site-agent", "approve", *words).err
    assert "fail  folder" in enter("site-agent", "doctor", "-f", folder).out
    said = enter("site-agent", "left-out", "-f", folder)
    assert said.out == (
        "The left-out table names 0 participants, and 1 participant of the last run's table is "
        "missing.\n"
    )
    assert "Recorded" in enter("site-agent", "left-out", "--confirm", "-f", folder).out
    assert enter("site-agent", "approve", *words).code == 0


def test_a_site_that_joins_another_consortium_has_its_roster_recorded_anew(town: Town) -> None:
    place, _ = town
    folder = place.site("east")
    _approve(place)
    (folder / PINNED).unlink()
    assert "fail  folder" in enter("site-agent", "doctor", "-f", folder).out
    assert enter("site-agent", "join", "--centre", "ab" * 32, "-f", folder).code == 0
    assert "ok    folder" in enter("site-agent", "doctor", "-f", folder).out


def _answered(place: DemoFolders, *rounds: int) -> Ledger:
    folder = place.site("east")
    ledger, key = Ledger(folder / LEDGER), load_identity(folder).public.hex()
    text = ("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.1)
    first = held(ledger, Charge(*text, key, "ce" * 32, "9e" * 32, 0.05), loss=1.0)
    for number in rounds:
        charge = replace(first, round=number)
        ledger.reserve(charge, "noon")
        ledger.spend(charge, "noon")
    ledger.settle()
    return ledger


def test_anybody_can_check_an_exported_ledger(town: Town, tmp_path: Path) -> None:
    place, _ = town
    _answered(place, 1, 2)
    file, folder = tmp_path / "east.json", place.site("east")
    file.write_text(enter("site-agent", "ledger", "--json", "-f", folder).out)
    said = enter("site-agent", "ledger", "--verify", file, "-f", tmp_path / "nowhere")
    assert said.code == 0
    assert "its 5 lines follow one another" in said.out
    assert fingerprint(load_identity(folder).public) in said.out
    file.write_text(file.read_text().replace("0.1", "0.01", 1))
    said_no = refused("site-agent", "ledger", "--verify", file)
    assert "The export: line 2 was altered" in said_no
    assert "can't be read (No such file" in refused("site-agent", "ledger", "--verify", "x.json")


def test_lost_heads_stop_the_agent_until_its_people_vouch_for_the_ledger(town: Town) -> None:
    place, _ = town
    _answered(place, 1)
    folder = ("--folder", place.site("east"))
    said = refused("site-agent", "start", "--once", "--idle", 0, *folder)
    assert "accept it with 'site-agent ledger --accept'" in said
    said = enter("site-agent", "ledger", "--accept", *folder).out
    assert said == "Accepted with 3 lines; its head is on the exchange.\n"
    assert "nothing to do" in refused("site-agent", "start", "--once", "--idle", 0, *folder)


def test_a_changed_key_vouches_for_the_ledger_as_it_is(town: Town) -> None:
    place, members = town
    folder = place.site("east")
    ledger, words = _answered(place, 1), ("join", "--rotate", "-f", folder)
    key = members.centre.hex()
    said = refused("site-agent", *words, "--centre", key)
    assert "none of this site's signed heads" in said  # and no key was changed
    assert not (folder / "keys.old").exists()
    enter("site-agent", "ledger", "--accept", "-f", folder)
    ledger.close()
    shutil.copy(folder / LEDGER, folder / "backup")
    _answered(place, 2).close()
    assert enter("site-agent", *words, "--centre", key).code == 0
    (folder / "keys.old").unlink()
    for file in folder.glob(f"{LEDGER}*"):
        file.unlink()
    (folder / "backup").rename(folder / LEDGER)
    with pytest.raises(LedgerError, match="it is a backup from before the last losses"):
        _agent(place).site.anchor.check()
