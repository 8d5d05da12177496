"""Tables of a description: groups, the table of participants, counts in bins, and curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import MOST_ROWS, Table
from consortium.algorithms.describe.entries import Variable
from consortium.algorithms.describe.estimation import MomentEstimates, present
from consortium.algorithms.describe.kernels.life_table import Survival
from consortium.algorithms.describe.kernels.quantiles import estimate_quantiles
from consortium.algorithms.describe.learned import Counts
from consortium.algorithms.findings import Cell, Finding, State
from consortium.base.array import Array

if TYPE_CHECKING:
    from consortium.algorithms.describe.centre import Describe

_LARGEST_NOISE = 0.5
"""Largest noise of a mean, in standard deviations of the column, with which it is reported."""
_LEAST_ABOVE = 0.5
"""Smallest upper end of a number's interval, in standard deviations of its noise."""
_FEWEST = 4.0
"""Standard deviations of noise that a number of participants must exceed for shares of it."""
Row = tuple[Cell, ...]


def group_table(plan: Describe, counts: Counts, critical: float) -> Table:
    """Return the number of participants of each group."""
    rows = zip(plan.entries.headings, counts.persons, counts.persons_noise, strict=True)
    return Table(
        f"Participants in each group, with {_percent(plan)} % intervals for the noise.",
        ("group", "participants"),
        tuple((name, _count(many, noise, critical)) for name, many, noise in rows),
    )


def participants_table(
    plan: Describe, counts: Counts, moments: MomentEstimates | None, critical: float
) -> Table:
    """Return the table of all columns by group, as the first table of a paper."""
    rows = list[Row]()
    number = 0
    for variable, cells in zip(plan.entries.variables, counts.cells, strict=True):
        if variable.kind == "number":
            rows += _missing_rows(variable, cells, counts, critical)
            if moments is not None:
                rows += _moment_rows(variable, moments, number, critical)
            rows += _quantile_rows(plan, variable, cells, counts, critical)
            number += 1
        elif variable.kind == "levels":
            rows += _level_rows(variable, cells, counts, critical)
    return Table(
        f"Participants by group, with {_percent(plan)} % intervals. Those of counts account for "
        "the noise. Those of means, deviations, quantiles and shares also account for chance among "
        "participants, and for clipping or the width of bins.",
        ("view", "entry", "statistic", *plan.entries.headings),
        tuple(rows[:MOST_ROWS]),
    )


def bins_table(plan: Describe, counts: Counts, critical: float) -> Table:
    """Return the number of participants in each bin of each column."""
    rows = list[Row]()
    for variable, cells in zip(plan.entries.variables, counts.cells, strict=True):
        if variable.kind == "number":
            for place in range(variable.bins):
                edges = variable.edges[place : place + 2].tolist()
                found = _counts(cells[:, place], counts.noise, critical)
                rows.append((variable.view, variable.labels[0], *edges, *found))
    return Table(
        f"Participants in bins of each column, with {_percent(plan)} % intervals for the noise. A "
        "bin contains its lower edge, and the last one also its upper edge.",
        ("view", "entry", "from", "to", *plan.entries.headings),
        tuple(rows[:MOST_ROWS]),
    )


def survival_table(plan: Describe, curves: Sequence[tuple[Variable, list[Survival]]]) -> Table:
    """Return the table of the survival curves of all groups."""
    rows = list[Row]()
    for variable, groups in curves:
        for place, time in enumerate(variable.edges[1:].tolist()):
            found = (
                Finding(float(g.shares[place]), float(g.low[place]), float(g.high[place]))
                for g in groups
            )
            rows.append((variable.name, time, *found))
    return Table(
        "Share of participants without the event up to each time (Kaplan and Meier, from counts), "
        f"with {_percent(plan)} % intervals for noise and chance.",
        ("curve", "time", *plan.entries.headings),
        tuple(rows[:MOST_ROWS]),
    )


def _percent(plan: Describe) -> str:
    return f"{100 * plan.parameters.confidence:g}"


def _count(many: float, noise: float, critical: float) -> Finding:
    """Return a number of participants, which is not negative."""
    ends = many, many - critical * noise, many + critical * noise
    value, low, high = (max(float(end), 0.0) for end in ends)
    return Finding(value, low, max(high, _LEAST_ABOVE * float(noise)))


def _counts(many: Array, noise: Array, critical: float) -> Iterator[Finding]:
    return (_count(*pair, critical) for pair in zip(many, noise, strict=True))


def _missing_rows(
    variable: Variable, cells: Array, counts: Counts, critical: float
) -> Iterator[Row]:
    """Yield the row of missing values, if there may be any."""
    if variable.gaps:
        found = _counts(cells[:, -1], counts.noise, critical)
        yield (variable.view, variable.labels[0], "missing", *found)


def _moment_rows(
    variable: Variable, moments: MomentEstimates, number: int, critical: float
) -> Iterator[Row]:
    """Yield the rows of means and standard deviations."""
    first = variable.view, variable.labels[0]
    yield (*first, "mean", *_means(variable, moments, number, critical))
    yield (*first, "standard deviation", *_deviations(variable, moments, number, critical))


def _quantile_rows(
    plan: Describe, variable: Variable, cells: Array, counts: Counts, critical: float
) -> Iterator[Row]:
    """Yield a row for each quantile."""
    quantiles = np.array(plan.parameters.quantiles)
    found = [
        estimate_quantiles(row[: variable.bins], quantiles, variable.edges, float(noise), critical)
        for row, noise in zip(cells, counts.noise, strict=True)
    ]
    for place, quantile in enumerate(plan.parameters.quantiles):
        name = "median" if quantile == 0.5 else f"quantile {quantile:g}"
        own = (_quantile(variable, each[place]) for each in found)
        yield (variable.view, variable.labels[0], name, *own)


def _means(
    variable: Variable, moments: MomentEstimates, number: int, critical: float
) -> Iterator[Finding]:
    """Yield means; one is withheld if its noise is large compared with the learned scale.

    The noise hardly depends on the estimate, so reported ones are not selected by their size.
    """
    few = _too_few(moments, number)
    most = _LARGEST_NOISE * float(moments.scales[number])
    columns = moments.means, moments.mean_errors, moments.mean_noise
    for row, (mean, error, noise) in enumerate(
        zip(*(each[:, number] for each in columns), strict=True)
    ):
        ends = mean, mean - critical * error, mean + critical * error
        limited = (min(max(float(end), -1.0), 1.0) for end in ends)
        value, low, high = (variable.middle + variable.half * end for end in limited)
        yield Finding(value, low, high, _state(few[row] or noise > most))


def _deviations(
    variable: Variable, moments: MomentEstimates, number: int, critical: float
) -> Iterator[Finding]:
    """Yield standard deviations; one is withheld if its variance has large noise, as a mean is."""
    few = _too_few(moments, number)
    most = _LARGEST_NOISE * float(moments.scales[number]) ** 2
    columns = moments.variances, moments.variance_errors, moments.variance_noise
    for row, (variance, error, noise) in enumerate(
        zip(*(each[:, number] for each in columns), strict=True)
    ):
        ends = variance, variance - critical * error, variance + critical * error
        value, low, high = (variable.half * math.sqrt(max(float(end), 0.0)) for end in ends)
        yield Finding(value, low, high, _state(few[row] or noise > most))


def _too_few(moments: MomentEstimates, number: int) -> list[bool]:
    """Return for each row whether the number of participants with a value is mostly noise."""
    least = _FEWEST * moments.persons_noise[:, number]
    return [bool(each) for each in moments.persons[:, number] < least]


def _quantile(variable: Variable, found: Array) -> Finding:
    """Return a quantile. It is withheld if all values between the limits are possible."""
    value, low, high = found.tolist()
    hidden = low <= variable.edges[0] and high >= variable.edges[-1] and variable.bins > 1
    return Finding(value, low, high, _state(hidden))


def _state(hidden: bool) -> State:
    return "withheld" if hidden else "found"


def _level_rows(variable: Variable, cells: Array, counts: Counts, critical: float) -> Iterator[Row]:
    """Yield the rows of a column of levels: participants and their share of those with a value."""
    several = len(variable.labels) > 1
    yield from _missing_rows(variable, cells, counts, critical)
    persons = present(counts, variable, cells)
    for place, level in enumerate(variable.levels):
        label = variable.labels[place] if several else variable.labels[0]
        with_it = "" if several else f" with {level}"
        many = cells[:, place]
        found = _counts(many, counts.noise, critical)
        yield (variable.view, label, f"participants{with_it}", *found)
        columns = zip(many, persons, counts.noise, counts.persons_noise, strict=True)
        shares = (_share(*each, critical, gaps=variable.gaps) for each in columns)
        yield (variable.view, label, f"share{with_it}", *shares)


def _share(
    many: float, persons: float, noise: float, unsure: float, critical: float, *, gaps: bool
) -> Finding:
    """Return a share with its interval for noise and chance."""
    share = min(max(float(many / persons), 0.0), 1.0)
    of_persons = math.hypot(unsure, noise if gaps else 0.0)
    if persons < _FEWEST * of_persons:
        return Finding(state="withheld")
    chance = (share * (1 - share) + critical**2 / (4 * persons)) / persons
    error = math.sqrt((noise / persons) ** 2 + (share * of_persons / persons) ** 2 + chance)
    apart = critical * error
    return Finding(share, max(share - apart, 0.0), min(share + apart, 1.0))
