"""When a site's messages leave: at the ends of time slots that nominal sizes fix.

A site that computes for its participants sends the result at the end of the slot, however soon it
is ready. A site that overruns uses the next end. So the time of a message does not depend on the
number of participants, as long as the site keeps to the slot.
"""

import math
from collections.abc import Iterable

from consortium.algorithms.base import PlannedRelease, Shape
from consortium.errors import StudyError
from consortium.privacy.mechanism import HEADROOM
from consortium.study.spec import Study

SHORTEST = 0.05
"""Shortest slot in seconds. All slots are multiples of it."""
_LOADED = 1e7
"""Numbers that a slow site loads in a second."""
_READ = 5e7
"""Numbers that a slow site reads from its cache and works on in a second."""
_MULTIPLIED = 5e9
"""Products that a slow site adds up in a second."""
_LOADED_EACH = 0.002
_COMPUTED_EACH = 0.001
"""Seconds that each participant takes in addition."""
_ENTERED_EACH = 0.0001
"""Seconds in which a slow site enters a participant in its ledger."""
_CLOSE = 1e-6
"""Parts of a slot by which rounding may move a clock reading."""


def loading_slot(shape: Shape) -> float:
    """Return the seconds after which a site says that its data are loaded.

    Examples
    --------
    >>> loading_slot(Shape(1000, (100, 50), (20000, 10000), "subject"))
    4.4
    """
    participants, numbers = _largest(shape)
    return _rounded(numbers / _LOADED + participants * _LOADED_EACH)


def ledger_slot(shape: Shape) -> float:
    """Return the seconds in which a site enters its participants in its ledger.

    A table of features is made again without participants who have no budget left.
    """
    participants, _ = _largest(shape)
    return _rounded(participants * (_ENTERED_EACH + shape.features / _READ))


def round_slot(shape: Shape, release: PlannedRelease) -> float:
    """Return the seconds after which a site's answer to a round of one statistic leaves."""
    participants, numbers = _largest(shape)
    products = numbers * release.entries / shape.features
    seconds = numbers / _READ + products / _MULTIPLIED + participants * _COMPUTED_EACH
    return _rounded(seconds)


def slot_end(since: float, now: float, slot: float) -> float:
    """Return the first end of a time slot for messages that is not before a time.

    Parameters
    ----------
    since : float
        Start of the first slot.

    Examples
    --------
    >>> [slot_end(10.0, now, 4.0) for now in (10.0, 12.5, 14.0, 14.5)]
    [14.0, 14.0, 14.0, 18.0]
    """
    return since + max(1, math.ceil((now - since) / slot - _CLOSE)) * slot


def check_slots(study: Study, shape: Shape, releases: Iterable[PlannedRelease]) -> None:
    """Compare time slots of messages with the study's deadlines.

    Raises StudyError if a deadline is not longer than a slot.
    """
    loading = loading_slot(shape)
    if study.timing.ready <= loading:
        raise _too_short("ready", study.timing.ready, "loading data", loading)
    for release in releases:
        slot = round_slot(shape, release)
        if study.timing.answer <= slot:
            raise _too_short("answer", study.timing.answer, f"'{release.stage}'", slot)


def _largest(shape: Shape) -> tuple[int, float]:
    """Return the largest number of participants of a site, and of all their values."""
    rows = max(shape.features, shape.voxels)
    return HEADROOM * max(shape.subjects), float(HEADROOM * rows * max(shape.samples))


def _rounded(seconds: float) -> float:
    """Round up to a multiple of the shortest slot."""
    return round(max(1, math.ceil(seconds / SHORTEST - _CLOSE)) * SHORTEST, 2)


def _too_short(field: str, given: float, what: str, slot: float) -> StudyError:
    return StudyError(
        f"field 'timing.{field}': more than {slot:g} s are required, got {given:g}. A site sends "
        f"its message on {what} after {slot:g} s, and the time then does not depend on its number "
        f"of participants. Raise timing.{field}."
    )
