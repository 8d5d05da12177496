"""From the release of `coordinate` to means or coefficients, and what every view's level means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import MOST_ROWS, Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.coordinate.parameters import CoordinateParameters
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.result import regression_result
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.normal_equations import noisy_moment, posterior_fit
from consortium.privacy.bayesian import bayesian_level
from consortium.privacy.view_bounds import PartsBound


@dataclass(frozen=True)
class Pooled:
    """Mean over the persons of all sites that answered.

    Parameters
    ----------
    values : array
    deviation : float
        Standard deviation of the noise of each entry.
    units : int
        Persons in it.
    """

    values: Array
    deviation: float
    units: int


def pooled(release: Release, shape: Shape) -> Pooled:
    """Put the answers of single sites together, if they were released one by one.

    All sites' noise is equal once their answers are weighted by size, and `Release.deviation` is
    that of the noisiest, the smallest.
    """
    sites = release.sites or range(len(shape.units))
    sizes = np.array([shape.units[site] for site in sites], dtype=np.float64)
    if release.values.ndim == 1:
        return Pooled(release.values, release.deviation, int(sizes.sum()))
    weights = sizes / sizes.sum()
    deviation = release.deviation * float(weights.min()) * len(sizes) ** 0.5
    return Pooled(weights @ release.values, deviation, int(sizes.sum()))


def mean_result(
    parameters: CoordinateParameters, shape: Shape, bound: PartsBound, found: Pooled
) -> Result:
    """Mean of every entry, within the limits that everybody's has, with an interval."""
    weights = _entry_weights(bound)
    plain, deviations = found.values / weights, found.deviation / weights
    half = float(ndtri((1 + parameters.confidence) / 2)) * deviations
    mean, low, high = (np.clip(x, -1.0, 1.0) for x in (plain, plain - half, plain + half))
    arrays = {"mean": mean[:, None], "deviations": deviations[:, None]}
    rows = zip(*_names(shape), *(x.tolist() for x in (mean, low, high)), strict=True)
    table = Table(
        f"Means over the persons with {100 * parameters.confidence:g} % intervals, which account "
        "for the noise of privacy.",
        ("view", "entry", "mean", "low", "high"),
        tuple(rows)[:MOST_ROWS],
    )
    tables = {"means": table, "levels": level_table(parameters, shape, bound, found.deviation)}
    words = Captions("mean", "", "Mean over all persons.")
    return Result(arrays, {}, loadings="mean", tables=tables, captions=words)


def squares_result(
    parameters: CoordinateParameters, shape: Shape, bound: PartsBound, found: Pooled
) -> Result:
    """Coefficients of least squares with intervals, as `regression` has them."""
    target = shape.view_slice(str(parameters.target), "analysis.target").start
    weights = np.append(_entry_weights(bound), bound.constant)
    order = np.append(np.delete(np.arange(len(weights)), target), target)
    matrix = unpack_symmetric(found.values)[np.ix_(order, order)]
    moment = noisy_moment(matrix, weights[order], found.deviation, found.units)
    fit = posterior_fit(moment)
    linear = RegressionParameters(
        target=str(parameters.target), bound=1.0, confidence=parameters.confidence
    )
    result = regression_result(linear, shape, target, moment, fit)
    levels = level_table(parameters, shape, bound, found.deviation)
    numbers = {k: v for k, v in result.numbers.items() if k != "noise_edge"}
    return replace(result, numbers=numbers, tables={**result.tables, "levels": levels})


def level_table(
    parameters: CoordinateParameters, shape: Shape, bound: PartsBound, deviation: float
) -> Table:
    """What every view's level is, alone and with all that depends on it."""
    (epsilon, delta), q = parameters.promise(), parameters.dependence
    what = "the view" if parameters.protects == "view" else "an entry"
    caption = (
        f"ε at δ = {delta:g} of changing {what} alone, all else held; {epsilon:g} is everybody's."
    )
    columns: tuple[str, ...] = ("view", "entries", "noise of an entry's mean", "ε alone")
    # The mean of an entry is the product with the constant, off the diagonal.
    noise = deviation / (bound.constant * 2**0.5) if bound.cone else deviation
    if q is not None:
        caption += (
            f" Assumption: however {what} of a person is, the distribution of the person's other "
            f"data changes by at most {q:g} (total variation). Then whatever is released is at "
            f"most e^ε times as probable, with the last column's ε, for one content of {what} as "
            "for another, plus δ. Nobody has tested the assumption."
        )
        columns += ("ε with what depends on it",)
    rows: list[tuple[float | int | str, ...]] = []
    for part, (view, size) in zip(bound.parts, shape.views, strict=True):
        level = parameters.level(view)
        row: tuple[float | int | str, ...] = (view, size, noise / part.weight, level)
        rows.append(row if q is None else (*row, bayesian_level(level, epsilon, q)))
    return Table(caption, columns, tuple(rows))


def _entry_weights(bound: PartsBound) -> Array:
    return np.repeat([p.weight for p in bound.parts], [p.entries for p in bound.parts])


def _names(shape: Shape) -> tuple[list[str], list[int]]:
    """View and number within the view, from 1, of every entry."""
    pairs: Iterator[tuple[str, int]] = (
        (view, number + 1) for view, size in shape.views for number in range(size)
    )
    views, numbers = zip(*pairs, strict=True)
    return list(views), list(numbers)
