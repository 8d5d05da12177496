"""From least squares to coefficients with intervals, headline and tables, for every analysis.

An analysis states its model in a `LeastSquaresQuestion`, and its estimates from a release in a
`Fit`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from consortium.algorithms.base import (
    MOST_ROWS,
    AnalysisPlan,
    Array,
    Captions,
    Result,
    Shape,
    Table,
)
from consortium.algorithms.findings import Finding
from consortium.base.formatting import number
from consortium.errors import StudyError
from consortium.kernels.moments import pack_symmetric, unpack_symmetric
from consortium.kernels.noisy_least_squares import ExplainedShare, Fit, least_squares
from consortium.kernels.noisy_moment import NoisyMoment, noisy_moment
from consortium.kernels.stabilized_squares import stabilized_squares

_Plan = TypeVar("_Plan", bound=AnalysisPlan[Any])
ASSUMED_DEVIATION = 0.3
"""Assumed standard deviation of a target, or of another entry, between -1 and 1."""
HOPELESS = (
    "With this number of entries and participants, noise at this ε is expected to leave every "
    "coefficient open: nothing would be reported."
)
TOGETHER = (
    "With analysis.site_constants: false something would be; differences between sites then count "
    "as what explains."
)
REMEDY = "Name fewer columns, bring more participants, or raise epsilon."
_MEANING = (
    "Change of the model's value with one unit of an entry, all others equal; 0 for the target. "
    "Withheld coefficients are missing values (n/a) in tables, and 0 in maps."
)


@dataclass(frozen=True)
class Model:
    """Coefficients are those of least squares times a factor, which may be known as a range."""

    factor: float = 1.0
    least: float = 1.0
    most: float = 1.0
    shift: float = 0.0
    """Offset of the constants."""
    least_squares: bool = True
    """Whether the constants and the explained share are also those of least squares."""
    own: Mapping[int, Sequence[Callable[[float], float]]] = field(default_factory=dict)
    """Functions of an entry's coefficient of least squares, by its place: the first is the model's
    coefficient, and all are its possible values."""
    fails: bool = False
    """Whether the coefficients differ from those of the model. Then none is reported."""

    def coefficient(
        self, place: int, value: float, low: float, high: float, *, found: bool
    ) -> Finding:
        """Return a coefficient with the widest interval that its possible functions make of it."""
        if self.fails:
            return Finding(state="withheld")
        if place in self.own:
            functions = self.own[place]
            value = functions[0](value)
            ends = [f(end) for f in functions for end in (low, high)]
        else:
            ends = [f * end for f in (self.least, self.most) for end in (low, high)]
            value *= self.factor
        if not np.isfinite(ends).all():
            return Finding(state="withheld")
        return Finding(value, min(ends), max(ends), "found" if found else "not found")


@dataclass(frozen=True, eq=False)
class LeastSquaresQuestion:
    """Least squares that are to be computed from a released moment."""

    shape: Shape
    target: str
    """View of one entry that is explained by all other entries."""
    place: int
    """Place of the target among all views' entries."""
    constants: int
    """S: one for each site, one for all, or none."""
    weights: Array
    """Length P + S + 1. Of all entries and constants in the release, in its order."""
    order: Array
    """Length P + S + 1. Places in the release of explaining entries, constants and target."""
    confidence: float
    """Level of the intervals."""
    model: Callable[[Fit, ExplainedShare | None], Model] = lambda _fit, _share: Model()
    """Numbers from a fit and the explained share."""
    remark: str = ""
    """Further text of the caption of the coefficients."""

    @cached_property
    def still(self) -> Array:
        """Directions along which all participants are equal, (D - 1) x R."""
        return self.shape.still_directions(self.place, self.constants > 0)

    def parts(self, sites: Sequence[int]) -> Array:
        """Return the fraction of participants with each constant; none for a missing site."""
        if self.constants < 2:
            return np.ones(self.constants)
        sizes = np.zeros(self.constants)
        sizes[list(sites)] = [self.shape.units[site] for site in sites]
        return np.asarray(sizes / sizes.sum())

    def kept(self, sites: Sequence[int]) -> Array:
        """Return places in the release, without constants of sites that did not answer."""
        answered = np.ones(len(self.order), dtype=bool)
        answered[self.shape.features - 1 : -1] = self.parts(sites) > 0
        return np.asarray(self.order[answered])

    def moment(self, values: Array, deviation: float, sites: Sequence[int]) -> NoisyMoment:
        """Undo the packing, and leave out constants of sites that did not answer."""
        parts = self.parts(sites)
        kept = self.kept(sites)
        matrix = unpack_symmetric(values)[np.ix_(kept, kept)]
        units = sum(self.shape.units[site] for site in sites)
        own = self.weights[kept]
        return noisy_moment(
            matrix=matrix,
            weights=own,
            parts=parts[parts > 0],
            deviation=deviation,
            units=units,
            still=self.still,
        )


