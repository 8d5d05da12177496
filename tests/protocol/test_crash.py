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
from village import SITES, STUDY, Village, build, conduct

from consortium.demo import Place
from consortium.engine import transcript
from consortium.exchange import DirectoryExchange
from site_agent.ledger import LEDGER, Ledger
from site_agent.store import Store


class Died(BaseException):
    """The process is gone; nothing of ours catches this."""


class Reaper:
    """Counts the writes of the party at work, and kills it at one of them."""

    def __init__(self, victim: str, fatal: int) -> None:
        self.victim, self.fatal, self.writes, self.now = victim, fatal, 0, "centre"

    def wrap(self, method):
        def guarded(*args, **kwargs):
            mine = self.now == self.victim
            if mine:
                self.writes += 1
                if self.writes == self.fatal:
                    raise Died
            result = method(*args, **kwargs)
            if mine:
                self.writes += 1
                if self.writes == self.fatal:
                    raise Died
            return result

        return guarded


class MortalVillage(Village):
    """A village in which one party dies once."""

    reaper = Reaper("nobody", 0)

    def pump(self) -> None:
        for name in self.study.sites:
            self.reaper.now = name
            try:
                self.agent(name).round_trip()
            except Died:
                del self.agents[name]  # built again from its folder at the next look
        self.reaper.now = "centre"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    root = tmp_path_factory.mktemp("crash")
    build(root / "original", text=STUDY.replace("rounds: 2", "rounds: 1"))
    unbroken = _copy(root / "original", root / "unbroken")
    return root, conduct(Village(unbroken).centre())


def _copy(source: Path, target: Path) -> Place:
    shutil.copytree(source, target, symlinks=True)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        text = file.read_text().replace(str(source), str(target))
        file.write_text(text)
    return Place(target)


def _conduct_mortally(village: MortalVillage) -> dict[str, bytes]:
    while True:
        try:
            return conduct(village.centre())
        except Died:
            village.agents.clear() if village.reaper.now != "centre" else None


@pytest.mark.parametrize("victim", ["east", "centre"])
def test_death_at_every_write(
    victim: str, original: tuple[Path, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, expected = original
    fatal = 0
    while True:
        fatal += 1
        reaper = Reaper(victim, fatal)
        with monkeypatch.context() as patch:
            patch.setattr(DirectoryExchange, "put", reaper.wrap(DirectoryExchange.put))
            patch.setattr(Store, "save_all", reaper.wrap(Store.save_all))
            patch.setattr(Ledger, "reserve", reaper.wrap(Ledger.reserve))
            patch.setattr(Ledger, "spend", reaper.wrap(Ledger.spend))
            writer = reaper.wrap(transcript.write_atomically)
            patch.setattr(transcript, "write_atomically", writer)
            place = _copy(root / "original", root / f"{victim}-{fatal}")
            village = MortalVillage(place)
            village.reaper = reaper
            found = _conduct_mortally(village)
            for _ in range(20):  # a site that was down at the end still hears of it
                village.pump()
        assert found == expected, f"{victim} died at write {fatal}"
        _ledgers_are_sound(place)
        shutil.rmtree(place.root)
        if reaper.writes < fatal:
            break
    assert fatal > (30 if victim == "east" else 20), "too few places to die were tried"


def _ledgers_are_sound(place: Place) -> None:
    for name in SITES:
        entries = Ledger(place.site(name) / LEDGER).entries()
        for event in ("reserve", "spend"):
            rounds = [e.charge.round for e in entries if e.event == event]
            assert rounds == [1, 2], f"{name}: {event} {rounds}"


def test_an_edited_ledger_is_noticed(original: tuple[Path, dict[str, bytes]]) -> None:
    from consortium.errors import LedgerError

    root, _ = original
    path = Place(root / "unbroken").site("south") / LEDGER
    Ledger(path).entries()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET mu = mu / 2 WHERE seq = 3")
    with pytest.raises(LedgerError, match="line 3 was altered"):
        Ledger(path).entries()
