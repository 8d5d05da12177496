"""Agreement of hospitals: the round, its bound, its forecast and its tables.

`kernels.agreement` defines the number that a hospital computes, and how the sum over hospitals is
read. This module has the part of the plan, the site's half, and the centre's reading.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from consortium.algorithms.base import Expectation, Query, Release, SiteData, Table
from consortium.algorithms.glm.centring import Centring
from consortium.algorithms.glm.clipping import RESIDUAL_VARIANCE, mean_clip_factor, slope_left
from consortium.algorithms.glm.groups import capped_weights
from consortium.algorithms.glm.in_parts import OutcomePart, Outcomes, factors_within
from consortium.algorithms.glm.kernels.agreement import (
    AgreementModel,
    HospitalAgreement,
    agreement_changes,
    agreement_score,
    detectable_between,
    mean_root,
    read_hospital_agreement,
)
from consortium.algorithms.glm.kernels.contrast_regression import (
    SITE_VARIANCE,
    TOTAL_DEVIATION,
    Effects,
)
from consortium.algorithms.glm.kernels.contrast_rows import Coefficients
from consortium.algorithms.glm.kernels.group_counts import COUNT_NOISE, count_variances
from consortium.algorithms.glm.kernels.outcome_correlation import EqualCorrelation
from consortium.algorithms.glm.learned import Learned
from consortium.algorithms.glm.predictors import Predictors, group_predictors, slope_predictors
from consortium.algorithms.glm.rows import rows_of
from consortium.base.array import Array
from consortium.base.formatting import number
from consortium.errors import StudyError
from consortium.privacy.block_bounds import Block, BlocksBound
from consortium.privacy.clipping import column_norms, finite_values

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_HEIGHT = 0.95
"""Clipping norm of residuals, relative to their usual norm. A smaller one would need less noise,
but would act more on groups and hospitals that vary more."""
_SLOPE_REACH = 1.5
"""Limit of a slope's column in this round, in standard deviations within sites."""
_FLOOR = 0.5
"""F, relative to the expected √Q of an average hospital. Hospitals of which a smaller √Q is
expected answer 0."""
_LEAST_SPREAD = 0.1
_STEP = 0.15  # of the logarithm of a height
AGREEMENT = "agreement"
"""Name of the round, and of its block."""
METHODS = (
    "The standard deviation of the effect between hospitals was estimated from the released sum of "
    "the hospitals' scores, each the norm of its weighted residuals about the common effects less "
    "the norm that its own participants' squares predict. Its interval includes sampling and "
    "privacy noise; hospitals are said to differ if equality is rejected at 5 % (one-sided)."
)
BETWEEN = "between-hospital SD that is found with power 0.8"


class ErrorParts(Protocol):
    """Components of the squared standard error of an effect, in squared reported units."""

    @property
    def sampling(self) -> float:
        """By sampling."""

    @property
    def privacy(self) -> float:
        """By privacy noise."""

    @property
    def leak(self) -> float:
        """By noise of earlier rounds."""


def _norm(plan: Glm) -> float:
    """Return U."""
    return plan.design.room * _HEIGHT * math.sqrt(plan.outcomes * plan.outcome_correlation.root)


def _root(plan: Glm) -> float:
    """Return J."""
    return mean_root(plan.outcome_correlation.freedom)


def _squares_of(plan: Glm, persons: Array, proportions: Array) -> Array:
    """Return the expected Q of sites, without clipping, from public numbers or messages."""
    each = persons * RESIDUAL_VARIANCE * plan.outcomes * plan.outcome_correlation.root
    if plan.columns.slope:
        return np.asarray(each * slope_left(_SLOPE_REACH)[1])
    weights = capped_weights(proportions, plan.clipping.contrast_reach)
    return np.asarray(each * weights**2 * proportions * (1 - proportions))


def _floor(plan: Glm) -> float:
    """Return F. Its average is over participants, so it is that of large sites."""
    groups = plan.groups
    squares = _squares_of(plan, groups.persons, groups.proportions)
    return _FLOOR * math.sqrt(float(np.average(squares, weights=groups.persons)))


