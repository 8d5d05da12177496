"""Bad weather for a village: faults that are drawn at random while a run goes on.

At most one site at a time is hindered so much that it may miss a round, since the study that the
soak runs allows for one; everything else may happen to anybody, and must make no difference.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from consortium.engine import transcript
from consortium.errors import ExchangeError, OutputError
from consortium.exchange import DirectoryExchange
from site_agent.ledger.ledger import Ledger
from site_agent.run.message_store import MessageStore
from tests.long.restarting_consortium import CENTRE, Mortal
from tests.protocol.fault_cells import flipped
from tests.protocol.faults import Died
from tests.support.local_consortium import SITES

CHANCE = 0.25
"""Of a fault, for each round."""
DISK = "centre's disk full"
HARMLESS = ("killed", "away briefly", "duplicated", "corrupted", "replayed", "exchange away")
HARMFUL = ("away for long", "lost", "corrupted for good")
KINDS = (*HARMLESS, *HARMFUL, DISK)
BRIEF, LONG = 0.5, 60.0  # s; a site is given four for an answer
HALF = 0.5
_T = TypeVar("_T")


class Armed(NamedTuple):
    """A fault that waits for a party's ``left``-th write from now."""

    kind: str
    who: str
    left: int


class Weather:
    """Draws faults, makes them happen, and keeps a record of what was put on the exchange.

    Parameters
    ----------
    patch : MonkeyPatch
    village : Mortal
    draw : Random
    said : Path
        Folder for digests of everything that was ever put: on disk, so that the record's own
        growth is not taken for the parties'.
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, village: Mortal, draw: random.Random, said: Path
    ) -> None:
        self.village, self.draw = village, draw
        self.counts: Counter[str] = Counter()
        self.twice: list[str] = []
        self._said = said
        self._armed: Armed | None = None
        self._victim: str | None = None
        self._shown: dict[str, tuple[float, bytes]] = {}
        self._outage = 0.0
        self._latest: dict[tuple[str, str], bytes] = {}
        self._watch_exchange(patch)
        self._watch_disks(patch)

    @property
    def now(self) -> float:
        """Time of the village."""
        return self.village.ticks.now

    # -- drawing ----------------------------------------------------------------------------

    def turn(self) -> None:
        """A round begins: perhaps something goes wrong in it."""
        self._shown = {name: shown for name, shown in self._shown.items() if shown[0] > self.now}
        if self.draw.random() >= CHANCE or self._armed is not None:
            return
        kind = self.draw.choice(KINDS)
        site, anybody = self.draw.choice(SITES), self.draw.choice((CENTRE, *SITES))
        if kind in HARMFUL:
            site = self._victim = self._victim or site
        if kind.startswith("away"):
            spell = (0.1, 2.0) if kind == "away briefly" else (5.0, 30.0)
            self.village.away[site] = self.now + self.draw.uniform(*spell)
            self.counts[kind] += 1
        elif kind == "exchange away":
            self._outage = self.now + self.draw.uniform(0.1, 2.0)
            self.counts[kind] += 1
        else:
            who = CENTRE if kind == DISK else site if kind in HARMFUL else anybody
            self._armed = Armed(kind, who, self.draw.randint(1, 6))

    def cleared(self, everybody: bool) -> None:
        """A round is over; once everybody was in one, somebody else may be hindered."""
        idle = self._armed is None or self._armed.kind not in HARMFUL
        if everybody and idle and not any(end > self.now for end in self.village.away.values()):
            self._victim = None

    def _due(self, where: str) -> str:
        """Kind of the fault that strikes at this write, or nothing."""
        armed = self._armed
        if armed is None or armed.who != self.village.at_work:
            return ""
        needed = {"killed": where, DISK: "folder"}.get(armed.kind, "exchange")
        fits = where == needed
        if fits:
            self._armed = armed._replace(left=armed.left - 1)
        if not fits or armed.left > 1:
            return ""
        self._armed = None
        self.counts[armed.kind] += 1
        return armed.kind

    # -- what is hit ------------------------------------------------------------------------

    def _write(self, where: str, act: Callable[[], _T]) -> tuple[_T, str]:
        """Make a write, unless its party dies before; returns what else is due to it."""
        kind = self._due(where)
        if kind == DISK:
            raise OutputError("The disk is full; free some space and run the study again.")
        if kind == "killed" and self.draw.random() < HALF:
            raise Died
        result = act()
        if kind == "killed":
            raise Died
        return result, kind

    def _spoil(self, kind: str, name: str, data: bytes, older: bytes) -> None:
        """Do something to the message that was put just now; ``older`` is the one before it."""
        path = Path(self.village.place.files.exchange) / name
        if kind == "lost":
            path.unlink(missing_ok=True)
        elif kind == "duplicated":
            path.with_name(f"{path.name}-copy").write_bytes(data)
        elif kind == "replayed":
            self._shown[name] = (self.now + BRIEF, older)
        elif kind:
            spell = BRIEF if kind == "corrupted" else LONG
            self._shown[name] = (self.now + spell, flipped(data))

    def _keep(self, name: str, data: bytes) -> None:
        """Note what a name was given; another content than before is a broken promise."""
        record, digest = self._said / name.replace("/", "~"), hashlib.sha256(data).hexdigest()
        if not record.exists():
            record.write_text(digest)
        elif record.read_text() != digest:
            self.twice.append(name)
        self._latest[self.village.at_work, _kind(name)] = data

    def _stand(self) -> None:
        if self.now < self._outage:
            raise ExchangeError("The exchange is away; it is waited for.")

    def _watch_exchange(self, patch: pytest.MonkeyPatch) -> None:
        real = {name: getattr(DirectoryExchange, name) for name in ("put", "get", "children")}

        def put(exchange: DirectoryExchange, name: str, data: bytes) -> None:
            def act() -> None:
                real["put"](exchange, name, data)
                self._keep(name, data)

            self._stand()
            data = bytes(data)
            older = self._latest.get((self.village.at_work, _kind(name)), b"nothing before")
            self._spoil(self._write("exchange", act)[1], name, data, older)

        def get(exchange: DirectoryExchange, name: str, limit: int) -> bytes | None:
            self._stand()
            found: bytes | None = real["get"](exchange, name, limit)
            until, shown = self._shown.get(name, (0.0, b""))
            return shown if found is not None and self.now < until else found

        def children(exchange: DirectoryExchange, prefix: str) -> list[str]:
            self._stand()
            return list(real["children"](exchange, prefix))

        for name, watched in (("put", put), ("get", get), ("children", children)):
            patch.setattr(DirectoryExchange, name, watched)

    def _watch_disks(self, patch: pytest.MonkeyPatch) -> None:
        def watch(owner: Any, name: str, where: str) -> None:
            real = getattr(owner, name)

            def watched(*arguments: Any, **more: Any) -> Any:
                return self._write(where, lambda: real(*arguments, **more))[0]

            patch.setattr(owner, name, watched)

        watch(MessageStore, "save_all", "store")
        watch(Ledger, "reserve", "ledger")
        watch(Ledger, "spend", "ledger")
        watch(transcript, "write_bytes", "folder")


def _kind(name: str) -> str:
    """Kind of a message by its name: the word after the round's number, or the folder."""
    words = name.split("/")
    return words[3] if len(words) > 3 and words[2].isdigit() else words[-2]
