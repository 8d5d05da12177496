"""A party that dies at any write and is built again from its disk changes nothing.

Every write that a site or the centre makes is a place to die, just before it
and just after it. The study must end with the same bytes as an unbroken run,
and every ledger must have charged each round once.
"""

import sqlite3
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import LedgerError
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger
from site_agent.run.site_log import read_log_lines
from tests.protocol.deaths import Deaths, check_ledgers, die_everywhere
from tests.support.forgery import pump, settle
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, conduct

SHORT = STUDY.replace("rounds: 2", "rounds: 1")


def _check_last_lines(place: DemoFolders) -> None:
    """Every site's log states both charged rounds, however often its agent was restarted."""
    for name in SITES:
        ends = [line.text for line in read_log_lines(place.site(name)) if "has ended" in line.text]
        assert ends, f"{name} logged no end"
        for end in ends:
            assert "the answer to 2 rounds, 1 to 2, was sent and stays charged" in end, end


@pytest.mark.parametrize("victim", ["east", "centre"])
def test_death_at_every_write(victim: str, tmp_path: Path) -> None:
    source = settle(tmp_path / "place", text=SHORT).root

    def check(place: DemoFolders, _: object) -> None:
        check_ledgers(place, 2)
        _check_last_lines(place)

    places = die_everywhere(source, tmp_path, Deaths(victim, 4), check)
    assert places > (40 if victim == "east" else 20), "too few places to die were tried"


def test_an_agent_that_is_restarted_at_the_end_states_what_is_charged(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=SHORT)
    before = LocalConsortium(place)
    centre = before.centre()
    centre.open()
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    before.absent = set(SITES)  # every agent is stopped before it reads the end
    centre.finish()
    after = LocalConsortium(place)
    pump(after, 20)
    for name in SITES:
        assert "the answer to 2 rounds, 1 to 2, was sent and stays charged" in after.said(name)
        assert "nothing is charged" not in after.said(name)


def test_an_edited_ledger_is_noticed(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=SHORT)
    conduct(LocalConsortium(place).centre())
    path = place.site("south") / LEDGER
    Ledger(path).entries()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET mu = mu / 2 WHERE seq = 4")
    with pytest.raises(LedgerError, match="line 4 was altered"):
        Ledger(path).entries()
