"""Forecast of the noise in a description, and warnings to a site's people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Expectation, SiteData, Table
from consortium.base.formatting import number, percent
from consortium.errors import StudyError
from consortium.privacy.block_bounds import BlocksBound

if TYPE_CHECKING:
    from consortium.algorithms.describe.centre import Describe

_RANGE = 0.8, 1.4
_RANGED = "range of simulated normal columns with limits at one to five standard deviations"
_MOST_AT_LIMITS = 0.05
_LEAST_SPREAD = 0.1
"""Least range of a site's values over the distance between the limits without a warning."""
_FEWEST = 20


def noise_in_sums(plan: Describe, stage: int) -> dict[str, float]:
    """Return the noise in an entry of each block of a release, as a sum over participants."""
    planned = plan.releases[stage]
    assert isinstance(planned.bound, BlocksBound)  # noqa: S101 - for the type checker
    deviation = planned.round_deviation(plan.shape) * sum(plan.shape.units)
    return planned.bound.deviations(deviation)


def forecast_mean_noise(plan: Describe) -> tuple[float, ...]:
    """Return the noise of each group's mean, in standard deviations of the column."""
    noise = noise_in_sums(plan, 1)["moments"]
    return tuple(noise / size for size in plan.group_sizes)


def forecast_median_noise(plan: Describe) -> tuple[float, ...]:
    """Return the noise in the share of each group's participants below the median."""
    noise = noise_in_sums(plan, 0)["cells"]
    most = max((each.bins for each in plan.entries.numbers), default=1)
    return tuple(noise * math.sqrt(most) / 2 / size for size in plan.group_sizes)


def expect(plan: Describe) -> tuple[Expectation, ...]:
    """Forecast the noise of the largest group: of a mean, a median, and numbers of participants."""
    found = []
    if plan.averaged:
        mean = min(forecast_mean_noise(plan))
        ends = mean * _RANGE[0], mean * _RANGE[1]
        name = "noise of a group's mean in standard deviations"
        found.append(Expectation(name, mean, *ends, rises=False, ranged=_RANGED))
    if plan.entries.numbers:
        name = "noise of the share below a group's median"
        found.append(Expectation(name, min(forecast_median_noise(plan)), rises=False))
    noise = noise_in_sums(plan, 0)
    name = "noise of a count in a bin, level or of missing values, in participants"
    found.append(Expectation(name, noise["cells"], rises=False))
    if "groups" in noise:
        name = "noise of a group's number of participants"
        found.append(Expectation(name, noise["groups"] / math.sqrt(2), rises=False))
    return tuple(found)


def foretell(plan: Describe) -> Table | None:
    """Return the forecast of a description's noise for each group."""
    if not plan.averaged:
        return None
    means = forecast_mean_noise(plan)
    rows = zip(
        plan.entries.levels, plan.group_sizes, means, forecast_median_noise(plan), strict=True
    )
    return Table(
        "Noise by group: of a mean, in standard deviations of the column, and of the share of "
        "participants below the median.",
        ("group", "participants", "mean", "median"),
        tuple((name, round(size), mean, median) for name, size, mean, median in rows),
    )


def refuse_noisy(plan: Describe) -> None:
    """Raise StudyError if the numbers of every group are expected to be too noisy."""
    parameters = plan.parameters
    if not plan.shape.noise or parameters.anyway:
        return
    if plan.averaged:
        noise = min(forecast_mean_noise(plan))
        what = "the noise of a group's mean must be at most {} standard deviations of the column"
    else:
        noise = noise_in_sums(plan, 0)["cells"] / max(plan.group_sizes)
        what = "the noise of a count must be at most {} of a group's participants"
    asked = parameters.precision
    if noise <= asked:
        return
    raise StudyError(
        f"field 'analysis.precision': {what.format(f'{asked:g}')}, and {number(noise)} is expected "
        f"even in the largest group. This needs about {number(noise / asked)} times as many "
        "participants, a larger ε, or fewer columns or groups. With 'anyway: true' it is run "
        "nevertheless."
    )


def levels_off(plan: Describe, data: SiteData) -> tuple[str, ...]:
    """Return a warning on columns to describe with many values at a limit, and on constant ones."""
    table = data.table().astype(np.float64)
    if table.shape[1] < _FEWEST:
        return ()
    found = []
    for each in plan.entries.numbers:
        values = table[each.rows[0]]
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        share = max(float(np.mean(values >= 1)), float(np.mean(values <= -1)))
        if np.ptp(values) == 0:
            found.append(
                f"all participants here have the same value of '{each.name}'. Check that the "
                "column is the one that the study means."
            )
        elif share > _MOST_AT_LIMITS:
            found.append(
                f"{percent(share)} of the values of '{each.name}' are at or beyond one of its "
                f"limits, {each.low:g} and {each.high:g}, and count as the limit. Check the "
                "column's unit, or ask for wider limits."
            )
        elif np.ptp(values) < 2 * _LEAST_SPREAD:
            found.append(
                f"the values of '{each.name}' here span less than {percent(_LEAST_SPREAD)} of the "
                f"distance between its limits, {each.low:g} and {each.high:g}. Narrower limits "
                "would make its mean less noisy."
            )
    return tuple(found)
