"""Faults that are drawn at random while a run goes on.

At most one site at a time is hindered so much that it may miss a round, since the study that the
soak runs allows for one; everything else may happen to anybody, and must make no difference.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from consortium.errors import ExchangeError, OutputError
from tests.long.restarting_consortium import RestartingConsortium
from tests.protocol.fault_cells import flipped
from tests.protocol.watched import CENTRE, Died, Watcher, Write
from tests.support.local_consortium import SITES

CHANCE = 0.25
"""Of a fault, for each round."""
DISK = "centre's disk full"
HARMLESS = ("killed", "away briefly", "duplicated", "corrupted", "replayed", "exchange away")
HARMFUL = ("away for long", "lost", "corrupted for good")
KINDS = (*HARMLESS, *HARMFUL, DISK)
BRIEF, LONG = 0.5, 60.0  # s; a site is given four for an answer
HALF = 0.5
_Done = TypeVar("_Done")


class Armed(NamedTuple):
    """A fault that waits for a party's ``left``-th write from now."""

    kind: str
    who: str
    left: int


class RandomFaults(Watcher):
    """Draws faults, makes them happen, and keeps a record of what was put on the exchange.

    Parameters
    ----------
    patch : MonkeyPatch
    parties : RestartingConsortium
    draw : Random
    said : Path
        Folder for digests of everything that was ever put: on disk, so that the record's own
        growth is not taken for the parties'.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        parties: RestartingConsortium,
        draw: random.Random,
        said: Path,
    ) -> None:
        self.parties, self.draw = parties, draw
        self.counts: Counter[str] = Counter()
        self.twice: list[str] = []
        self._said = said
        self._armed: Armed | None = None
        self._victim: str | None = None
        self._shown: dict[str, tuple[float, bytes]] = {}
        self._outage = 0.0
        self._latest: dict[tuple[str, str], bytes] = {}
        parties.faults = self
        super().__init__(patch)

    @property
    def now(self) -> float:
        """Time of the parties."""
        return self.parties.ticks.now

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
            self.parties.away[site] = self.now + self.draw.uniform(*spell)
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
        if everybody and idle and not any(end > self.now for end in self.parties.away.values()):
            self._victim = None

    def _due(self, where: str) -> str:
        """Kind of the fault that strikes at this write, or nothing."""
        armed = self._armed
        if armed is None or armed.who != self.at_work:
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

    def write(self, write: Write, data: bytes, act: Callable[[], _Done]) -> _Done:
        """Make a write, unless its party dies before; something else may be due to it."""
        if write.where == "cache":
            return act()
        kind = self._due(write.where)
        if kind == DISK:
            raise OutputError("The disk is full. Free some space and run the study again.")
        if kind == "killed" and self.draw.random() < HALF:
            raise Died
        result = act()
        if write.where == "exchange":
            self._put(write, kind, data)
        if kind == "killed":
            raise Died
        return result

    def read(self, name: str, data: bytes | None) -> bytes | None:
        """Return what is shown in a message's place, or the message."""
        until, shown = self._shown.get(name, (0.0, b""))
        return shown if data is not None and self.now < until else data

    def visit(self) -> None:
        """Refuse everybody while the exchange is away."""
        if self.now < self._outage:
            raise ExchangeError("The exchange is away; it is waited for.")

    def _put(self, write: Write, kind: str, data: bytes) -> None:
        """Note a message that was put, and do to it what is due."""
        sender = write.who, _kind(write.what)
        older = self._latest.get(sender, b"nothing before")
        self._keep(write.what, data)
        self._latest[sender] = data
        self._spoil("" if kind == "killed" else kind, write.what, data, older)

    def _spoil(self, kind: str, name: str, data: bytes, older: bytes) -> None:
        """Do something to the message that was put just now; ``older`` is the one before it."""
        path = Path(self.parties.place.files.exchange) / name
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


def _kind(name: str) -> str:
    """Kind of a message by its name: the word after the round's number, or the folder."""
    words = name.split("/")
    return words[3] if len(words) > 3 and words[2].isdigit() else words[-2]