def _taking_part(plan: Glm, proportions: Array) -> Array:
    """Return which sites answer, boolean, from nominal sizes and released proportions."""
    return np.asarray(_squares_of(plan, plan.groups.persons, proportions) >= _floor(plan) ** 2)


def agreement_bound(plan: Glm) -> BlocksBound:
    """Return the sensitivity of the round that measures the agreement of hospitals.

    Its release is one number, the sum of hospitals' scores f.
    """
    weight = _SLOPE_REACH if plan.columns.slope else plan.clipping.contrast_reach
    added, replaced = agreement_changes(weight * _norm(plan), _floor(plan))
    return BlocksBound.of([Block(AGREEMENT, 1, norm=added, spread=replaced, share=1.0)])


def glm_agreement(plan: Glm, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return the score of a site's own effects' difference from those of all, over participants.

    A participant without the contrast's column or a covariate does not count.

    Returns
    -------
    array, length 1
    """
    with np.errstate(all="ignore"):
        slope = plan.columns.slope
        predictors = (slope_predictors if slope else group_predictors)(plan, data, query)
        weights = _weights(plan, predictors, query)
        outcomes = Outcomes(
            table=rows_of(data)[0],
            rows=plan.columns.outcomes,
            location=query.arguments["location"],
            scales=query.arguments["scales"],
            limit=plan.design.outcome_limit,
            outcome_correlation=plan.outcome_correlation,
        )
        kept = predictors.kept & (outcomes.present >= 1 - plan.most_missing)
        found = 0.0
        if kept.any() and _answers(plan, query):
            found = _score(
                plan=plan,
                predictors=predictors,
                coefficients=query.arguments["coefficients"],
                weights=weights * kept,
                kept=kept,
                outcomes=outcomes,
            )
        return bound.join({AGREEMENT: np.array([found / len(kept)])})


def _answers(plan: Glm, query: Query) -> bool:
    part = plan.groups.proportions
    if not plan.columns.slope:
        part = np.clip(finite_values(query.arguments["proportions"]), 0.0, 1.0)
    return bool(_taking_part(plan, part)[query.site])


def _weights(plan: Glm, predictors: Predictors, query: Query) -> Array:
    """Return w, length n."""
    if not plan.columns.slope:
        most = plan.clipping.contrast_reach
        return np.clip(predictors.weight * predictors.contrast, -most, most)
    spread = np.maximum(query.arguments["spread"], _LEAST_SPREAD)
    left = predictors.contrast - query.arguments["centres"][query.site][0]
    return np.clip(finite_values(left / spread), -_SLOPE_REACH, _SLOPE_REACH)


def _score(
    plan: Glm,
    predictors: Predictors,
    coefficients: Array,
    weights: Array,
    kept: Array,
    outcomes: Outcomes,
) -> float:
    """Return f."""
    column = predictors.column if plan.columns.slope else predictors.contrast
    columns = np.vstack([column, predictors.covariates])[: len(coefficients)]

    def raw(part: OutcomePart) -> Array:
        expected = coefficients[:, part.rows].T @ columns
        return finite_values(np.where(part.known, part.left - expected, 0.0))

    means = sum(raw(part).sum(axis=0) for part in outcomes.parts()) / len(outcomes)
    correlation = EqualCorrelation(plan.outcomes, plan.parameters.norms.correlation)

    def residuals(part: OutcomePart) -> Array:
        return finite_values(correlation.encode(raw(part), means))

    sizes = [column_norms(residuals(part)) for part in outcomes.parts()]
    factors = factors_within(_norm(plan), column_norms(np.stack(sizes))) * kept
    pairs = np.stack([weights, np.square(weights)], axis=1)
    sums = list[Array]()
    squares = np.zeros(len(kept))
    for part in outcomes.parts():
        clipped = factors * residuals(part)
        sums.append(clipped @ pairs)
        squares += np.square(clipped).sum(axis=0)
    scores, weighted = np.concatenate(sums).T
    return agreement_score(
        sums=scores,
        squares=float(pairs[:, 1] @ squares),
        weighted=weighted,
        weights=float(pairs[:, 1].sum()),
        root=_root(plan),
        floor=_floor(plan),
    )


def agreement_arguments(
    plan: Glm, learned: Learned, found: Effects, every: Coefficients | None, heard: dict[str, Array]
) -> dict[str, Array]:
    """Return the arguments of the round's query."""
    names = {"proportions", "location", "scales", "centres"} & set(heard)
    own = {name: heard[name] for name in names}
    own["coefficients"] = found.each.effects[None] if every is None else every.values
    if plan.columns.slope:
        own["spread"] = np.array([_column_deviation(plan, learned)])
    return own


def _column_deviation(plan: Glm, learned: Learned) -> float:
    """Return the standard deviation of a slope's column within sites."""
    persons = float(plan.groups.persons.sum())
    return math.sqrt(max(learned.adjustment.information / persons, _LEAST_SPREAD**2))


def found_agreement(
    plan: Glm,
    centring: Centring,
    learned: Learned,
    found: Effects,
    every: Coefficients | None,
    release: Release,
    change: float,
) -> HospitalAgreement:
    """Return how much hospitals' effects differ, in reported standard deviations.

    Parameters
    ----------
    centring : Centring
        Of the sites that answered the round.
    change : float
        Change of the logarithm of squared norms of outcomes per unit of the contrast.
    """
    stage = next(each for each in plan.releases if each.stage == AGREEMENT)
    persons = float(centring.groups.persons.sum())
    sums, noise = stage.block_sums(release, persons)
    squares = centring.information[1] * (1 - learned.adjustment.explained)
    if plan.columns.slope:
        squares = plan.clipping.left[1] * persons
    variance = float(found.sum_variances.mean()) / (found.clip**2 * squares)
    doubt = 0.0
    if every is not None and plan.covariates:
        # Groups that differ in a covariate within a site see errors of its common coefficient.
        doubt = plan.parameters.gap**2 * float(np.trace(every.noise[1:, 1:])) * plan.outcomes
    model = _model(
        plan,
        centring,
        clip=_clip(plan, learned.total),
        deviation=_column_deviation(plan, learned) if plan.columns.slope else 1.0,
        variance=variance,
        errors=_turned_errors(
            plan, (found.sampling + found.leak) / found.divisor**2, found.privacy / found.divisor**2
        ),
        doubt=doubt,
        between=found.between,
        uneven=_loss_by_variance(plan, learned.total) ** 2 * change**2,
        errors_of_means=_errors_of_means(plan, centring, learned),
        present=float(learned.norms.present.mean()),
    )
    own = float(sums[AGREEMENT][0]), noise[AGREEMENT]
    return read_hospital_agreement(*own, model, plan.parameters.confidence).scaled(learned.unit)


def _turned_errors(plan: Glm, chance: float, privacy: float) -> float:
    """Return the squared norm of R^-¼ times the errors of effects.

    Sampling has a covariance in proportion to R, and privacy noise one in proportion to R^½.

    Parameters
    ----------
    chance, privacy : float
        Mean variance of an effect by sampling and by privacy noise.
    """
    root = plan.outcome_correlation.root
    return float(plan.outcomes * (root * chance + privacy / root))


def _loss_by_variance(plan: Glm, variance: float) -> float:
    """Return the fall of the mean factor if the logarithm of squared norms rises by 1."""
    if plan.shape.noise == 0:
        return 0.0
    height = _HEIGHT / math.sqrt(variance)
    rise = mean_clip_factor(height * math.exp(_STEP)) - mean_clip_factor(height * math.exp(-_STEP))
    return rise / (4 * _STEP)


def _errors_of_means(plan: Glm, centring: Centring, learned: Learned) -> Array:
    """Return the variance of each site's Σ w by the noise in its released share or mean."""
    if not plan.columns.slope:
        return np.asarray(centring.weights**2 * centring.count_variances)
    level = float(learned.adjustment.levels[0]) / len(centring.groups.persons)
    return np.full(len(centring.groups.persons), level / _column_deviation(plan, learned) ** 2)


def _clip(plan: Glm, variance: float) -> float:
    """Return the mean factor of residuals after clipping, from their mean variance."""
    return 1.0 if plan.shape.noise == 0 else mean_clip_factor(_HEIGHT / math.sqrt(variance))


def _model(
    plan: Glm,
    centring: Centring,
    *,
    clip: float,
    deviation: float,
    variance: float,
    errors: float,
    errors_of_means: Array,
    between: float = SITE_VARIANCE,
    uneven: float = 0.0,
    doubt: float = 0.0,
    present: float = 1.0,
) -> AgreementModel:
    """Return the expectations of the released sum.

    Parameters
    ----------
    deviation : float
        Standard deviation of a slope's column within sites.
    variance : float
        Of an outcome within sites, as the effects' sampling variance has it.
    errors : float
        Σ of the effects' squared standard errors.
    errors_of_means : array, length S
        Variance of Σ w of a site by the error of its released share or mean.
    between : float
        Variance of an outcome between sites.
    uneven : float
        Squared difference of the mean factors of two groups, of which one varies more. It leaves a
        part of a site's offset in its score.
    doubt : float
        Squared error of the score relative to the squared information, by errors of the covariates'
        coefficients.
    present : float
        Fraction of the outcomes that participants have.
    """
    groups = centring.groups
    persons = groups.persons
    answered = persons > 0
    swollen = np.ones(len(persons))
    if plan.columns.slope:
        one, both = slope_left(_SLOPE_REACH)
        information = one * deviation * persons
        squares = both * persons
        taking = answered & _taking_part(plan, plan.groups.proportions)
    else:
        spread = persons * groups.spread
        information = centring.weights * spread
        squares = centring.weights**2 * spread
        taking = answered & _taking_part(plan, groups.proportions)
    known = answered & (squares > 0)
    swollen[known] += errors_of_means[known] / (persons * squares)[known]
    each = plan.outcomes * plan.outcome_correlation.root
    shifts = clip**2 * errors_of_means + uneven * np.square(information)
    information = clip * present * information * taking
    return AgreementModel(
        information=information,
        variances=clip**2 * present * each * variance * squares * taking,
        persons=persons,
        errors=errors,
        leaks=doubt * np.square(information),
        offsets=present * plan.outcomes * between * shifts * taking,
        swollen=swollen,
        outcomes=plan.outcomes,
        root=_root(plan),
        floor=_floor(plan),
    )


def forecast_agreement(plan: Glm, centring: Centring, found: ErrorParts) -> float:
    """Return the between-hospital SD that is found with a power of 0.8.

    Parameters
    ----------
    centring : Centring
        As the study expects it.
    found : ErrorParts
        Forecast of the effects.
    """
    unit = TOTAL_DEVIATION**-2
    persons = plan.shape.units
    stage = next(each for each in plan.releases if each.stage == AGREEMENT)
    total = float(sum(persons))
    bound = agreement_bound(plan)
    deviations = bound.deviations(stage.round_deviation(plan.shape) * total)
    model = _model(
        plan,
        centring,
        clip=_clip(plan, 1.0),
        deviation=math.sqrt(plan.groups.within),
        variance=RESIDUAL_VARIANCE,
        errors=_turned_errors(plan, unit * (found.sampling + found.leak), unit * found.privacy),
        errors_of_means=_expected_errors_of_means(plan),
    )
    return float(TOTAL_DEVIATION) * detectable_between(deviations[AGREEMENT], model)


def _expected_errors_of_means(plan: Glm) -> Array:
    """Return what `_errors_of_means` is expected to be."""
    persons = np.array(plan.shape.units, dtype=np.float64)
    shares = plan.clipping.shares
    if plan.columns.slope:
        noise = 2 * plan.design.covariate_reach * plan.design.noise
        share = shares.get("means", 1.0)
        return np.full(len(persons), noise**2 / share / plan.groups.within)
    noise = COUNT_NOISE * plan.design.noise / math.sqrt(shares["counts"])
    return np.asarray(plan.clipping.weights**2 * count_variances(persons, noise))


def expect_agreement(plan: Glm, centring: Centring, effects: ErrorParts) -> tuple[Expectation, ...]:
    """Return the forecast of the round; empty if the study does not ask for it."""
    if not plan.parameters.agreement:
        return ()
    found = forecast_agreement(plan, centring, effects)
    return (Expectation(BETWEEN, found, rises=False),)


def check_agreement(plan: Glm, centring: Centring, effects: ErrorParts) -> None:
    """Raise StudyError if the detectable SD between hospitals exceeds ``detect``."""
    found = forecast_agreement(plan, centring, effects)
    if found > plan.parameters.detect:
        what = f"is {number(found)}" if math.isfinite(found) else "does not exist"
        raise StudyError(
            "field 'analysis.agreement': the between-hospital SD that is found with a power of "
            f"0.8 must be at most analysis.detect, {number(plan.parameters.detect)}, and {what}. "
            "Remove agreement, or increase it, ε or the number of participants."
        )


def agreement_remarks(plan: Glm) -> tuple[str, ...]:
    """Return a sentence on the round, for plan, approval page and report; empty without it."""
    share = plan.parameters.agreement
    if not share:
        return ()
    sentence = (
        f"{100 * share:g} % of the budget is for how much the effect differs between hospitals: "
        "one number over all hospitals is released, and no hospital's own effect."
    )
    return (sentence,)


def agreement_sentence(plan: Glm, found: HospitalAgreement) -> str:
    """Return the sentence that a report begins with."""
    level = f"{100 * plan.parameters.confidence:g} % interval"
    between = f"{found.between:.2f} ({level} {found.low:.2f} to {found.high:.2f})"
    share = (
        f"{100 * found.share:.0f} % ({100 * found.share_low:.0f} to {100 * found.share_high:.0f} %)"
    )
    verdict = "Hospitals differ" if found.differ else "Hospitals are not found to differ"
    return (
        f"{verdict} in this effect: its standard deviation between hospitals is {between}. True "
        f"differences are I² = {share} of the variance of hospitals' own estimates. A standard "
        f"deviation of {found.detectable:.2f} is found in 8 of 10 such studies."
    )


_HEADINGS = {
    "between_hospitals": "standard deviation",
    "between_hospitals_low": "standard deviation low",
    "between_hospitals_high": "standard deviation high",
    "i_squared": "I²",
    "i_squared_low": "I² low",
    "i_squared_high": "I² high",
    "between_hospitals_p": "p",
    "between_hospitals_detectable": "detectable standard deviation",
}
"""Headings of the table for the numbers of the result."""


def agreement_table(plan: Glm, found: HospitalAgreement) -> Table:
    """Return the table of how much hospitals' effects differ."""
    level = f"{100 * plan.parameters.confidence:g} %"
    row = {_HEADINGS[name]: value for name, value in agreement_numbers(found).items()}
    return Table(
        "How much the effect differs between hospitals: its standard deviation, in the unit of "
        f"effects, and I², with {level} intervals; one-sided p of no difference; and the standard "
        "deviation that 8 of 10 such studies would find.",
        tuple(row),
        (tuple(row.values()),),
    )


def agreement_numbers(found: HospitalAgreement) -> dict[str, float]:
    """Return the numbers of how much hospitals' effects differ, for JSON."""
    return {
        "between_hospitals": found.between,
        "between_hospitals_low": found.low,
        "between_hospitals_high": found.high,
        "i_squared": found.share,
        "i_squared_low": found.share_low,
        "i_squared_high": found.share_high,
        "between_hospitals_p": found.p,
        "between_hospitals_detectable": found.detectable,
    }
