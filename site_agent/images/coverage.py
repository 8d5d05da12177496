"""Coverage of a study's mask by the participants of one site, counted for the site's own staff.

It is never sent, and no answer of the site depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Serious
from consortium.base.formatting import count
from site_agent.data.understood import Fact, Understanding

Fractions = NDArray[np.float64]
_SOME = 0.05
_HALF = 0.5
"""Fractions of the participants."""
_ADVICE = (
    "If these zeros mark missing values, write them as NaN. In a view with measure: image the "
    "coordinator can set zero_is_missing: true instead."
)
_FEWEST_TIES = 3
_TIES = 0.002
"""Fraction of the entries that have one and the same value before these count as zeros."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """Missing entries of the participants of one site, in one view or in their series."""

    view: str
    """Name of the view; empty for image series."""
    participants: int
    complete: int
    """Number of participants who have every entry."""
    lacking: Fractions
    """Length D. Fraction of the participants who lack each entry."""
    tied: Fractions
    """Length D. Fraction of the participants in whom each entry has one value with several others,
    as zeros outside an image's own mask do."""
    kept: bool
    """Whether missing entries are left out of the sums; otherwise they count as 0."""


def count_coverage(view: str, vectors: Iterable[NDArray[Any]], *, kept: bool) -> Coverage:
    """Count the entries that participants' images lack.

    Parameters
    ----------
    view : str
        Name of the view; empty for image series.
    vectors : iterable of array, shape (D,)
        One for each participant, with NaN where an entry is missing.
    kept : bool
        Whether the analysis leaves missing entries out of its sums.
    """
    lacking: Fractions = np.zeros(1)
    tied: Fractions = np.zeros(1)
    participants = complete = 0
    for vector in vectors:
        missing = np.isnan(vector)
        lacking = lacking + missing
        tied = tied + _ties(vector)
        participants = participants + 1
        complete = complete + (not missing.any())
    many = max(participants, 1)
    return Coverage(
        view=view,
        participants=participants,
        complete=complete,
        lacking=lacking / many,
        tied=tied / many,
        kept=kept,
    )


def absent_in_series(block: NDArray[Any]) -> Fractions:
    """Return a vector for `count_coverage` of a block (D x T): NaN where a series is 0 throughout.

    A voxel that an image does not reach is 0 in every volume.
    """
    return np.where(block.any(axis=1), np.arange(1.0, len(block) + 1), np.nan)


def summarize_coverage(counted: Sequence[Coverage]) -> Understanding:
    """Return the coverage of each view, and warnings where missing values change the results.

    Parameters
    ----------
    counted : sequence of Coverage
        Coverage of each view of images or surfaces, or of the image series.
    """
    found = [each for each in counted if each.participants]
    facts = tuple(Fact(_topic(each), _finding(each)) for each in found)
    notes = tuple(note for each in found for note in _notes(each) if note)
    return Understanding(facts, notes)


def _ties(vector: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the entries that share one value, if these are several and less than half of all.

    Zeros stay alike when a vector is centred and scaled.
    """
    values, counts = np.unique(vector[~np.isnan(vector)], return_counts=True)
    most = int(counts.max(initial=0))
    if not max(_FEWEST_TIES, _TIES * len(vector)) <= most < _HALF * len(vector):
        return np.zeros(len(vector), bool)
    return np.asarray(vector == values[np.argmax(counts)])


def _topic(each: Coverage) -> str:
    return f"coverage of the mask, view '{each.view}'" if each.view else "coverage of the mask"


def _finding(each: Coverage) -> str:
    if each.complete == each.participants:
        return f"complete in all {count(each.participants, 'participant')}"
    some, half = (_percent(each.lacking > least) for least in (_SOME, _HALF))
    return (
        f"complete in {each.complete:,} of {count(each.participants, 'participant')}; {some} of "
        f"the values are missing in more than {_SOME:.0%} of them, {half} in more than half"
    )


def _notes(each: Coverage) -> tuple[str, ...]:
    where = f"view '{each.view}'" if each.view else "image series"
    return _missing(each, where), _tied(each, where)


def _missing(each: Coverage, where: str) -> str:
    some = each.lacking > _SOME
    half = each.lacking > _HALF
    if each.kept:
        if not half.any():
            return ""
        return (
            f"{where}: more than half of the participants lack {_percent(half)} of the values. A "
            "study withholds values that fewer than half of all sites' participants have."
        )
    if not some.any():
        return ""
    return Serious(
        f"{where}: missing values count as 0 in this analysis, and {_percent(some)} of the values "
        f"are missing in more than {_SOME:.0%} of the participants (in at most "
        f"{each.lacking.max():.0%}). Results are too small there. Ask the coordinator for a "
        "smaller mask, or for gaps in an analysis that allows them."
    )


def _tied(each: Coverage, where: str) -> str:
    some = (each.tied > _SOME) & (each.tied < 1 - _SOME)
    if not some.any():
        return ""
    return Serious(
        f"{where}: {_percent(some)} of the values are equal to one another within a participant "
        f"in more than {_SOME:.0%} of the participants (in at most {each.tied[some].max():.0%}) "
        "and not in all. These count as values, which is right for thresholded images. "
        f"{_ADVICE}"
    )


def _percent(chosen: NDArray[np.bool_]) -> str:
    return f"{100 * float(chosen.mean()):.2g} %"
