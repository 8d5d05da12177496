"""Time as an argument, and waiting that is neither late nor busy."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

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
