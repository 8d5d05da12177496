"""A declined study waits no more, and the coordinator sees the decision."""

import json
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.consent import read_consents
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.study.reader import read_study
from site_agent.agent import Agent
from site_agent.approval.approval import approvals
from site_agent.approval.declining import read_declined
from site_agent.layout import CONFIG, DECLINED
from tests.support.command_line import enter, refused
from tests.support.inbox_client import NOW, receive_study
from tests.support.local_consortium import Ticks
from tests.support.membership_files import PLAIN, give_scans, papers, publish


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    found, _ = papers(tmp_path)
    give_scans(found)
    receive_study(found)
    return found


def _words(place: DemoFolders) -> tuple[object, ...]:
    files = place.files
    return files.study, "--roster", files.roster, "-f", place.site("east")


def _undecided(place: DemoFolders) -> list[str]:
    said = enter("site-agent", "status", "--json", "-f", place.site("east"))
    found: list[str] = json.loads(said.out)["undecided"]
    return found


def test_the_command_ends_the_wait_and_informs_the_coordinator(place: DemoFolders) -> None:
    assert _undecided(place) == ["small"]
    assert "undecided" in enter("site-agent", "status", "-f", place.site("east")).out
    assert enter("site-agent", "decline", *_words(place)).code == 0
    assert _undecided(place) == []
    study = read_study(place.files.study)
    given = read_consents(place.files.open_exchange(), study, _keys(place))["east"]
    assert given is not None
    assert given.declined
    assert enter("site-agent", "approve", *_words(place), "--yes").code == 0
    assert read_declined(place.site("east")) == {}


def _keys(place: DemoFolders) -> dict[str, bytes]:
    return dict(read_roster(place.files.roster).keys)


def test_another_file_of_the_same_name_waits_again(place: DemoFolders) -> None:
    assert enter("site-agent", "decline", *_words(place)).code == 0
    place.files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 7"))
    publish(place, read_roster(place.files.roster))
    receive_study(place)
    assert _undecided(place) == ["small"]


def test_an_approved_study_is_withdrawn_instead(place: DemoFolders) -> None:
    assert enter("site-agent", "approve", *_words(place), "--yes").code == 0
    assert "site-agent withdraw small" in refused("site-agent", "decline", *_words(place))
    assert not (place.site("east") / DECLINED).exists()


def test_without_an_exchange_it_is_recorded_and_the_command_says_so(
    place: DemoFolders, tmp_path: Path
) -> None:
    config = place.site("east") / CONFIG
    away = str(tmp_path / "away")
    config.write_text(config.read_text().replace(str(place.files.exchange), away))
    said = enter("site-agent", "decline", *_words(place))
    assert said.code == 0
    assert len(read_declined(place.site("east"))) == 1
    assert "is informed when the agent starts" in said.out


def test_a_damaged_record_is_an_error(place: DemoFolders) -> None:
    (place.site("east") / DECLINED).write_text("{")
    assert DECLINED in refused("site-agent", "decline", *_words(place))


def test_an_agent_that_starts_informs_the_coordinator(place: DemoFolders) -> None:
    folder = place.site("east")
    config = folder / CONFIG
    before = config.read_text()
    config.write_text(before.replace(str(place.files.exchange), str(folder / "away")))
    assert enter("site-agent", "decline", *_words(place)).code == 0
    config.write_text(before)
    agent = Agent(folder, Ticks().clock(), lambda: NOW, lambda _: None)
    agent.post_consents()
    given = read_consents(place.files.open_exchange(), read_study(place.files.study), _keys(place))[
        "east"
    ]
    assert given is not None
    assert given.declined
    agent.post_consents()
    (message,) = place.files.open_exchange().children("consent/small/east")
    assert message == "000001"


def test_a_damaged_record_does_not_stop_the_agent(place: DemoFolders) -> None:
    (place.site("east") / DECLINED).write_text("{")
    said: list[str] = []
    Agent(place.site("east"), Ticks().clock(), lambda: NOW, said.append).post_consents()
    assert DECLINED in "".join(said)


def test_an_approval_that_fails_is_not_made(place: DemoFolders) -> None:
    (place.site("east") / DECLINED).write_text("{")
    assert DECLINED in refused("site-agent", "approve", *_words(place), "--yes")
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []
