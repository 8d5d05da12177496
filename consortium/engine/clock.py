"""Time as an argument, and waiting that is neither late nor busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_SLOWEST_POLL = 0.25
_EAGERNESS = 0.05
_INSTANT = 1e-6  # s; a shorter rest may be too small to add to a large clock reading


@dataclass
class Clock:
    """Time as an argument: a monotonic clock, a way to pass it, and the time of day (Unix)."""

    now: Callable[[], float] = field(default=time.monotonic)
    pause: Callable[[float], None] = field(default=time.sleep)
    wall: Callable[[], float] = field(default=time.time)

    def polls(self, seconds: float, pace: float = 0.002) -> Iterator[float]:
        """Yield the seconds left, again and again, until there are none.

        A rest is a twentieth of the time waited so far, so that whoever waits is late by
        little, and not below ``pace`` seconds or above a quarter of a second.
        """
        start = self.now()
        while (left := seconds - (waited := self.now() - start)) > _INSTANT:
            yield left
            step = min(max(waited * _EAGERNESS, pace), max(_SLOWEST_POLL, pace))
            self.pause(min(step, left))
