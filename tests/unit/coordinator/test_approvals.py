"""Approvals that are awaited: who has not approved, for how long, and a mail that reminds."""

import email.policy
import json
import os
import time
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.consent import decline, withdraw
from consortium.membership.keys import load_identity
from consortium.membership.signed_study import signature_path
from consortium.study.reader import read_study
from site_agent.layout import DECLINED
from tests.support.command_line import enter, refused
from tests.support.local_consortium import SITES
from tests.support.membership_files import PLAIN, consent, papers

DAYS = 5
TITLE = "Größe <b>"


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    """A study that was signed five days ago: approved, expired, withdrawn, never approved."""
    found, _ = papers(tmp_path / "town", f"title: {TITLE}\n{PLAIN}")
    before = time.time() - DAYS * 86_400
    os.utime(signature_path(found.files.study), (before, before))
    study, exchange = read_study(found.files.study), found.files.open_exchange()
    today = datetime.now(UTC).date()
    consent(found, SITES[0])
    consent(found, SITES[1], until=today - timedelta(days=3))
    withdraw(exchange, load_identity(found.site(SITES[2])).key, SITES[2], study)
    return found


def where(place: DemoFolders) -> tuple[object, ...]:
    files = place.files
    return files.study, "--exchange", files.exchange, "--roster", files.roster


def test_status_names_them_with_days_before_any_run(place: DemoFolders) -> None:
    said = enter("consortium", "status", *where(place))
    assert (said.code, said.err) == (0, "")
    assert "Approvals of 1 of 4 sites cover the next run, and 4 are needed." in said.out
    found = json.loads(enter("consortium", "status", *where(place), "--json").out)["approvals"]
    assert [(each["site"], each["approved"], each["days"]) for each in found] == [
        (SITES[0], True, None),
        (SITES[1], False, 2),
        (SITES[2], False, None),
        (SITES[3], False, DAYS),
    ]
    assert "ended on" in found[1]["reason"]
    assert "withdrawn" in found[2]["reason"]


def test_without_run_and_roster_status_says_what_to_give(place: DemoFolders) -> None:
    files = place.files
    words = ("status", files.study, "--exchange", files.exchange)
    assert "no output folder is named. Name a run's folder" in refused("consortium", *words)
    assert "has no run. Name" in refused("consortium", *words, "--out", files.out)


def test_a_reminder_is_a_draft_for_each_of_them(place: DemoFolders, tmp_path: Path) -> None:
    mails = tmp_path / "mails"
    said = enter("consortium", "remind", *where(place), "--to", mails)
    assert (said.code, said.err) == (0, "")
    assert sorted(path.name for path in mails.iterdir()) == sorted(f"{s}.eml" for s in SITES[1:])
    data = (mails / f"{SITES[3]}.eml").read_bytes()
    mail = message_from_bytes(data, policy=email.policy.default)
    assert mail["X-Unsent"] == "1"
    assert mail["Subject"] == f"Reminder: the study 'small' awaits the approval of {SITES[3]}"
    text = mail.get_content()
    assert f"it has awaited for {DAYS} days" in text
    assert "site-agent approve" in text
    commands = [line.split() for line in text.splitlines() if "site-agent" in line]
    assert [words[1] for words in commands] == ["check", "approve", "decline"]
    folder, files = place.site(SITES[3]), place.files
    put = {"study.yaml": files.study, "roster.yaml": files.roster}
    for _, *words in commands[::2]:  # as they are copied from the mail, in the study's folder
        typed = [put.get(word, word) for word in words]
        assert enter("site-agent", *typed, "-f", folder).code in (0, 1)
    assert (folder / DECLINED).exists()
    assert "ask it" not in text.lower()  # which is the coordinator's next step


def test_own_words_and_a_wrong_template(place: DemoFolders, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Bitte: {{ title }}\n\nNoch {{ site }}?\n", encoding="utf-8")
    words = ("consortium", "remind", *where(place), "--to", tmp_path / "m", "--template", own)
    assert enter(*words).code == 0
    data = (tmp_path / "m" / f"{SITES[1]}.eml").read_bytes()
    mail = message_from_bytes(data, policy=email.policy.default)
    assert mail["Subject"] == f"Bitte: {TITLE}"
    assert mail.get_content() == f"Noch {SITES[1]}?\n"
    own.write_text("{{ nothing }}")
    assert "the fields site, study, title" in refused(*words)


def test_a_site_that_declined_is_shown_and_gets_no_reminder(
    place: DemoFolders, tmp_path: Path
) -> None:
    site = SITES[3]
    study, exchange = read_study(place.files.study), place.files.open_exchange()
    decline(exchange, load_identity(place.site(site)).key, site, study.study, study.digest)
    found = json.loads(enter("consortium", "status", *where(place), "--json").out)["approvals"]
    assert [each["site"] for each in found if each["declined"]] == [site]
    mails = tmp_path / "mails"
    said = enter("consortium", "remind", *where(place), "--to", mails)
    assert site in said.out
    assert sorted(path.name for path in mails.iterdir()) == sorted(f"{s}.eml" for s in SITES[1:3])


def test_nobody_is_reminded_if_all_have_approved(place: DemoFolders, tmp_path: Path) -> None:
    for site in SITES:
        consent(place, site)
    said = enter("consortium", "remind", *where(place), "--to", tmp_path / "m")
    assert "No reminder is needed" in said.out
    assert "Approvals of 4 of 4 sites" in enter("consortium", "status", *where(place)).out
    assert not (tmp_path / "m").exists()