@dataclass(frozen=True, eq=False)
class LinearTables:
    """Uncertainty of every coefficient and constant of a least-squares fit."""

    coefficients: tuple[Finding, ...]
    constants: tuple[Finding, ...]
    """Constant of each site that answered, or of all together; none without a constant."""
    explained: Finding


def check_identified(shape: Shape, target: int, constant: bool) -> None:
    """Refuse a linear model whose columns no data could identify.

    Raises StudyError if no participant differs in the explanatory entries.
    """
    still = shape.still_directions(target, constant).shape[1]
    if shape.features - 1 == still:
        raise StudyError(
            "field 'features': the sum of the explanatory entries must differ between "
            "participants, and is the same for all. Add a view, or do not centre a view of one "
            "number."
        )


def drawn_fits(
    question: LeastSquaresQuestion,
    level: float,
    moment: Callable[[np.random.Generator], Array],
    draws: int,
) -> Iterator[Fit]:
    """Return linear fits of studies of assumed participants, with noise and sampling error each.

    Parameters
    ----------
    level : float
        Standard deviation of the noise in an entry of the release.
    moment : callable
        Draws the sum of all sites without the noise.
    """
    sites = range(len(question.shape.units))
    for seed in range(draws):
        generator = np.random.default_rng(seed)
        values = pack_symmetric(moment(generator))
        values = values + level * generator.standard_normal(len(values))
        yield least_squares(question.moment(values, level, sites))


def open_coefficients(
    plan: _Plan, separate: bool, fits: Callable[[_Plan], Iterator[Fit]]
) -> tuple[str, ...]:
    """State if coefficients will mostly be withheld, and whether one constant for all would help.

    Parameters
    ----------
    separate : bool
        Whether the planned study has a constant for each of several sites.
    fits : callable
        Draws a few studies of a plan.
    """

    def reports(each: _Plan) -> bool:
        confidence = each.parameters.confidence
        told = [fit.intervals(confidence) is not None for fit in fits(each)]
        return sum(told) > len(told) / 2

    if reports(plan):
        return ()
    together = plan.parameters.model_copy(update={"site_constants": False})
    helps = separate and reports(type(plan)(together, plan.shape))
    return (f"{HOPELESS} {TOGETHER if helps else REMEDY}",)


def linear_result(question: LeastSquaresQuestion, fit: Fit) -> Result:
    """Return coefficients over all views' entries, 0 for the target, with tables of intervals.

    ``predictor`` is only for prediction: stabilized coefficients, which are shrunk to zero by the
    noise. The page and the tables don't show them.
    """
    uncertainty = report_uncertainty(question, fit)
    target = question.place
    values, low, high = (
        np.insert(
            [getattr(f, end) if f.reported else 0.0 for f in uncertainty.coefficients], target, 0.0
        )
        for end in ("value", "low", "high")
    )
    found = np.insert([f.state == "found" for f in uncertainty.coefficients], target, False)
    model = question.model(fit, fit.explained(question.confidence))
    predictor = np.insert(model.factor * stabilized_squares(fit.moment), target, 0.0)
    arrays = {
        "coefficients": values[:, None],
        "low": np.nan_to_num(low)[:, None],
        "high": np.nan_to_num(high)[:, None],
        "found": found[:, None],
        "predictor": predictor[:, None],
        "intercept": np.array([f.value if f.reported else 0.0 for f in uncertainty.constants]),
    }
    return Result(
        arrays,
        {"persons": fit.moment.units, "noise_deviation": fit.moment.deviation},
        loadings="coefficients",
        drawn="found",
        withheld=np.insert([not f.reported for f in uncertainty.coefficients], target, False)[
            :, None
        ],
        tables=_tables(question, uncertainty),
        captions=Captions(
            "coefficient",
            linear_headline(question.target, uncertainty, fit, question.confidence),
            _MEANING,
            found=bool(found.any()),
        ),
    )


