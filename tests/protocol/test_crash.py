"""A party that dies at any write and is built again from its disk changes nothing.

Every write that a site or the centre makes is a place to die, just before it
and just after it. The study must end with the same bytes as an unbroken run,
and every ledger must have charged each round once.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from consortium.coordinator.demo.layout import DemoFolders
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger
from tests.protocol.reaper import Reaper, check_ledgers, conduct_mortally, copy_place
from tests.support.local_consortium import STUDY, LocalConsortium, build, conduct


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    root = tmp_path_factory.mktemp("crash")
    build(root / "original", text=STUDY.replace("rounds: 2", "rounds: 1"))
    unbroken = copy_place(root / "original", root / "unbroken")
    return root, conduct(LocalConsortium(unbroken).centre())


@pytest.mark.parametrize("victim", ["east", "centre"])
def test_death_at_every_write(
    victim: str, original: tuple[Path, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, expected = original
    fatal = 0
    while True:
        fatal += 1
        reaper = Reaper(victim, fatal)
        place = copy_place(root / "original", root / f"{victim}-{fatal}")
        with monkeypatch.context() as patch:
            reaper.watch(patch)
            found = conduct_mortally(place, reaper)
        assert found == expected, f"{victim} died at write {fatal}"
        check_ledgers(place, 2)
        shutil.rmtree(place.root)
        if reaper.places < fatal:
            break
    assert fatal > (30 if victim == "east" else 20), "too few places to die were tried"


def test_an_edited_ledger_is_noticed(original: tuple[Path, dict[str, bytes]]) -> None:
    from consortium.errors import LedgerError

    root, _ = original
    path = DemoFolders(root / "unbroken").site("south") / LEDGER
    Ledger(path).entries()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET mu = mu / 2 WHERE seq = 3")
    with pytest.raises(LedgerError, match="line 3 was altered"):
        Ledger(path).entries()
