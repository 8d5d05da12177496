"""From the released moment of a regression to its coefficients, intervals and tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import (
    MOST_ROWS,
    Captions,
    Release,
    Result,
    Shape,
    Table,
)
from consortium.algorithms.findings import Finding
from consortium.algorithms.regression.kernels.stabilized_squares import stabilized_squares
from consortium.algorithms.regression.models import Model, model_of
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.plan import (
    constants,
    kept_places,
    parts_of,
    release_weights,
    target_entry,
)
from consortium.base.formatting import number
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.noisy_least_squares import Fit
from consortium.kernels.noisy_moment import NoisyMoment, noisy_moment

_MEANING = (
    "Change of the model's value with one unit of an entry, all others equal; 0 for the target, "
    "and for what is not told."
)


@dataclass(frozen=True, eq=False)
class Told:
    """What is said of every coefficient and constant.

    Parameters
    ----------
    coefficients : tuple of Finding, length P
    constants : tuple of Finding
        Of each site that answered, or of all together; none without a constant.
    explained : Finding
    """

    coefficients: tuple[Finding, ...]
    constants: tuple[Finding, ...]
    explained: Finding


def present_sites(release: Release, shape: Shape) -> tuple[int, ...]:
    """Sites that a release is of."""
    return release.sites or tuple(range(len(shape.units)))


def read_moment(release: Release, parameters: RegressionParameters, shape: Shape) -> NoisyMoment:
    """Undo the packing, and leave out constants of sites that did not answer."""
    present = present_sites(release, shape)
    parts, kept = parts_of(parameters, shape, present), kept_places(parameters, shape, present)
    matrix = unpack_symmetric(release.values)[np.ix_(kept, kept)]
    weights = release_weights(parameters, shape)[kept]
    units = sum(shape.units[site] for site in present)
    still = shape.still_directions(target_entry(parameters, shape), parameters.intercept)
    return noisy_moment(matrix, weights, parts[parts > 0], release.deviation, units, still)


def regression_result(
    parameters: RegressionParameters, shape: Shape, target: int, fit: Fit
) -> Result:
    """Coefficients over all views' entries, 0 for the target, with tables of intervals.

    ``predictor`` is for prediction alone: stabilized coefficients, drawn to zero by noise, of which
    page and tables say nothing.
    """
    told = tell(parameters, fit)
    values, low, high = (
        np.insert([getattr(f, end) if f.told else 0.0 for f in told.coefficients], target, 0.0)
        for end in ("value", "low", "high")
    )
    found = np.insert([f.state == "found" for f in told.coefficients], target, False)
    model = model_of(parameters, fit, fit.explained(parameters.confidence))
    predictor = np.insert(model.factor * stabilized_squares(fit.moment), target, 0.0)
    arrays = {
        "coefficients": values[:, None],
        "low": np.nan_to_num(low)[:, None],
        "high": np.nan_to_num(high)[:, None],
        "found": found[:, None],
        "predictor": predictor[:, None],
        "intercept": np.array([f.value if f.told else 0.0 for f in told.constants]),
    }
    return Result(
        arrays,
        {"persons": fit.moment.units, "noise_deviation": fit.moment.deviation},
        loadings="coefficients",
        told="found",
        tables=_tables(parameters, shape, told),
        captions=Captions(
            "coefficient",
            headline(parameters.target, told, fit, parameters.confidence),
            _MEANING,
            found=bool(found.any()),
        ),
    )


def tell(parameters: RegressionParameters, fit: Fit) -> Told:
    """Say of every number how sure it is; where an end of an interval is open, nothing."""
    many, confidence = fit.moment.entries, parameters.confidence
    ends = fit.intervals(confidence)
    if ends is None:
        nothing = Finding(state="not told")
        return Told((nothing,) * many, (nothing,) * len(fit.moment.parts), nothing)
    share = fit.explained(confidence)
    model = model_of(parameters, fit, share)
    apart = fit.apart(1.0 - (1.0 - confidence) / many)
    unknown = np.zeros(many, dtype=bool) if fit.moment.unknown is None else fit.moment.unknown
    found = tuple(
        Finding(state="not told")
        if unknown[k]
        else model.coefficient(fit.coefficients[k], ends[0][k], ends[1][k], found=bool(apart[k]))
        for k in range(many)
    )
    levels = tuple(
        _constant(model, fit.coefficients[k], ends[0][k], ends[1][k])
        for k in range(many, len(ends[0]))
    )
    anything = any(each.state == "found" for each in found)
    if share is None or not model.least_squares:
        return Told(found, levels, Finding(state="not told"))
    explained = Finding(share.value, share.low, share.high, "found" if anything else "not found")
    return Told(found, levels, explained)


def _constant(model: Model, value: float, low: float, high: float) -> Finding:
    if not model.least_squares:
        return Finding(state="not told")
    first, second = sorted(model.shift + model.most * end for end in (low, high))
    apart = first > 0 or second < 0
    return Finding(
        model.shift + model.most * value, first, second, "found" if apart else "not found"
    )


def headline(target: str, told: Told, fit: Fit, confidence: float) -> str:
    """Say how many coefficients were found, or what would have been seen."""
    many = len(told.coefficients)
    if not any(each.told for each in told.coefficients):
        why = "noise leaves" if fit.moment.deviation else "persons leave"
        return f"Nothing can be told of what explains {target}: the {why} every coefficient open."
    found = sum(each.state == "found" for each in told.coefficients)
    if found:
        verb = "explains" if found == 1 else "explain"
        return f"{found} of {many} {'entry' if many == 1 else 'entries'} {verb} {target}."
    wider = fit.intervals(1.0 - (1.0 - confidence) / many)
    if wider is None:
        return f"No entry was found to explain {target}; even large effects would not be seen."
    halves = (wider[1] - wider[0])[:many] / 2.0
    return (
        f"No entry was found to explain {target}; at this ε and these numbers of persons a "
        f"coefficient of least squares below {number(float(np.median(halves)))} would not be seen."
    )


def _tables(parameters: RegressionParameters, shape: Shape, told: Told) -> dict[str, Table]:
    percent = f"{100 * parameters.confidence:g}"
    error = f"{100 * (1 - parameters.confidence):.3g}"
    what = (
        " They are those of the published polynomial, which are smaller than the logistic model's."
        if parameters.model == "logistic" and parameters.approximation == "taylor"
        else ""
    )
    alike = (
        " Coefficients of entries that add up to the same for everybody, as those of a column's "
        "levels do, are told against their own mean: they add up to 0."
        if shape.still_directions(target_entry(parameters, shape), parameters.intercept).size
        else ""
    )
    entries = (pair for pair in shape.entry_names if pair[0] != parameters.target)
    rows = [(*pair, each) for pair, each in zip(entries, told.coefficients, strict=True)]
    tables = {
        "coefficients": Table(
            f"Coefficients of {parameters.target} with {percent} % intervals, which account for "
            "the noise of privacy and for chance among the persons. Found is what is apart from 0 "
            f"with an error of {error} % over all coefficients together.{what}{alike}",
            ("view", "entry", "coefficient"),
            tuple(rows[:MOST_ROWS]),
        ),
        "fit": Table(
            f"Share of the variance of {parameters.target}"
            f"{' within sites' if constants(parameters, shape) > 1 else ''} that a linear model of "
            f"all entries explains, with a {percent} % interval.",
            ("of", "share"),
            ((parameters.target, told.explained),),
        ),
    }
    if told.constants:
        names = _constant_names(shape, len(told.constants))
        tables["constants"] = Table(
            f"Constants of the model, with {percent} % intervals, each of which is by itself apart "
            "from 0, or not.",
            ("of", "constant"),
            tuple(zip(names, told.constants, strict=True)),
        )
    return tables


def _constant_names(shape: Shape, many: int) -> list[str]:
    if many == 1:
        return ["all"]
    if many == len(shape.sites):
        return list(shape.sites)
    return [f"site {number}" for number in range(1, many + 1)]
