"""A site's steps in one run, held back until the ends of their time slots."""

import math
from collections.abc import Callable

from consortium.study.slots import slot_end

_INSTANT = 1e-6  # s; a shorter wait may be too small to add to a large clock reading


class SlotClock:
    """Time at which a site may take its next step in one run.

    A step begins when the site looks at the exchange. If it computes or stores anything, it ends
    with a pause. During the pause, the site neither sends nor looks.

    Parameters
    ----------
    passed : callable
        Seconds on a clock that never goes back.
    """

    def __init__(self, passed: Callable[[], float]) -> None:
        self._passed = passed
        self._since = self._due = -math.inf

    def begin(self, at: float | None = None) -> None:
        """Begin a step.

        Parameters
        ----------
        at : float or None
            Seconds on the same clock (default: now).
        """
        self._since = self._passed() if at is None else at

    def hold(self, slot: float) -> None:
        """Hold the site back to the end of a slot that began with the step.

        Parameters
        ----------
        slot : float
            Length in seconds.
        """
        self._due = slot_end(self._since, self._passed(), slot)

    def hold_on(self, slot: float) -> None:
        """Pause the site until another end of a slot, counted from the end of the last pause."""
        self._due = slot_end(self._due, self._passed(), slot)

    @property
    def left(self) -> float:
        """Seconds until the pause is over, or 0."""
        left = self._due - self._passed()
        return left if left > _INSTANT else 0.0
