"""The site's page: what the agent does, what is approved and spent; nothing live, nobody named."""

import html
import os
import re
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from consortium.base.lock import only_one
from consortium.engine.clock import WaitFile
from consortium.errors import LedgerError, OutputError
from consortium.membership.keys import load_identity
from consortium.privacy.gdp import compose, epsilon_of, mu_of
from site_agent.approval.approval import Terms, approvals, approve
from site_agent.config import SiteConfig
from site_agent.layout import ENDED, LEDGER, STORE
from site_agent.ledger.held_runs import held_runs
from site_agent.ledger.ledger import Ledger
from site_agent.page.page import write_site_page
from site_agent.policy.policy import Policy
from site_agent.run.message_store import MessageStore
from site_agent.run.site_log import LogLines, read_log_lines
from tests.support.html_page import Page
from tests.support.inbox_client import receive_study
from tests.support.local_consortium import SITES, LocalConsortium, build, conduct, limit
from tests.support.membership_files import PLAIN, papers
from tests.support.site_pages import EVIL, NOW, PEOPLE, hostile_page, hostile_site


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    return hostile_page(tmp_path_factory.mktemp("hostile"))


def _words(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    body = re.sub(r"<style>.*?</style>", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_what_others_wrote_is_text_and_nothing_is_live(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    page = Page(text)
    assert not set(page.tags) & {"script", "iframe", "link", "object", "form", "embed", "base"}
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert all(value.startswith("#") for value in page.values("a", "href"))
    assert all(value.startswith("data:image/webp") for value in page.values("img", "src"))
    assert EVIL not in text
    assert text.count(html.escape(EVIL)) >= 6  # study, title, run, statistic, data set, log


def test_nobody_is_named_and_only_numbers_tell_who_is_left_out(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert not any(label in text for label in (*PEOPLE, "secret09", "withdrew"))
    assert "1 participant by the hospital's own table" in _words(written)
    assert "2 participants of old-0003, whose budget was used up" in _words(written)


def test_only_the_owner_can_read_it_even_if_an_earlier_one_was_open(tmp_path: Path) -> None:
    folder = hostile_site(tmp_path)
    path = folder / "site.html"
    path.write_text("an earlier one")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        assert write_site_page(folder, NOW) == path
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert "an earlier one" not in path.read_text()


def test_the_forecast_is_all_approved_runs_on_the_most_charged_person(written: Path) -> None:
    folder = written.parent
    study = approvals(folder, load_identity(folder))[0].study
    spent = Ledger(folder / LEDGER).most_charged("subject")
    price = mu_of(study.privacy.epsilon, study.privacy.delta)
    ahead = epsilon_of(compose([spent, *[price] * 3]), 1e-5)
    (words,) = re.findall(
        r"If all 3 runs .*? the loss would be ε = ([\d.]+) of 30", _words(written)
    )
    assert float(words) == pytest.approx(ahead, rel=5e-3)
    assert "3 of 3" in _words(written)


def test_the_pace_foretells_when_the_limit_is_reached(tmp_path: Path) -> None:
    folder = hostile_site(tmp_path)
    spent, allowed = Ledger(folder / LEDGER).most_charged("subject"), mu_of(30, 1e-5)
    days = 300 * (allowed / spent) ** 2 - 300  # squares of μ add up, day by day
    full = NOW + timedelta(days=days)
    assert f"the limit is reached in {full:%B %Y}." in _words(write_site_page(folder, NOW))


def test_a_run_that_holds_its_loss_is_none_of_those_left(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    for name in SITES:
        limit(place, name, 50.0)
    LocalConsortium(place).centre().open()
    folder = place.site("north")
    words = _words(write_site_page(folder, NOW))
    assert "0 of 1" in words
    assert "No approved run of this unit remains." in words
    (held,) = held_runs(Ledger(folder / LEDGER).entries(), Policy.load(folder))
    assert (held.run, held.rounds) == ("small-0001", 0)
    assert held.sentence in words


def test_a_used_up_or_ended_approval_has_no_run_left(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    for name in SITES:
        limit(place, name, 50.0)
    local = LocalConsortium(place)
    conduct(local.centre())
    local.pump()  # hears of the end
    words = _words(write_site_page(place.site("north"), NOW))
    assert "0 of 1" in words
    assert "All approved runs have begun or taken place." in words
    assert "No approved run of this unit remains." in words
    assert "In 1 run, this site answered 3 of 3 questions" in words
    assert "small-0001 has ended: complete" in words


def test_it_says_what_the_agent_does_now(tmp_path: Path) -> None:
    folder = hostile_site(tmp_path)
    assert "The agent is not running" in _words(write_site_page(folder, NOW))
    waits = WaitFile(folder, lambda: 1.8e9)
    with only_one(folder, "agent"):
        waits.show("rest-2026", 5.0, 60.0, {"this site": "loading 3 of 24"})
        assert "rest-2026: loading 3 of 24." in _words(write_site_page(folder, NOW))
        waits.show("rest-2026-0001", 5.0, 60.0, {"centre": "the centre (round 7)"})
        words = _words(write_site_page(folder, NOW))
        assert "rest-2026-0001: it waits for the centre (round 7), since" in words
        assert f"It takes part in {EVIL} of {EVIL}, where round 1 was" in words
        waits.clear()
        store = MessageStore(folder / STORE)
        store.save(EVIL, ENDED, b"")
        words = _words(write_site_page(folder, NOW))
        assert "It waits for the coordinator to start a run" in words
        store.halt("another copy, at /secret/place")
        words = _words(write_site_page(folder, NOW))
        assert "has stopped for good" in words
        assert "/secret/place" not in words


def test_a_running_agent_keeps_the_page_and_the_last_says_that_it_stopped(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    folder = place.site("north")
    config = SiteConfig.load(folder)
    config.model_copy(update={"page": True}).save(folder)
    local = LocalConsortium(place)
    agent = local.agent("north")
    with pytest.raises(Exception, match="nothing to do"):
        agent.work(once=True, idle=30.0)
    assert "The agent is not running" in _words(folder / "site.html")
    assert (folder / "site.html").stat().st_mode & 0o777 == 0o600
    for name in SITES[1:]:
        assert not (place.site(name) / "site.html").exists()


def test_damaged_lines_of_the_log_stop_nobody(tmp_path: Path) -> None:
    told = LogLines(tmp_path, NOW.isoformat)
    for number in range(60):
        told.keep(f"line {number}")
    assert [line.text for line in read_log_lines(tmp_path)] == [f"line {n}" for n in range(20, 60)]
    (tmp_path / ".work" / "told.json").write_text('{"a": 1')
    assert read_log_lines(tmp_path) == []
    LogLines(tmp_path, NOW.isoformat).keep("again")
    assert [line.text for line in read_log_lines(tmp_path)] == ["again"]


def test_a_refusal_over_a_data_set_names_nobody(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    first = min(place.dataset("north").glob("sub-0*"))
    folder = place.site("north")
    (folder / "left_out.tsv").write_text(f"participant_id\treason\n\t{first.name} is moving")
    config = SiteConfig.load(folder).model_copy(update={"left_out": folder / "left_out.tsv"})
    config.save(folder)
    local = LocalConsortium(place)
    with pytest.raises(Exception, match="north"):
        conduct(local.centre())
    assert "left_out.tsv, line 2" in local.said("north")
    words = _words(write_site_page(place.site("north"), NOW))
    assert "small-0001 continues without this site: its data set can't be used" in words
    assert "sub-0" not in words


def test_an_altered_ledger_has_no_page(tmp_path: Path) -> None:
    folder = hostile_site(tmp_path)
    with sqlite3.connect(folder / LEDGER) as connection:
        connection.execute("UPDATE entries SET mu = 0 WHERE seq = 1")
    with pytest.raises(LedgerError, match="line 1 was altered"):
        write_site_page(folder, NOW)
    assert not (folder / "site.html").exists()


def test_a_place_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    folder = hostile_site(tmp_path)
    with pytest.raises(OutputError, match="can't be written"):
        write_site_page(folder, NOW, folder / LEDGER / "site.html")


def test_a_study_that_waits_is_shown_with_the_command_to_copy(tmp_path: Path) -> None:
    place, _ = papers(tmp_path, f"title: {EVIL!r}\n{PLAIN}")
    folder = place.site("east")
    assert "Waiting for your decision" not in _words(write_site_page(folder, NOW))
    receive_study(place)
    path = write_site_page(folder, NOW)
    words = _words(path)
    studies = folder.resolve() / "studies"
    command = f"site-agent approve {studies}/study.yaml --roster {studies}/roster.yaml -f {folder}"
    assert command in words
    assert "A run costs ε ≤ 8 and protects each participant" in words
    assert EVIL not in path.read_text(encoding="utf-8")
    approve(folder, "east", load_identity(folder), *_received(studies), Terms(1))
    assert "Waiting for your decision" not in _words(write_site_page(folder, NOW))


def _received(studies: Path) -> tuple[Path, Path]:
    return studies / "study.yaml", studies / "roster.yaml"
