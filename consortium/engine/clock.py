"""Time as an argument, and waiting that is neither late nor busy."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SLOWEST_POLL = 0.25  # s
_EAGERNESS = 0.1
_SHARE = 2.0  # of a look's time
_INSTANT = 1e-6  # s; a shorter rest may be too small to add to a large clock reading


@dataclass
class Clock:
    """Time as an argument: a monotonic clock, a way to pass it, and the time of day (Unix)."""

    now: Callable[[], float] = field(default=time.monotonic)
    pause: Callable[[float], None] = field(default=time.sleep)
    wall: Callable[[], float] = field(default=time.time)

    def polls(
        self, seconds: float, pace: float = 0.002, slowest: float = SLOWEST_POLL
    ) -> Iterator[float]:
        """Yield the seconds left, again and again, until there are none.

        A rest is a tenth of the time waited so far, so that whoever waits is late by
        little. It is twice as long as the look before it took, so that many who wait for a slow
        store don't make it slower, and not below ``pace`` or above ``slowest`` seconds.
        """
        start = self.now()
        while (left := seconds - (waited := self.now() - start)) > _INSTANT:
            looked = self.now()
            yield left
            took = self.now() - looked
            step = min(max(waited * _EAGERNESS, _SHARE * took, pace), max(slowest, pace))
            self.pause(min(step, left))
