"""From the release of `coordinate` to means or coefficients, and what every view's level means."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import MOST_ROWS, Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.coordinate.parameters import CoordinateParameters
from consortium.algorithms.findings import Finding
from consortium.algorithms.linear import LeastSquaresQuestion, linear_result
from consortium.base.formatting import number
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.noisy_least_squares import least_squares
from consortium.kernels.noisy_moment import NoisyMoment, noisy_moment
from consortium.privacy.bayesian import bayesian_level
from consortium.privacy.view_bounds import Part, PartsBound

_WHOLE = 1.999  # of the interval from -1 to 1: then nothing is known of a mean


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
    sites : tuple of int
        Who answered.
    """

    values: Array
    deviation: float
    units: int
    sites: tuple[int, ...]


def pooled(release: Release, shape: Shape) -> Pooled:
    """Put the answers of single sites together, if they were released one by one.

    All sites' noise is equal once their answers are weighted by size, and `Release.deviation` is
    that of the noisiest, the smallest.
    """
    sites = release.sites or tuple(range(len(shape.units)))
    sizes = np.array([shape.units[site] for site in sites], dtype=np.float64)
    if release.values.ndim == 1:
        return Pooled(release.values, release.deviation, int(sizes.sum()), sites)
    weights = sizes / sizes.sum()
    deviation = release.deviation * float(weights.min()) * len(sizes) ** 0.5
    return Pooled(weights @ release.values, deviation, int(sizes.sum()), sites)


def mean_result(
    parameters: CoordinateParameters, shape: Shape, bound: PartsBound, found: Pooled
) -> Result:
    """Mean of every entry, within the limits that everybody's has, with an interval.

    Chance among the persons is counted as if a view's radius were spread evenly over its entries,
    whose variance is then R²/size at the most, and 1.
    """
    weights = entry_weights(bound)
    plain, noise = found.values / weights, found.deviation / weights
    widest = [widest_variance(part) for part in bound.parts]
    chance = np.repeat(widest, [part.entries for part in bound.parts]) / found.units
    deviations = np.sqrt(np.square(noise) + chance)
    error = (1 - parameters.confidence) / 2
    half = -float(ndtri(error)) * deviations
    apart = np.abs(plain) > -float(ndtri(error / len(plain))) * deviations
    mean, low, high = (np.clip(x, -1.0, 1.0) for x in (plain, plain - half, plain + half))
    told = tuple(
        Finding(float(m), float(a), float(b), "found" if far else "not found")
        if b - a < _WHOLE
        else Finding(state="not told")
        for m, a, b, far in zip(mean, low, high, apart, strict=True)
    )
    arrays = {
        "mean": np.array([f.value if f.told else 0.0 for f in told])[:, None],
        "noise": noise[:, None],
        "found": np.array([f.state == "found" for f in told])[:, None],
    }
    table = Table(
        f"Means over people like the participants, with {100 * parameters.confidence:g} % "
        "intervals, which account for the noise of privacy and for chance among the participants "
        "(as if a view's radius were spread evenly over its entries). Found is what is apart from "
        f"0 with an error of {200 * error:.3g} % over all entries together.",
        ("view", "entry", "mean"),
        tuple((*n, f) for n, f in zip(shape.entry_names, told, strict=True))[:MOST_ROWS],
    )
    tables = {"means": table, "levels": level_table(parameters, shape, bound, found.deviation)}
    words = Captions(
        "mean",
        _headline(told, deviations, error),
        "Mean over all participants; 0 for what is withheld.",
        found=any(f.state == "found" for f in told),
    )
    return Result(arrays, {}, loadings="mean", told="found", tables=tables, captions=words)


def widest_variance(part: Part) -> float:
    """Of an entry at the most, if the radius is spread evenly over the view."""
    return min(1.0, part.radius**2 / part.entries)


def _headline(told: Sequence[Finding], deviations: Array, error: float) -> str:
    many, found = len(told), sum(f.state == "found" for f in told)
    if found:
        return f"{found} of {many} means {'is' if found == 1 else 'are'} apart from 0."
    least = -float(ndtri(error / many)) * float(np.median(deviations))
    if least >= 1.0:
        return "No mean was found to be apart from 0; at this ε and these numbers none would be."
    return (
        "No mean was found to be apart from 0; at this ε and these numbers of participants one "
        f"below {number(least)} would not be seen."
    )


def squares_result(
    parameters: CoordinateParameters, shape: Shape, bound: PartsBound, found: Pooled
) -> Result:
    """Coefficients of least squares with intervals, as `regression` has them."""
    fit = least_squares(squares_moment(parameters, shape, bound, found))
    result = linear_result(coordinate_question(parameters, shape, bound), shape, fit)
    levels = level_table(parameters, shape, bound, found.deviation)
    return replace(result, tables={**result.tables, "levels": levels})


def squares_moment(
    parameters: CoordinateParameters, shape: Shape, bound: PartsBound, found: Pooled
) -> NoisyMoment:
    """Put entries that explain first, constants of sites that answered next, the target last."""
    target = shape.view_slice(str(parameters.target), "analysis.target").start
    parts = np.ones(1)
    if bound.places > 1:
        sizes = np.zeros(bound.places)
        sizes[list(found.sites)] = [shape.units[site] for site in found.sites]
        parts = sizes / sizes.sum()
    first = shape.features
    weights = np.append(entry_weights(bound), np.full(bound.places, bound.constant))
    constants = first + np.flatnonzero(parts)
    order = np.concatenate([np.delete(np.arange(first), target), constants, [target]])
    matrix = unpack_symmetric(found.values)[np.ix_(order, order)]
    still = shape.still_directions(target, constant=True)
    own = weights[order]
    return noisy_moment(matrix, own, parts[parts > 0], found.deviation, found.units, still)


def coordinate_question(
    parameters: CoordinateParameters, shape: Shape, bound: PartsBound
) -> LeastSquaresQuestion:
    """What the study asks of least squares."""
    target = str(parameters.target)
    place = shape.view_slice(target, "analysis.target").start
    return LeastSquaresQuestion(target, place, parameters.confidence, by_site=bound.places > 1)


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
    for part, (view, size) in zip(bound.parts, shape.views, strict=True):
        level = parameters.level(view)
        row: tuple[float | int | str, ...] = (view, size, noise / part.weight, level)
        rows.append(row if q is None else (*row, bayesian_level(level, epsilon, q)))
    return Table(caption, columns, tuple(rows))


def entry_weights(bound: PartsBound) -> Array:
    """Weight of every entry of a person's vector."""
    return np.repeat([p.weight for p in bound.parts], [p.entries for p in bound.parts])
