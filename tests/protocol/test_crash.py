"""A party that dies at any write and is built again from its disk changes nothing.

Every write that a site or the centre makes is a place to die, just before it
and just after it. The study must end with the same bytes as an unbroken run,
and every ledger must have charged each round once.
"""

import sqlite3
from pathlib import Path

import pytest

from consortium.errors import LedgerError
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger
from tests.protocol.deaths import Deaths, check_ledgers, die_everywhere
from tests.support.forgery import settle
from tests.support.local_consortium import STUDY, LocalConsortium, conduct

SHORT = STUDY.replace("rounds: 2", "rounds: 1")


@pytest.mark.parametrize("victim", ["east", "centre"])
def test_death_at_every_write(victim: str, tmp_path: Path) -> None:
    source = settle(tmp_path / "place", text=SHORT).root
    places = die_everywhere(
        source, tmp_path, Deaths(victim, 4), lambda place, _: check_ledgers(place, 2)
    )
    assert places > (40 if victim == "east" else 20), "too few places to die were tried"


def test_an_edited_ledger_is_noticed(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=SHORT)
    conduct(LocalConsortium(place).centre())
    path = place.site("south") / LEDGER
    Ledger(path).entries()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET mu = mu / 2 WHERE seq = 3")
    with pytest.raises(LedgerError, match="line 3 was altered"):
        Ledger(path).entries()