def report_uncertainty(question: LeastSquaresQuestion, fit: Fit) -> LinearTables:
    """Return the uncertainty of every number; nothing where an end of an interval is open."""
    many = fit.moment.entries
    confidence = question.confidence
    ends = fit.intervals(confidence)
    if ends is None:
        nothing = Finding(state="withheld")
        return LinearTables((nothing,) * many, (nothing,) * len(fit.moment.parts), nothing)
    share = fit.explained(confidence)
    model = question.model(fit, share)
    apart = fit.apart(1.0 - (1.0 - confidence) / many)
    unknown = np.zeros(many, dtype=bool) if fit.moment.unknown is None else fit.moment.unknown
    found = tuple(
        Finding(state="withheld")
        if unknown[k]
        else model.coefficient(
            k,
            float(fit.coefficients[k]),
            float(ends[0][k]),
            float(ends[1][k]),
            found=bool(apart[k]),
        )
        for k in range(many)
    )
    levels = tuple(
        _constant(model, fit.coefficients[k], ends[0][k], ends[1][k])
        for k in range(many, len(ends[0]))
    )
    anything = any(each.state == "found" for each in found)
    if share is None or not model.least_squares:
        return LinearTables(found, levels, Finding(state="withheld"))
    explained = Finding(share.value, share.low, share.high, "found" if anything else "not found")
    return LinearTables(found, levels, explained)


def _constant(model: Model, value: float, low: float, high: float) -> Finding:
    if not model.least_squares:
        return Finding(state="withheld")
    first, second = sorted(model.shift + model.most * end for end in (low, high))
    apart = first > 0 or second < 0
    return Finding(
        model.shift + model.most * value, first, second, "found" if apart else "not found"
    )


def linear_headline(target: str, uncertainty: LinearTables, fit: Fit, confidence: float) -> str:
    """State how many coefficients were found, or which would have been detected."""
    many = len(uncertainty.coefficients)
    if not any(each.reported for each in uncertainty.coefficients):
        why = "noise leaves" if fit.moment.deviation else "participants leave"
        return (
            f"Nothing can be reported of what explains {target}: the {why} every coefficient open."
        )
    found = sum(each.state == "found" for each in uncertainty.coefficients)
    if found:
        verb = "explains" if found == 1 else "explain"
        return f"{found} of {many} {'entry' if many == 1 else 'entries'} {verb} {target}."
    wider = fit.intervals(1.0 - (1.0 - confidence) / many)
    if wider is None:
        return f"No entry was found to explain {target}; even large effects would not be seen."
    halves = (wider[1] - wider[0])[:many] / 2.0
    return (
        f"No entry was found to explain {target}; at this ε and these numbers of participants a "
        f"coefficient of least squares below {number(float(np.median(halves)))} would not be seen."
    )


def _tables(question: LeastSquaresQuestion, uncertainty: LinearTables) -> dict[str, Table]:
    percent = f"{100 * question.confidence:g}"
    error = f"{100 * (1 - question.confidence):.3g}"
    alike = (
        " Coefficients of entries that add up to the same for all participants, as those of a "
        "column's levels do, are reported against their own mean: they add up to 0."
        if question.still.size
        else ""
    )
    entries = (pair for pair in question.shape.entry_names if pair[0] != question.target)
    rows = [(*pair, each) for pair, each in zip(entries, uncertainty.coefficients, strict=True)]
    tables = {
        "coefficients": Table(
            f"Coefficients of {question.target} with {percent} % intervals, which account for the "
            "noise of privacy and for chance among the participants. A coefficient is found if "
            f"it differs from 0 with an error of {error} % over all coefficients "
            f"together.{question.remark}{alike}",
            ("view", "entry", "coefficient"),
            tuple(rows[:MOST_ROWS]),
        ),
        "fit": Table(
            f"Share of the variance of {question.target}"
            f"{' within sites' if question.constants > 1 else ''} that a linear model of "
            f"all entries explains, with a {percent} % interval.",
            ("of", "share"),
            ((question.target, uncertainty.explained),),
        ),
    }
    if uncertainty.constants:
        names = _constant_names(question.shape, len(uncertainty.constants))
        tables["constants"] = Table(
            f"Constants of the model, with {percent} % intervals, each of which is by itself apart "
            "from 0, or not.",
            ("of", "constant"),
            tuple(zip(names, uncertainty.constants, strict=True)),
        )
    return tables


def _constant_names(shape: Shape, many: int) -> list[str]:
    if many == 1:
        return ["all"]
    if many == len(shape.sites):
        return list(shape.sites)
    return [f"site {number}" for number in range(1, many + 1)]
