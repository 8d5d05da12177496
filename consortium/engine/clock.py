"""Time as an argument, waiting that is neither late nor busy, and an order to give a run up.

What the centre waits for is written down for people: from whom, since when, until when.
"""

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.work import work_folder
from consortium.errors import OutputError, RunCancelledError

SLOWEST_POLL = 0.25  # s
_EAGERNESS = 0.1
_SHARE = 2.0  # of a look's time
_MOST_OF, _MOST_REST = 0.75, 20  # of a wait; of the exchange's pace
_INSTANT = 1e-6  # s; a shorter rest may be too small to add to a large clock reading
WAITING = "waiting.json"
_WORTH_TELLING = 1.0  # s; a healthy round is over before, and writes nothing


class EarlierWaits:
    """How long a few waits took, and so how soon no message of the next one can be expected."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque(maxlen=4)

    def note(self, seconds: float) -> None:
        """Remember a wait that ended with what was awaited."""
        self._taken.append(seconds)

    def first_rest(self, pace: float) -> float:
        """Return most of the shortest one, in seconds, but some looks' worth of time at most."""
        return min(min(self._taken, default=0.0) * _MOST_OF, _MOST_REST * pace)


@dataclass
class Clock:
    """Time as an argument: a monotonic clock, a way to pass it, and the time of day (Unix)."""

    now: Callable[[], float] = field(default=time.monotonic)
    pause: Callable[[float], None] = field(default=time.sleep)
    wall: Callable[[], float] = field(default=time.time)

    def polls(
        self,
        seconds: float,
        pace: float = 0.002,
        slowest: float = SLOWEST_POLL,
        first: float = 0.0,
        due: Callable[[], float] = lambda: math.inf,
    ) -> Iterator[float]:
        """Yield the seconds left, again and again, until there are none.

        A rest is a tenth of the time waited so far, so that whoever waits is late by
        little. It is twice as long as the look before it took, so that many who wait for a slow
        store don't make it slower, and not below ``pace`` or above ``slowest`` seconds. Before the
        first look it is ``first`` seconds. No rest goes on beyond what is ``due``, in seconds from
        its beginning.
        """
        start = self.now()
        if first > _INSTANT:
            self.pause(min(first, seconds, due()))
        while (left := seconds - (waited := self.now() - start)) > _INSTANT:
            looked = self.now()
            yield left
            took = self.now() - looked
            step = min(max(waited * _EAGERNESS, _SHARE * took, pace), max(slowest, pace))
            self.pause(min(step, left, due()))


@dataclass(frozen=True)
class Cancellation:
    """Whether somebody cancelled a run; it is never taken back."""

    order: Event = field(default_factory=Event)
    """Set by whoever hears of it, in any thread."""

    def check(self) -> None:
        """Go on, unless the run was cancelled; raises RunCancelledError if it was."""
        if self.order.is_set():
            raise RunCancelledError("The run was cancelled on the coordinator's Prefect.")

    def clock(self, clock: Clock) -> Clock:
        """Return the same time, whose waiting ends once the run is cancelled."""

        def pause(seconds: float) -> None:
            self.check()
            clock.pause(seconds)

        return replace(clock, pause=pause)


@dataclass(frozen=True)
class Waiting:
    """A wait."""

    step: str
    """What is awaited, such as ``round 7 (contribution)``."""
    since: float
    until: float
    """Unix times."""
    sites: Mapping[str, str]
    """The sites that are awaited, each with what else is known of it, which may be nothing."""
    deadlines: Mapping[str, float] = field(default_factory=dict)
    """Unix time until which each is awaited, where it is not ``until``."""


class WaitFile:
    """Keeps the current wait in the output folder.

    Parameters
    ----------
    folder : Path
        The output folder.
    wall : callable
        Unix time.
    """

    def __init__(self, folder: Path, wall: Callable[[], float]) -> None:
        self._path = work_folder(folder) / WAITING
        self._wall = wall
        self._listeners: list[Callable[[Waiting], None]] = []
        self._shown: Waiting | None = None

    def listen(self, listener: Callable[[Waiting], None]) -> None:
        """Have somebody hear of every wait that is written down."""
        self._listeners.append(listener)

    @property
    def shown(self) -> Waiting | None:
        """The wait that is written down now."""
        return self._shown

    def show(
        self,
        step: str,
        waited: float,
        left: float,
        sites: Mapping[str, str],
        lefts: Mapping[str, float] | None = None,
    ) -> None:
        """Write a wait down once it is worth telling, and whenever somebody else is awaited."""
        known = self._shown
        if waited < _WORTH_TELLING or (known and (known.step, known.sites) == (step, sites)):
            return
        now = self._wall()
        deadlines = {site: now + seconds for site, seconds in (lefts or {}).items()}
        self._shown = Waiting(step, now - waited, now + left, dict(sites), deadlines)
        write_bytes(self._path, json.dumps(asdict(self._shown)).encode())
        for listener in self._listeners:
            listener(self._shown)

    def clear(self) -> None:
        """Nobody is awaited; what an earlier process left goes, too.

        Raises OutputError if the note can't be removed.
        """
        self._shown = None
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"{self._path} can't be removed ({error.strerror}); check the folder's rights."
            ) from error


def read_waiting(folder: Path) -> Waiting | None:
    """Return what the centre of an output folder waits for, or None.

    Raises OutputError if the note is damaged.
    """
    path = work_folder(folder) / WAITING
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        sites = {str(site): str(note) for site, note in content["sites"].items()}
        deadlines = {str(site): float(at) for site, at in content.get("deadlines", {}).items()}
        since, until = float(content["since"]), float(content["until"])
        return Waiting(str(content["step"]), since, until, sites, deadlines)
    except FileNotFoundError:
        return None
    except DAMAGED as error:
        raise OutputError(f"{path} is damaged; remove it.") from error
