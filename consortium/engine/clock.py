"""Time as an argument, waiting that is neither late nor busy, and cancellation of a run.

For its users, the centre records the sites that it is waiting for, since when, and until when.
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
_SHARE = 2.0  # least pause, relative to the time of a look
_MOST_OF = 0.75  # fraction of a wait
_MOST_REST = 20  # factor of the exchange's pace
_INSTANT = 1e-6  # s; a shorter rest may be too small to add to a large clock reading
WAITING = "waiting.json"
_WORTH_TELLING = 1.0  # s; a healthy round is over before, and writes nothing


class EarlierWaits:
    """How long a few waits took, and so how soon no message of the next one can be expected."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque(maxlen=4)

    def note(self, seconds: float) -> None:
        """Record the length of a successful wait."""
        self._taken.append(seconds)

    def first_rest(self, pace: float) -> float:
        """Return most of the shortest wait, in seconds, up to the time of a few looks."""
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
        """Yield the remaining seconds repeatedly, until there are none.

        A pause is a tenth of the time waited so far, so a waiter is late by little. It is at least
        twice as long as the look before it took: many waiters then don't make a slow store slower.
        It is not below ``pace`` or above ``slowest`` seconds, and before the first look ``first``
        seconds. No pause extends beyond ``due``, in seconds from its beginning.
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
    """Whether a user cancelled a run, which can't be revoked."""

    order: Event = field(default_factory=Event)
    """Set in any thread."""

    def check(self) -> None:
        """Raise RunCancelledError if the run was cancelled."""
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
    """A wait of a run for messages of sites, with its deadlines."""

    step: str
    """Awaited message, such as ``round 7 (contribution)``."""
    since: float
    until: float
    """Unix times."""
    sites: Mapping[str, str]
    """The awaited sites, each with further information, which may be empty."""
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
        """Register a listener for every recorded wait."""
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
        """Record a wait once it is long enough, and whenever the awaited sites change."""
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
        """Remove the note of a wait, also that of an earlier process.

        Raises OutputError if the note can't be removed.
        """
        self._shown = None
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"{self._path} can't be removed ({error.strerror}). Check the folder's rights."
            ) from error


def read_waiting(folder: Path) -> Waiting | None:
    """Return the present wait of the centre of an output folder, or None.

    Raises OutputError if the note is damaged.
    """
    path = work_folder(folder) / WAITING
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        sites = {str(site): str(note) for site, note in content["sites"].items()}
        deadlines = {str(site): float(at) for site, at in content.get("deadlines", {}).items()}
        since = float(content["since"])
        until = float(content["until"])
        return Waiting(str(content["step"]), since, until, sites, deadlines)
    except FileNotFoundError:
        return None
    except DAMAGED as error:
        raise OutputError(f"{path} is damaged. Remove it.") from error
