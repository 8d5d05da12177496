"""From the release of `coordinate` to means or coefficients, and the levels of all views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import MOST_ROWS, Array, Captions, Release, Result, Table
from consortium.algorithms.findings import Finding
from consortium.algorithms.linear import linear_result
from consortium.base.formatting import number
from consortium.kernels.entry_variances import entry_variances
from consortium.kernels.noisy_least_squares import least_squares
from consortium.privacy.bayesian import bayesian_level

if TYPE_CHECKING:
    from consortium.algorithms.coordinate.centre import Coordinate

_WHOLE = 1.999  # width from which an interval counts as all of -1 to 1, and the mean as unknown


def pool_sites(plan: Coordinate, release: Release) -> Release:
    """Combine the answers of single sites to `coordinate`, if they were released one by one.

    All sites' noise is equal once their answers are weighted by size, and `Release.deviation` is
    that of the noisiest, the smallest.
    """
    sites = plan.present(release)
    if release.values.ndim == 1:
        return replace(release, sites=sites)
    sizes = plan.units_in(release)
    weights = sizes / sizes.sum()
    deviation = release.deviation * float(weights.min()) * len(sizes) ** 0.5
    return replace(release, values=weights @ release.values, deviation=deviation, sites=sites)


def mean_result(plan: Coordinate, found: Release) -> Result:
    """Return the means of `coordinate`, between the limits of their values, with intervals.

    Chance among the participants is counted with the variance of the entry itself.
    """
    moments = np.split(found.values, 2)
    entries = plan.weights
    plain = moments[0] / entries
    noise = found.deviation / entries
    chance = _variances(plan, plain, moments[1] / entries, noise) / plan.units_in(found).sum()
    deviations = np.sqrt(np.square(noise) + chance)
    error = (1 - plan.parameters.confidence) / 2
    half = -float(ndtri(error)) * deviations
    apart = np.abs(plain) > -float(ndtri(error / len(plain))) * deviations
    mean, low, high = (np.clip(x, -1.0, 1.0) for x in (plain, plain - half, plain + half))
    findings = tuple(
        Finding(float(m), float(a), float(b), "found" if far else "not found")
        if b - a < _WHOLE
        else Finding(state="withheld")
        for m, a, b, far in zip(mean, low, high, apart, strict=True)
    )
    arrays = {
        "mean": np.array([f.value if f.reported else 0.0 for f in findings])[:, None],
        "noise": noise[:, None],
        "found": np.array([f.state == "found" for f in findings])[:, None],
    }
    table = Table(
        f"Means over people like the participants, with {100 * plan.parameters.confidence:g} % "
        "intervals, which account for the noise of privacy and for chance among the "
        f"participants. A mean is found if it differs from 0 with an error of {200 * error:.3g} % "
        "over all entries together.",
        ("view", "entry", "mean"),
        tuple((*n, f) for n, f in zip(plan.shape.entry_names, findings, strict=True))[:MOST_ROWS],
    )
    tables = {"means": table, "levels": level_table(plan, found.deviation)}
    words = Captions(
        "mean",
        _headline(findings, deviations, error),
        "Mean over all participants. Withheld means are missing values (n/a) in tables, and 0 in "
        "maps.",
        found=any(f.state == "found" for f in findings),
    )
    withheld = np.array([not f.reported for f in findings])[:, None]
    shown = partial(Result, loadings="mean", drawn="found", withheld=withheld)
    return shown(arrays, {}, tables=tables, captions=words)


def _variances(plan: Coordinate, mean: Array, squares: Array, noise: Array) -> Array:
    """Return the variance of every entry, view by view: entries of a view have equal noise."""
    found = []
    start = 0
    for part in plan.bound.parts:
        own = slice(start, start + part.entries)
        start = own.stop
        scaled = math.sqrt(2.0) * part.radius * squares[own]
        variances = entry_variances(mean[own], scaled, noise[own], part.radius)
        found.append(np.minimum(variances, 1.0))
    return np.concatenate(found)


def _headline(findings: Sequence[Finding], deviations: Array, error: float) -> str:
    many = len(findings)
    found = sum(f.state == "found" for f in findings)
    if found:
        return f"{found} of {many} means {'is' if found == 1 else 'are'} apart from 0."
    least = -float(ndtri(error / many)) * float(np.median(deviations))
    if least >= 1.0:
        return "No mean was found to be apart from 0; at this ε and these numbers none would be."
    return (
        "No mean was found to be apart from 0; at this ε and these numbers of participants one "
        f"below {number(least)} would not be seen."
    )


def squares_result(plan: Coordinate, found: Release) -> Result:
    """Return least-squares coefficients of `coordinate` with intervals, as in `regression`."""
    asked = replace(plan.asked, shape=plan.estimated_shape(found))
    sites = plan.sites_with_units(found)
    fit = least_squares(asked.moment(found.values, found.deviation, sites))
    result = linear_result(asked, fit)
    levels = level_table(plan, found.deviation)
    return replace(result, tables={**result.tables, "levels": levels})


def level_table(plan: Coordinate, deviation: float) -> Table:
    """Tabulate every view's level, by itself and with all views that depend on it."""
    parameters = plan.parameters
    bound = plan.bound
    epsilon, delta = parameters.promise()
    q = parameters.dependence
    what = "the view" if parameters.protects == "view" else "an entry"
    caption = f"ε at δ = {delta:g} of changing only {what}; {epsilon:g} is the participant's."
    columns: tuple[str, ...] = ("view", "entries", "noise of an entry's mean", "ε by itself")
    # The mean of an entry is the sum of the products with the constants, off the diagonal.
    noise = deviation * (bound.places / 2) ** 0.5 / bound.constant if bound.cone else deviation
    if q is not None:
        caption += (
            f" Assumption: however {what} of a participant is, the distribution of the "
            f"participant's other data changes by at most {q:g} (total variation). Then whatever "
            "is released is at most e^ε times as probable, with the last column's ε, for one "
            f"content of {what} as for another, plus δ. The assumption is untested."
        )
        columns += ("ε with what depends on it",)
    rows: list[tuple[float | int | str, ...]] = []
    for part, (view, size) in zip(bound.parts, plan.shape.views, strict=True):
        level = parameters.level(view)
        row: tuple[float | int | str, ...] = (view, size, noise / part.weight, level)
        rows.append(row if q is None else (*row, bayesian_level(level, epsilon, q)))
    return Table(caption, columns, tuple(rows))
