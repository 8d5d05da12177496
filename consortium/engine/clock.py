"""Time as an argument, waiting that is neither late nor busy, and an order to give a run up."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event

from consortium.errors import RunCancelledError

SLOWEST_POLL = 0.25  # s
_EAGERNESS = 0.1
_SHARE = 2.0  # of a look's time
_MOST_OF, _MOST_REST = 0.75, 20  # of a wait; of the exchange's pace
_INSTANT = 1e-6  # s; a shorter rest may be too small to add to a large clock reading


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
    ) -> Iterator[float]:
        """Yield the seconds left, again and again, until there are none.

        A rest is a tenth of the time waited so far, so that whoever waits is late by
        little. It is twice as long as the look before it took, so that many who wait for a slow
        store don't make it slower, and not below ``pace`` or above ``slowest`` seconds. Before the
        first look it is ``first`` seconds.
        """
        start = self.now()
        if first > _INSTANT:
            self.pause(min(first, seconds))
        while (left := seconds - (waited := self.now() - start)) > _INSTANT:
            looked = self.now()
            yield left
            took = self.now() - looked
            step = min(max(waited * _EAGERNESS, _SHARE * took, pace), max(slowest, pace))
            self.pause(min(step, left))


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
