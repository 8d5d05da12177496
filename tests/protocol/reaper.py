"""A party that dies at one of its writes, and is built again from its disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consortium.coordinator.demo.layout import DemoFolders
from consortium.engine import transcript
from consortium.exchange import DirectoryExchange
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger
from site_agent.run.message_store import MessageStore
from tests.support.forgery import Mail
from tests.support.local_consortium import SITES, LocalConsortium, conduct

Name = Callable[..., object]
WRITERS: tuple[tuple[Any, str, Name], ...] = (
    (DirectoryExchange, "put", lambda _, name, data: name),
    (MessageStore, "save_all", lambda _, run, messages: tuple(messages)),
    (Ledger, "reserve", lambda _, charge, *rest: charge.round),
    (Ledger, "spend", lambda _, charge, *rest: charge.round),
    (Ledger, "settle", lambda _: None),
    (transcript, "write_bytes", lambda path, data: path.name),
)
"""Whatever writes, and how its writes are told apart."""


class Died(BaseException):
    """The process is gone; nothing of ours catches this."""


class Reaper:
    """Counts the places where the party at work may die, and kills it at one of them.

    A place is just before a write, or just after it.
    """

    def __init__(self, victim: str, fatal: int) -> None:
        self.victim, self.fatal, self.places, self.now = victim, fatal, 0, "centre"

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Stand beside everybody who writes anything."""
        for owner, name, called in WRITERS:
            patch.setattr(owner, name, self._wrap(getattr(owner, name), name, called))

    def _wrap(self, method: Callable[..., Any], kind: str, called: Name) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            mine, what = self.now == self.victim, called(*args)
            if mine:
                self._pass(("before", kind, what))
            result = method(*args, **kwargs)
            if mine:
                self._pass(("after", kind, what))
            return result

        return guarded

    def _pass(self, place: tuple[object, ...]) -> None:
        self.places += 1
        if self.strikes(place):
            raise Died

    def strikes(self, place: tuple[object, ...]) -> bool:
        """Whether the party dies here."""
        del place
        return self.places == self.fatal


class Plague(Reaper):
    """Kills again and again, once at each place; many places pass between two deaths of a run.

    The same one is let loose on run after run, until it has struck everywhere.
    """

    def __init__(self, victim: str, rest: int) -> None:
        super().__init__(victim, 0)
        self.rest, self.struck = rest, dict[tuple[object, ...], None]()

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Stand there for another run, ready to strike at once."""
        self.places = self.rest
        super().watch(patch)

    def strikes(self, place: tuple[object, ...]) -> bool:
        """Whether the party dies here; the count starts again if it does."""
        due = self.places > self.rest and place not in self.struck
        if due:
            self.struck[place], self.places = None, 0
        return due


class MortalVillage(LocalConsortium):
    """A village in which one party dies."""

    reaper = Reaper("nobody", 0)

    def pump(self) -> None:
        for name in self.study.sites:
            self.reaper.now = name
            try:
                self.agent(name).round_trip()
            except Died:
                del self.agents[name]  # built again from its folder at the next look
        self.reaper.now = "centre"


def copy_place(source: Path, target: Path) -> DemoFolders:
    """A twin with the same keys, which makes the same noise."""
    shutil.copytree(source, target, symlinks=True)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        file.write_text(file.read_text().replace(str(source), str(target)))
    return DemoFolders(target)


def conduct_mortally(place: DemoFolders, reaper: Reaper) -> dict[str, bytes]:
    """Play a whole run, and let those who were down at its end hear of it."""
    village = MortalVillage(place)
    village.reaper = reaper
    while True:
        try:
            found = conduct(village.centre())
        except Died:
            continue
        for _ in range(20):
            village.pump()
        return found


def check_ledgers(place: DemoFolders, rounds: int) -> None:
    """Every site charged each round once, and marked it as answered once."""
    for name in SITES:
        entries = Ledger(place.site(name) / LEDGER).entries()
        for event in ("reserve", "spend"):
            found = [e.charge.round for e in entries if e.event == event]
            assert found == list(range(1, rounds + 1)), f"{name}: {event} {found}"


def die_everywhere(
    source: Path, root: Path, plague: Plague, check: Callable[[DemoFolders, Mail], None]
) -> int:
    """Play runs until the victim has died at every place; returns how many there are."""
    unbroken = conduct(LocalConsortium(copy_place(source, root / "unbroken")).centre())
    struck = -1
    while struck < len(plague.struck):
        struck = len(plague.struck)
        place = copy_place(source, root / str(struck))
        with pytest.MonkeyPatch.context() as patch:
            plague.watch(patch)
            mail = Mail(patch)
            found = conduct_mortally(place, plague)
        died = list(plague.struck)[struck:]
        assert found == unbroken, f"{plague.victim} died {died}"
        mail.check_said_once()
        check(place, mail)
        shutil.rmtree(place.root)
    return struck
