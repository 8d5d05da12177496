"""Decisions in the inbox: what is shown is what is signed, once, and by the commands' rules."""

import html
import re
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.consent import read_consents
from consortium.membership.keys import load_identity
from consortium.membership.roster import Roster, read_roster
from consortium.study.reader import read_study
from site_agent.approval.approval import Approval, approvals
from site_agent.approval.inspection import Inspection, Watch, inspect
from site_agent.approval.offers import state_digest
from site_agent.config import SiteConfig
from site_agent.inbox import study_pages
from site_agent.inbox.checks import StudyCheck
from site_agent.inbox.office import CHANGED, find_offer
from site_agent.layout import APPROVED, DECLINED, LEDGER, STUDIES, UNDERSTOOD
from site_agent.ledger.ledger import Ledger
from site_agent.policy.policy import Allowance, Policy
from tests.support.command_line import enter
from tests.support.inbox_client import Visitor, receive_study
from tests.support.membership_files import PLAIN, give_scans, papers, publish

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    place, _ = papers(root, f"title: {EVIL!r}\n{PLAIN}")
    give_scans(place)
    return root


@pytest.fixture
def town(made: Path, tmp_path: Path) -> tuple[DemoFolders, Roster]:
    """A copy of the consortium, whose site east has received the study."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    place = DemoFolders(tmp_path)
    folder = place.site("east")
    moved = {"dataset": place.dataset("east"), "exchange": str(place.files.exchange)}
    SiteConfig.load(folder).model_copy(update=moved).save(folder)
    receive_study(place)
    return place, read_roster(place.files.roster)


def _approved(place: DemoFolders) -> list[Approval]:
    folder = place.site("east")
    return approvals(folder, load_identity(folder))


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def test_a_study_is_checked_confirmed_approved_and_withdrawn(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, members = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    assert "Waiting for your decision" in visitor.get().text
    study = visitor.check()
    page = visitor.get(study).text
    shown = visitor.shown(study)
    printed = enter(
        "site-agent", "check", place.files.study, "--roster", place.files.roster, "-f", folder
    ).out
    for line in printed.splitlines():
        if line.startswith(("6 participants", "One run costs", "At δ", "WARNING", "NOTE")):
            assert line in _plain(page)
    assert "One run costs ε ≤ 8" in page
    terms = {"runs": "3", "until": "2027-06-30", "epsilon": "12", "shown": shown}
    asked = visitor.post(f"{study}/confirm", **terms)
    assert "Approve this study?" in asked.text
    assert _approved(place) == []  # a question changes nothing
    done = visitor.post(f"{study}/approve", **terms)
    assert "Approved: small: ica, ε ≤ 8 at δ = 1e-05, unit subject, 3 runs" in _plain(done.text)
    (approval,) = _approved(place)
    assert (approval.terms.runs, approval.terms.epsilon) == (3, 12.0)
    assert str(approval.terms.until) == "2027-06-30"
    assert (folder / UNDERSTOOD).exists()
    exchange = place.files.open_exchange()
    consent = read_consents(exchange, approval.study, members.keys)["east"]
    assert consent is not None
    assert consent.runs == 3
    states = [each.word for each in Ledger(folder / LEDGER).states("approval", [_key(folder)])]
    assert states == ["approved"]
    assert "No study waits" in visitor.get().text
    assert "Withdraw this approval?" in visitor.get("withdraw/small").text
    gone = visitor.post("withdraw/small", shown=visitor.shown("withdraw/small"))
    assert "Withdrawn: small is no longer approved." in gone.text
    assert _approved(place) == []
    consent = read_consents(exchange, approval.study, members.keys)["east"]
    assert consent is not None
    assert consent.runs == 0
    assert "No study waits" not in visitor.get().text


def test_a_study_is_declined_after_a_question_and_can_be_approved_later(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, members = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    study = visitor.study()
    asked = visitor.get(f"{study}/decline")
    assert "Decline this study?" in asked.text
    assert not (folder / DECLINED).exists()  # a question changes nothing
    assert visitor.post(f"{study}/decline", shown="0" * 64).status_code == 409
    assert not (folder / DECLINED).exists()
    visitor.post(f"{study}/decline", shown=visitor.shown(f"{study}/decline"))
    home = visitor.get().text
    assert "No study waits" in home
    assert "Declined studies" in home
    exchange, wanted = place.files.open_exchange(), read_study(place.files.study)
    consent = read_consents(exchange, wanted, members.keys)["east"]
    assert consent is not None
    assert consent.declined
    visitor.check()
    visitor.post(f"{study}/approve", runs="1", shown=visitor.shown(study))
    assert len(_approved(place)) == 1
    assert "Declined studies" not in visitor.get().text
    consent = read_consents(exchange, wanted, members.keys)["east"]
    assert consent is not None
    assert (consent.runs, consent.declined) == (1, False)


def _key(folder: Path) -> str:
    return load_identity(folder).public.hex()


def test_stored_html_is_text_on_every_page(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    folder = place.site("east")
    table = folder / "left-out.tsv"
    table.write_text(f"participant_id\treason\nsub-{EVIL}\t{EVIL}\n")
    SiteConfig.load(folder).model_copy(update={"left_out": table}).save(folder)
    visitor = Visitor(folder).enter()
    alias = {"shown": visitor.shown("names"), "here": EVIL, "levels": f"{EVIL[:8]}=a{EVIL}"}
    assert visitor.post("names/set", column=EVIL, **alias).status_code == 200
    study = visitor.check()
    assert visitor.post(f"{study}/note", note=f"</textarea>{EVIL}", before="").status_code == 200
    shown = visitor.shown(study)
    confirm = visitor.post(f"{study}/confirm", runs="1", shown=shown)
    error = visitor.post(f"{study}/confirm", runs=EVIL, shown=shown)
    person = visitor.post("left-out/return", participant=EVIL, shown=visitor.shown("left-out"))
    pages = [
        visitor.get(path).text for path in ("", study, "left-out", "names", f"withdraw/{EVIL}")
    ]
    pages += [confirm.text, error.text, person.text]
    for text in pages:
        assert "<script" not in text
        assert text.count("</textarea>") == text.count("<textarea")
    assert sum(html.escape(EVIL) in text for text in pages) >= 6
    assert visitor.get(study).text.count(html.escape(f"</textarea>{EVIL}")) == 2


@pytest.mark.parametrize("change", ["study", "roster", "policy", "settings", "table", "decision"])
def test_a_study_or_site_that_changed_since_it_was_shown_is_not_approved(
    town: tuple[DemoFolders, Roster], change: str
) -> None:
    place, members = town
    folder = place.site("east")
    table = folder / "left-out.tsv"
    table.write_text("participant_id\treason\n")
    SiteConfig.load(folder).model_copy(update={"left_out": table}).save(folder)
    visitor = Visitor(folder).enter()
    study = visitor.check()
    shown = visitor.shown(study)
    assert "Approve this study?" in visitor.post(f"{study}/confirm", shown=shown).text
    if change == "study":
        place.files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 9"))
        publish(place, members)
        receive_study(place)
    elif change == "roster":
        publish(place, members.with_site("more", bytes(range(32))))
        receive_study(place)
    elif change == "policy":
        Policy(subject=Allowance(study=50, total=50)).save(folder)
    elif change == "settings":
        SiteConfig.load(folder).model_copy(update={"workers": 2}).save(folder)
    elif change == "table":
        table.write_text("participant_id\treason\nsub-001\twithdrew\n")
    else:
        words = (place.files.study, "--roster", place.files.roster, "--yes", "-f", folder)
        assert enter("site-agent", "approve", *words).code == 0
    before = _approved(place)
    answer = visitor.post(f"{study}/approve", runs="1", shown=shown)
    assert answer.status_code == 409
    assert "has changed since the page was shown" in answer.text
    assert _approved(place) == before
    page = visitor.get(study).text
    assert "Check it again." in page or change == "decision"
    assert f"{study}/confirm" not in page
    site, offer = find_offer(folder, study.removeprefix("study/"))
    assert offer.papers is not None
    fresh = state_digest(site, offer.papers)
    assert visitor.post(f"{study}/approve", runs="1", shown=fresh).status_code == 409
    assert _approved(place) == before


def test_a_form_from_before_another_check_is_refused(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    study = visitor.check()
    shown = visitor.shown(study)
    Policy(subject=Allowance(study=50, total=50)).save(folder)
    assert visitor.check() == study  # as a colleague does in another window
    for form in ("confirm", "approve"):
        answer = visitor.post(f"{study}/{form}", runs="1", shown=shown)
        assert "has changed since the page was shown" in answer.text
    assert _approved(place) == []
    assert visitor.post(f"{study}/approve", shown=visitor.shown(study)).status_code == 200


def test_a_study_that_was_exchanged_during_its_check_is_not_approved(
    town: tuple[DemoFolders, Roster], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, members = town
    folder = place.site("east")
    place.files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 9"))
    publish(place, members)

    def inspect_another(site: Path, _: Path, roster: Path, watch: Watch) -> Inspection:
        """Read what the file was meanwhile, as if it was exchanged and then exchanged back."""
        return inspect(site, place.files.study, roster, watch)

    monkeypatch.setattr(study_pages, "inspect", inspect_another)
    visitor = Visitor(folder).enter()
    study = visitor.check()
    page = visitor.get(study).text
    assert "ε ≤ 8 at" in page
    assert CHANGED in _plain(page)
    assert f"{study}/confirm" not in page
    monkeypatch.undo()
    assert visitor.check() == study
    assert f"{study}/confirm" in visitor.get(study).text


def test_a_form_carries_the_check_whose_warnings_it_shows(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, _ = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    study = visitor.check()
    shown = visitor.shown(study)
    assert visitor.post(f"{study}/confirm", shown=shown).status_code == 200
    for path in sorted(place.dataset("east").glob("sub-*"))[1:]:
        shutil.rmtree(path)  # the data set is in no digest of the site's files
    assert visitor.check() == study
    for form in ("confirm", "approve"):
        answer = visitor.post(f"{study}/{form}", runs="1", shown=shown, despite="yes")
        assert answer.status_code == 409
    assert _approved(place) == []
    assert visitor.shown(study) != shown


@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\x1b", "\x03", "\r"], ids=ascii)
def test_no_page_has_a_character_that_is_not_shown(
    town: tuple[DemoFolders, Roster], character: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = town
    folder = place.site("east")
    evil = f"a{character}b"
    assert not evil.isprintable()
    monkeypatch.setattr(study_pages, "_title_of", lambda _: evil)
    monkeypatch.setattr(study_pages, "_planned", lambda _: (None, [evil]))
    monkeypatch.setattr(study_pages, "_facts", lambda *_: ((evil, evil),))
    monkeypatch.setattr(Inspection, "warnings", (evil,))
    monkeypatch.setattr(Inspection, "losses", (evil,))
    visitor = Visitor(folder).enter()
    study = visitor.check()
    pages = [visitor.get().text, visitor.get(study).text]
    pages += [visitor.post(f"{study}/confirm", shown=visitor.shown(study)).text]
    person = {"participant": evil, "shown": visitor.shown("left-out")}
    pages += [visitor.post("left-out/return", **person).text]
    for page in pages:
        assert "a\N{REPLACEMENT CHARACTER}b" in page
        assert all(each.isprintable() or each == "\n" for each in page)


def test_an_approval_that_is_reported_as_failed_is_not_made(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, _ = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    study = visitor.check()
    (folder / UNDERSTOOD).mkdir()  # so the summary of this check can't be stored
    shown = visitor.shown(study)
    assert visitor.post(f"{study}/approve", runs="1", shown=shown).status_code == 409
    assert _approved(place) == []
    (folder / UNDERSTOOD).rmdir()
    assert visitor.post(f"{study}/approve", runs="1", shown=shown).status_code == 200
    assert len(_approved(place)) == 1


def test_a_note_keeps_the_characters_of_its_script(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    visitor = Visitor(place.site("east")).enter()
    study = visitor.study()
    note = "\u05d0\u200f 'a' \u0645\u06cc\u200c\u062e"
    assert visitor.post(f"{study}/note", note=note, before="").status_code == 200
    page = html.unescape(visitor.get(study).text)
    assert page.count(note) == 2  # in the field, and in what the next note replaces
    assert visitor.post(f"{study}/note", note="b", before=note).status_code == 200


def test_of_two_approvals_at_once_one_makes_a_record(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    study = visitor.check()
    fields = {"runs": "1", "shown": visitor.shown(study)}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: visitor.post(f"{study}/approve", **fields), range(4)))
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]
    assert len(_approved(place)) == 1
    assert _approved(place)[0].terms.runs == 1
    assert not (folder / APPROVED / "withdrawn").exists()  # no record replaced another
    states = Ledger(folder / LEDGER).states("approval", [_key(folder)])
    assert [each.serial for each in states] == [1]
    again = visitor.post(f"{study}/approve", **fields)  # a page that is sent again
    assert again.status_code == 409


def test_a_warning_must_be_read_before_an_approval(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    folder = place.site("east")
    table = folder / "left-out.tsv"
    table.write_text("participant_id\treason\nsub-nobody\twithdrew\n")
    SiteConfig.load(folder).model_copy(update={"left_out": table}).save(folder)
    visitor = Visitor(folder).enter()
    study = visitor.check()
    fields = {"runs": "1", "shown": visitor.shown(study)}
    asked = visitor.post(f"{study}/confirm", **fields).text
    assert "Approve this study in spite of 1 WARNING?" in asked
    assert 'name="despite" value="yes" required' in asked
    for refused in ({}, {"despite": ""}, {"despite": "no"}):
        answer = visitor.post(f"{study}/approve", **fields, **refused)
        assert answer.status_code == 409
        assert "Nothing is approved in spite of 1 WARNING" in answer.text
    assert _approved(place) == []
    assert visitor.post(f"{study}/approve", **fields, despite="yes").status_code == 200
    assert len(_approved(place)) == 1


def test_a_study_that_the_policy_refuses_has_no_form_and_is_not_approved(
    town: tuple[DemoFolders, Roster], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = town
    marks: list[str] = []
    start = StudyCheck.perform
    monkeypatch.setattr(
        StudyCheck, "perform", lambda check, work: marks.append(check.mark) or start(check, work)
    )
    folder = place.site("east")
    Policy(subject=Allowance(study=1, total=1)).save(folder)
    visitor = Visitor(folder).enter()
    study = visitor.check()
    page = visitor.get(study).text
    assert "REFUSED: " in page
    assert f"{study}/confirm" not in page
    for form in ("confirm", "approve"):
        answer = visitor.post(f"{study}/{form}", runs="1", shown=marks[0], despite="yes")
        assert "small is not approved: " in answer.text
    assert _approved(place) == []


@pytest.mark.parametrize(
    "terms",
    [
        {"runs": "0"},
        {"runs": "-1"},
        {"runs": "1e3"},
        {"runs": "10001"},
        {"until": "2020-01-01"},
        {"until": "tomorrow"},
        {"epsilon": "nan"},
        {"epsilon": "-1"},
        {"epsilon": "inf"},
    ],
    ids=str,
)
def test_terms_that_no_approval_can_have_are_refused(
    town: tuple[DemoFolders, Roster], terms: dict[str, str]
) -> None:
    place, _ = town
    visitor = Visitor(place.site("east")).enter()
    study = visitor.check()
    fields = {"shown": visitor.shown(study), **terms}
    assert visitor.post(f"{study}/confirm", **fields).status_code == 409
    assert visitor.post(f"{study}/approve", **fields).status_code == 409
    assert _approved(place) == []


def test_nothing_is_approved_or_withdrawn_that_was_not_shown(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, _ = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    study = visitor.study()
    answer = visitor.post(f"{study}/approve", runs="1", shown="0" * 64)
    assert "must be checked before it is approved" in answer.text
    assert visitor.get("withdraw/small").status_code == 409
    words = (place.files.study, "--roster", place.files.roster, "--yes", "-f", folder)
    assert enter("site-agent", "approve", *words).code == 0
    shown = visitor.shown("withdraw/small")
    assert enter("site-agent", "approve", *words, "--until", "2030-01-01").code == 0
    assert visitor.post("withdraw/small", shown=shown).status_code == 409
    assert visitor.post("withdraw/small").status_code == 409
    assert visitor.post("withdraw/..%2Fsmall", shown=shown).status_code in (404, 409)
    assert [str(each.terms.until) for each in _approved(place)] == ["2030-01-01"]


def test_a_decision_without_exchange_counts_here_and_is_told_later(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, _ = town
    visitor = Visitor(place.site("east")).enter()
    study = visitor.check()
    shown = visitor.shown(study)
    place.files.exchange.rename(place.root / "away")
    place.files.exchange.write_text("in the way")
    done = visitor.post(f"{study}/approve", runs="1", shown=shown)
    assert "The coordinator is informed when the agent starts (" in done.text
    assert len(_approved(place)) == 1


def test_only_a_decision_reaches_the_exchange(
    town: tuple[DemoFolders, Roster], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = town
    folder = place.site("east")

    def refuse(*_: object) -> None:
        raise AssertionError("a connection is opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    exchange = place.files.exchange
    before = sorted(exchange.rglob("*"))
    visitor = Visitor(folder).enter()
    study = visitor.check()
    for path in ("", study, "budget", "ledger", "agent", "left-out", "names"):
        assert visitor.get(path).status_code == 200
    shown = visitor.shown(study)
    visitor.post(f"{study}/note", note="a note", before="")
    visitor.post(f"{study}/confirm", runs="1", shown=shown)
    row = {"participant": "sub-001", "reason": "withdrew"}
    assert visitor.post("left-out/add", **row, shown=visitor.shown("left-out")).status_code == 200
    names = {"column": "sex", "here": "Sex", "shown": visitor.shown("names")}
    assert visitor.post("names/set", **names).status_code == 200
    assert sorted(exchange.rglob("*")) == before
    study = visitor.check()
    done = visitor.post(f"{study}/approve", runs="1", shown=visitor.shown(study))
    assert done.status_code == 200
    assert sorted(exchange.rglob("*")) != before


def test_files_that_cannot_be_used_are_named(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    studies = place.site("east") / STUDIES
    shutil.copy(studies / place.files.study.name, studies / "unsigned.yaml")
    visitor = Visitor(place.site("east")).enter()
    page = _plain(visitor.get().text)
    assert "Files that can't be used" in page
    assert "unsigned.yaml has no valid signature next to it" in page
    (studies / place.files.study.name).unlink()
    (studies / "unsigned.yaml").unlink()
    assert "No study waits" in visitor.get().text
    assert read_study(place.files.study).study == "small"


def test_a_check_that_fails_says_why(town: tuple[DemoFolders, Roster]) -> None:
    place, _ = town
    visitor = Visitor(place.site("east")).enter()
    shutil.rmtree(place.dataset("east"))
    study = visitor.check()
    text = visitor.get(study).text
    assert 'class="refused"' in text
    assert f"{study}/confirm" not in text


def test_a_decision_from_a_page_older_than_a_decline_is_refused(
    town: tuple[DemoFolders, Roster],
) -> None:
    place, _ = town
    folder = place.site("east")
    visitor = Visitor(folder).enter()
    study = visitor.check()
    shown = visitor.shown(study)
    question = visitor.shown(f"{study}/decline")
    assert visitor.post(f"{study}/decline", shown=question).status_code == 200
    assert visitor.post(f"{study}/decline", shown=question).status_code == 409
    assert visitor.post(f"{study}/approve", runs="1", shown=shown).status_code == 409
    assert approvals(folder, load_identity(folder)) == []
    messages = place.files.open_exchange().children("consent/small/east")
    assert messages == ["000001"]
