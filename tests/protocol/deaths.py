"""A party that dies at its writes, one after the other, and is built again from its disk."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.exchange import DirectoryExchange
from consortium.study.slots import SHORTEST
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger
from tests.protocol.faults import Fault, FaultyConsortium, Stage
from tests.protocol.watched import Died, Write
from tests.support.forgery import Mail
from tests.support.local_consortium import SITES, LocalConsortium, conduct

Place = tuple[str, Write]
"""Where a party may die: just before a write, or just after it."""


class Deaths(Fault):
    """Kills one party again and again, once at each place.

    The same one is let loose on run after run, until it has struck everywhere.

    Parameters
    ----------
    victim : str
    rest : int
        Places that pass between two deaths of a run.
    """

    def __init__(self, victim: str, rest: int) -> None:
        super().__init__(Write(victim, "", ""))
        self.victim, self.rest = victim, rest
        self.passed, self.struck = rest, dict[Place, None]()
        self._write = self.at

    def strikes(self, write: Write) -> bool:
        """Whether the write is the victim's."""
        self._write = write
        return write.who == self.victim

    def before(self, stage: Stage, data: bytes) -> None:
        self._pass(("before", self._write))

    def after(self, stage: Stage, data: bytes) -> None:
        self._pass(("after", self._write))

    def _pass(self, place: Place) -> None:
        self.passed += 1
        if self.passed > self.rest and place not in self.struck:
            self.struck[place], self.passed = None, 0
            raise Died


def copy_place(source: Path, target: Path) -> DemoFolders:
    """A twin with the same keys, which makes the same noise."""
    shutil.copytree(source, target, symlinks=True)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        file.write_text(file.read_text().replace(str(source), str(target)))
    return DemoFolders(target)


def check_ledgers(place: DemoFolders, rounds: int) -> None:
    """Every site charged each round once, and marked it as answered once."""
    for name in SITES:
        entries = Ledger(place.site(name) / LEDGER).entries()
        for event in ("reserve", "spend"):
            found = [e.charge.round for e in entries if e.event == event]
            assert found == list(range(1, rounds + 1)), f"{name}: {event} {found}"


def die_everywhere(
    source: Path, root: Path, deaths: Deaths, check: Callable[[DemoFolders, Mail], None]
) -> int:
    """Play runs until the victim has died at every place; returns how many there are."""
    unbroken = conduct(LocalConsortium(copy_place(source, root / "unbroken")).centre())
    struck = -1
    while struck < len(deaths.struck):
        struck, deaths.passed = len(deaths.struck), deaths.rest
        place = copy_place(source, root / str(struck))
        with pytest.MonkeyPatch.context() as patch:
            parties = FaultyConsortium(place)
            Stage(patch, parties, (deaths,), DirectoryExchange.pace)
            mail = Mail(patch)
            found = parties.carry_out()
            for _ in range(20):
                parties.ticks.pause(SHORTEST)  # those who were down at the end hear of it
        died = [f"{when} {write}" for when, write in list(deaths.struck)[struck:]]
        assert found == unbroken, f"{deaths.victim} died {died}: {found}"
        mail.check_said_once()
        check(place, mail)
        shutil.rmtree(place.root)
    return struck
