"""From the releases of `describe` to its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import Captions, Release, Result
from consortium.algorithms.describe.entries import Variable
from consortium.algorithms.describe.estimation import MomentEstimates, estimate_moments
from consortium.algorithms.describe.kernels.life_table import Survival, estimate_survival
from consortium.algorithms.describe.learned import Counts, LearnedUnits
from consortium.algorithms.describe.tables import (
    bins_table,
    group_table,
    participants_table,
    survival_table,
)
from consortium.algorithms.findings import Finding
from consortium.base.array import Array
from consortium.base.formatting import count

if TYPE_CHECKING:
    from consortium.algorithms.describe.centre import Describe

_METHODS = (
    "Participants were counted in bins and levels of each column by group, and clipped values were "
    "averaged, both with noise (differential privacy). Means combine both; standard deviations, "
    "quantiles and survival follow from these numbers."
)


def describe_result(
    plan: Describe, counts: Counts, learned: LearnedUnits | None, second: Release | None
) -> Result:
    """Return the result of `describe`: its tables, curves and numbers.

    Parameters
    ----------
    learned : LearnedUnits or None
        None without columns with limits.
    second : Release or None
        The sums in learned units; None without them.
    """
    critical = float(ndtri((1 + plan.parameters.confidence) / 2))
    arrays = {"participants": counts.persons, "participants_noise": counts.persons_noise}
    moments = None
    if learned is not None and second is not None:
        moments = estimate_moments(plan, counts, learned, second)
        arrays |= _in_own_units(plan, moments)
    table = participants_table(plan, counts, moments, critical)
    tables = {"table1": table, "groups": group_table(plan, counts, critical)}
    if plan.entries.numbers:
        tables["bins"] = bins_table(plan, counts, critical)
    curves = _curves(plan, counts, critical)
    if curves:
        tables["survival"] = survival_table(plan, curves)
    numbers: dict[str, float | int | str] = {"count_noise": float(counts.noise[0])}
    captions = Captions(headline=_headline(plan, tables["table1"].rows), methods=_METHODS)
    return Result(arrays, numbers, tables=tables, captions=captions)


def _in_own_units(plan: Describe, moments: MomentEstimates) -> dict[str, Array]:
    """Return means and standard deviations with their errors, rows x columns with limits."""
    middles = np.array([each.middle for each in plan.entries.numbers])
    halves = np.array([each.half for each in plan.entries.numbers])
    return {
        "means": middles + halves * moments.means,
        "mean_errors": halves * moments.mean_errors,
        "mean_noise": halves * moments.mean_noise,
        "deviations": halves * np.sqrt(np.maximum(moments.variances, 0.0)),
    }


def _curves(
    plan: Describe, counts: Counts, critical: float
) -> list[tuple[Variable, list[Survival]]]:
    """Return each curve with the survival of each group and of all participants."""
    found = []
    for variable, cells in zip(plan.entries.variables, counts.cells, strict=True):
        if variable.kind == "curve":
            many = variable.bins
            rows = [
                estimate_survival(
                    events=row[many : 2 * many],
                    lost=row[:many],
                    beyond=float(row[2 * many]),
                    deviation=float(noise),
                    critical=critical,
                )
                for row, noise in zip(cells, counts.noise, strict=True)
            ]
            found.append((variable, rows))
    return found


def _headline(plan: Describe, rows: tuple[tuple[object, ...], ...]) -> str:
    """Return how many columns and numbers are reported."""
    cells = [cell for row in rows for cell in row if isinstance(cell, Finding)]
    hidden = sum(not cell.reported for cell in cells)
    columns = count(len(plan.entries.variables), "column")
    sentence = f"{columns} of {count(len(plan.entries.levels), 'group')} are described."
    if not hidden:
        return sentence
    return f"{sentence} {hidden} of {count(len(cells), 'number')} are withheld as too noisy."
