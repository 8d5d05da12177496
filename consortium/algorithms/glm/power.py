"""Power of a study, forecast from public numbers, and whether it is worth its budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from consortium.algorithms.base import Expectation, Table
from consortium.algorithms.findings import Finding
from consortium.algorithms.glm.agreement import check_agreement, expect_agreement
from consortium.algorithms.glm.centring import Centring, expected_centring
from consortium.algorithms.glm.clipping import BALANCE_SHARE, RESIDUAL_VARIANCE, mean_clip_factor
from consortium.algorithms.glm.estimation import expected_of
from consortium.algorithms.glm.groups import Groups
from consortium.algorithms.glm.kernels.contrast_regression import (
    SITE_VARIANCE,
    TOTAL_DEVIATION,
    expected_balance,
    imbalance_variance,
)
from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor
from consortium.algorithms.glm.learned import Learned
from consortium.algorithms.glm.open_power import (
    caption_with_open,
    check_gain,
    rows_with_open,
)
from consortium.algorithms.worth import POOLED
from consortium.base.array import Array
from consortium.errors import StudyError
from consortium.kernels.release_worth import worth_of

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

DETECTABLE = 3.34
"""Least detectable effect divided by its standard error: for a power of 0.8 if a quarter of the
outcomes differ, at a false discovery rate of 0.05."""
_GROUPS = 10
_CLOSE = 0.75
_PLANNED = 0.97  # factor of the divisor in the plan
_TOTAL_OFF = 1.7  # factor of the total variance if outcomes are more correlated than stated
# Differences of groups that are tried.
_LARGEST_GAP = 1.5
_GAP_STEP = 0.1
_USUAL_LARGEST = 1.25  # usual largest difference: the sexes differ in head size by about 1.2
_VARIES = 1.1  # forecast after the first round, relative to the plan's, in an unlucky run
_LEAST_PERSONS = 1e-3  # at the most precise site, to keep its standard error finite
_CRITICAL = DETECTABLE - float(ndtri(0.8))
_RANGED = "measured errors of forecasts"
_RANGED_UNEVEN = "measured errors, and a smaller group that varies twice as much"
_SURE = 0.95  # factor of a forecast that stops a study: larger factors stop good ones
_OFF = 0.15  # largest relative error of a forecast on difficult data: docs/replication/glm.md
_RATIO = 2.0  # largest assumed standard deviation of the smaller group divided by the larger's


@dataclass(frozen=True)
class Forecast:
    """Forecast precision of a study of `glm`."""

    error: float
    """Expected standard error of an effect, in the outcomes' standard deviations within groups and
    sites."""
    sampling: float
    privacy: float
    leak: float
    """Components of its square: sampling, privacy noise, and noise of the first round."""
    alone: float
    """Standard error of the most precise site by itself; infinite if there is only one site."""
    detectable: float
    """Effect that is detected with a power of 0.8."""
    effective: float
    """Number of participants, in sites of balanced groups, with the same information."""
    kept: float
    """Fraction of its height that a narrow difference keeps in the released numbers."""


def forecast_power(plan: Glm, gap: float | None = None) -> Forecast:
    """Forecast the precision of a study from numbers that are public before it.

    Parameters
    ----------
    gap : float, optional
        Difference of the groups in a covariate (default: that of the plan).
    """
    clipping = plan.clipping
    groups = plan.groups
    gap = plan.parameters.gap if gap is None else gap
    information, squares = groups.information(clipping.weights)
    sampling, privacy, leak = plan.design.parts_at(gap)
    left = 1.0 if plan.columns.slope or not plan.covariates else 1 - plan.design.explained_at(gap)
    own, varied = _squares_of(plan, groups, plan.lift)
    whole = clipping.weights @ own / information
    chance = clipping.weights**2 @ varied / squares
    divisor = (whole if plan.columns.slope else whole**2) / _unit(plan) ** 2
    sampling *= float(chance / whole if plan.columns.slope else chance)  # a slope's w are over ŝ
    sampling, privacy, leak = (float(part / divisor) for part in (sampling, privacy, leak))
    error = math.sqrt(sampling + privacy + leak)
    return Forecast(
        error=error,
        sampling=sampling,
        privacy=privacy,
        leak=leak,
        alone=_alone(plan, groups, left),
        detectable=DETECTABLE * error,
        effective=4 * information**2 / squares,
        kept=min(plan.outcome_correlation.kept, 1.0),
    )


def _unit(plan: Glm) -> float:
    """Return one of the units that sums are in, in standard deviations within groups and sites."""
    return float(plan.narrowed * TOTAL_DEVIATION)


def _alone(plan: Glm, groups: Groups, left: float) -> float:
    """Return the standard error of the most precise site, by itself and without noise.

    Parameters
    ----------
    groups : Groups
        Expected by the study, or counted.
    left : float
        Fraction of the contrast that the covariates do not explain, the same at all sites.
    """
    if len(groups.persons) < 2:
        return math.inf
    most = max(float(_squares_of(plan, groups, math.inf)[0].max()), _LEAST_PERSONS)
    return _unit(plan) * math.sqrt(
        RESIDUAL_VARIANCE * plan.outcome_correlation.resolved / (left * most)
    )


def _squares_of(plan: Glm, groups: Groups, lift: float) -> tuple[Array, Array]:
    """Return sums by site of <t, t> of its units, and of the variance of their outcomes' sums.

    If rows of units differ, the first is larger than for one row, up to the bound, which is
    ``lift`` times that of a row. The bound of a slope is seldom reached.
    """
    units = plan.parameters.units
    if units is None:
        own = groups.persons * groups.spread
        return own, own
    most = lift * np.square(groups.largest)
    slope = plan.columns.slope
    each = units.expected_squares(groups.spread, math.inf if slope else most, slope=slope)
    return groups.persons * each[0], groups.persons * each[1]


def update_forecast(plan: Glm, learned: Learned, centring: Centring) -> Forecast:
    """Forecast a study again after its first round, in learned standard deviations.

    The largest site is compared with its counted groups and the same covariate adjustment: the part
    of the contrast that covariates explain raises both standard errors.
    """
    clipping = plan.clipping
    design = plan.design
    before = forecast_power(plan)
    expected = expected_of(plan, centring, learned)
    balance = 0.0 if plan.parameters.smooth else expected_balance(expected)
    if balance and not plan.columns.slope:  # a slope's weights are clipped and seldom sum to 0
        noise = (2 * clipping.reach * design.noise) ** 2 / BALANCE_SHARE
        kept = float(shrinkage_factor(balance, noise))
        # For a study whose weights balance (b = 0), the mean of `squared_balance` over the noise of
        # variance σ² = π² (1 - k)/k is k² σ² + π² (1 - k) = π² (1 - k²).
        balance *= 1 - kept**2
    noise = (2 * clipping.reach * clipping.norm * design.noise) ** 2 * design.root
    total = max(learned.total / _TOTAL_OFF, 1.0)
    sites = max(total - (1 - SITE_VARIANCE), SITE_VARIANCE)
    clip = mean_clip_factor(_height_now(plan, learned, centring) / math.sqrt(total))
    parts = (
        RESIDUAL_VARIANCE * plan.outcome_correlation.resolved * expected.cut * expected.squares,
        noise / clipping.shares["effects"] / clip**2,
        expected.explained * expected.adjustment_noise
        + sites * expected.offset_noise
        + (expected.bias * _PLANNED * expected.divisor / clipping.clip) ** 2
        + balance / clipping.clip**2 * imbalance_variance(sites, expected.missed, expected),
    )
    divisor = (_PLANNED * expected.divisor / clipping.clip / _unit(plan)) ** 2
    sampling, privacy, leak = (part / divisor for part in parts)
    error = math.sqrt(sampling + privacy + leak)
    left = 1 - learned.adjustment.explained
    if plan.columns.slope:
        left = learned.spread**2 / plan.groups.within
    return replace(
        before,
        error=error,
        sampling=sampling,
        privacy=privacy,
        leak=leak,
        alone=_alone(plan, centring.groups, left),
        detectable=DETECTABLE * error,
    )


def _height_now(plan: Glm, learned: Learned, centring: Centring) -> float:
    """Return the norm to which a usual contribution is clipped, relative to the usual norm.

    The weight of a participant bounds the norm. Sites with equal groups have a margin, and
    covariates in which groups differ use a part of it.
    """
    clipping = plan.clipping
    groups = centring.groups
    weights = centring.weights
    if plan.columns.slope:
        return clipping.height
    information = weights * groups.persons * groups.spread
    usual = float(information @ (weights * groups.largest)) / max(information.sum(), 1e-12)
    lengths = math.hypot(usual, *learned.adjustment.slopes)
    return clipping.height * clipping.reach / lengths if lengths > 0 else clipping.height


def why_hopeless_now(plan: Glm, learned: Learned, centring: Centring) -> str:
    """Return why the remaining budget would be spent in vain; empty if it would not.

    If outcomes vary more than stated, only larger effects are detectable. This uses one standard
    error below the learned ratio, and a factor of 0.95 on the forecast, since stopping a study
    costs a run.
    """
    if learned.norms.lost:
        remedy = "State analysis.norms" if plan.open is None else "Name an open cohort"
        return (
            "the outcomes are so far from their norms, or limits, that neither location nor scale "
            f"could be learned. {remedy} in the outcomes' unit"
        )
    # The correlation of sites' levels with covariates is assumed, so it does not stop a study.
    adjustment = learned.adjustment
    known = replace(adjustment, confounded=np.zeros_like(adjustment.confounded))
    found = update_forecast(plan, replace(learned, adjustment=known), centring)
    factor = learned.ratio * math.exp(-learned.norms.log_square_error / 2)
    corrected = replace(found, detectable=max(factor, 1.0) * found.detectable)
    sure = replace(
        corrected, error=_SURE * corrected.error, detectable=_SURE * corrected.detectable
    )
    if not why_hopeless(plan, sure):
        return ""
    reason = why_hopeless(plan, corrected)
    if factor > 1 and not why_hopeless(plan, found):
        return f"outcomes vary at least {factor:.2g} times as much as stated, and then {reason}"
    return reason


def expect(plan: Glm) -> tuple[Expectation, ...]:
    """Return the forecast in numbers, with a range.

    The range has the measured errors of forecasts. At its worse end the smaller group also has
    twice the standard deviation of the larger one.
    """
    found = forecast_power(plan)
    uneven = max(_error_of_uneven_groups(plan, found) / found.error, 1.0)
    worse = (1 + _OFF) * uneven
    reason = _RANGED_UNEVEN if uneven > 1 else _RANGED
    asked = plan.parameters.detect
    left = asked * found.kept
    expected = [
        Expectation("standard error", found.error, rises=False, ranged=reason),
        Expectation("least detectable effect", found.detectable, rises=False, ranged=reason),
    ]
    ranged = [
        replace(each, low=each.value * (1 - _OFF), high=each.value * worse) for each in expected
    ]
    best, middle, worst = (
        float(ndtr(left / (off * found.error) - _CRITICAL)) for off in (1 - _OFF, 1, worse)
    )
    name = f"power to find an effect of {asked:g}"
    power = Expectation(name, middle, worst, best, ranged=reason)
    agreement = expect_agreement(plan, expected_centring(plan), found)
    return *ranged, power, *agreement, Expectation(POOLED, _enough(plan, found), rises=False)


def _error_of_uneven_groups(plan: Glm, found: Forecast) -> float:
    """Return the standard error if the smaller group's standard deviation is `_RATIO` times.

    The mean variance of all participants stays. A site's difference of means weights the variance
    of each group with the share of the other, so a rare group counts most.
    """
    if plan.columns.slope:
        return found.error
    groups = plan.groups
    share = float(np.average(groups.proportions, weights=groups.persons))
    second, first = (_RATIO**2, 1.0) if share < 0.5 else (1.0, _RATIO**2)
    mean = share * second + (1 - share) * first
    each = groups.proportions * first + (1 - groups.proportions) * second
    information = plan.clipping.weights**2 * groups.persons * groups.spread
    factor = float(information @ each) / (mean * float(information.sum()))
    return math.sqrt(factor * found.sampling + found.privacy + found.leak)


def _enough(plan: Glm, found: Forecast) -> float:
    """Return the number of participants at which noise adds three tenths to the pooled error."""
    persons = sum(plan.shape.units)
    return worth_of(persons * found.sampling, found.privacy + found.leak, persons).enough


def why_hopeless(plan: Glm, found: Forecast) -> str:
    """Return why a study of `glm` is hopeless, and which changes would be enough; or ''."""
    asked = plan.parameters.detect
    kept = found.kept
    reasons = []
    if found.detectable > asked * kept:
        smoothed = (
            f" (of which such a cutoff keeps {100 * kept:.0f} %)" if plan.parameters.smooth else ""
        )
        reasons.append(
            f"the smallest detectable effect is {found.detectable:.2g} standard deviations, and "
            f"analysis.detect requires {asked:g}{smoothed}"
        )
    if found.error >= found.alone:
        reasons.append(
            f"its standard error is {found.error:.2g}, and that of the largest site by itself "
            f"would be {found.alone:.2g} without any noise"
        )
    if not reasons:
        return ""
    return f"{' and '.join(reasons)}. {what_suffices(plan, found)}"


def what_suffices(plan: Glm, found: Forecast) -> str:
    """Return which number of participants or outcomes, or which factor of ε, would be enough."""
    asked = plan.parameters.detect * found.kept
    # If outcomes vary more than stated, the detectable effect is larger relative to the error.
    target = min(asked * found.error / found.detectable, 0.99 * found.alone)
    entries = plan.outcomes
    ways = []
    factor = _needed_persons(found, target)
    if factor is not None:
        ways.append(f"{_round(factor * plan.groups.persons.sum())} participants in sites as these")
    fewer = 0 if plan.parameters.smooth else _outcomes_for(found, target, entries)
    if fewer >= 1:
        ways.append(f"{fewer} outcomes instead of {entries}")
    if target**2 > found.sampling:
        times = math.sqrt((found.privacy + found.leak) / (target**2 - found.sampling))
        ways.append(f"{math.ceil(10 * times) / 10:g} times the ε")
    enough = f"About {', or '.join(ways)} would be enough" if ways else "No similar study is enough"
    return f"{enough}. Change the study, or set analysis.anyway: true"


def _needed_persons(found: Forecast, target: float) -> float | None:
    """Return the factor on the participants at which sampling/f + noise/f² meets the target.

    The largest site grows with the others, and its own standard error falls by √f as well. Then
    only the noise must fall.
    """
    noise = found.privacy + found.leak
    square = target**2
    factor = (found.sampling + math.sqrt(found.sampling**2 + 4 * square * noise)) / (2 * square)
    room = found.alone**2 - found.sampling
    if room <= 0:
        return None
    return max(factor, 1.01 * noise / room)


def _outcomes_for(found: Forecast, target: float, entries: int) -> int:
    """Return the number of outcomes at which the noise, proportional to it, meets the target."""
    room = target**2 - found.sampling - found.leak
    return int(min(entries * room / found.privacy, entries)) if found.privacy > 0 else entries


def _round(count: float) -> str:
    digits = max(0, int(math.log10(max(count, 1))) - 1)
    return f"{math.ceil(count / 10**digits) * 10**digits:,}"


def check_worth(plan: Glm) -> Forecast:
    """Forecast a study, and reject one that is hopeless.

    Raises StudyError if it is hopeless and `anyway` is not set, or if it has more coefficients than
    participants.
    """
    sizes = plan.shape.subjects
    needed = 1 + plan.covariates + len(sizes)
    # Without noise the sizes are not known yet: only the rounds are planned.
    if plan.shape.noise > 0 and needed > sum(sizes):
        raise StudyError(
            f"field 'analysis.formula': its columns and the sites' constants have {needed} "
            f"coefficients, which must be at most the {sum(sizes)} participants. Remove columns."
        )
    found = forecast_power(plan)
    if plan.shape.noise == 0 or plan.parameters.anyway:
        return found
    reason = why_hopeless(plan, found)
    if reason:
        raise StudyError(
            f"field 'analysis': this study is not expected to be worthwhile: {reason}."
        )
    check_gain(plan, found.error)
    if plan.parameters.agreement:
        check_agreement(plan, expected_centring(plan), found)
    return found


def tabulate_power(plan: Glm) -> Table:
    """Return a table of the precision of this study, and of similar ones."""
    parameters = plan.parameters
    shape = plan.shape
    count = plan.outcomes
    louder, softer = (replace(shape, noise=factor * shape.noise) for factor in (2.0, 0.5))
    make = type(plan)
    plans = {
        "as it is": plan,
        "twice the noise (near half the ε)": make(parameters, louder),
        "half the noise (near twice the ε)": make(parameters, softer),
    }
    if parameters.smooth:
        longer = parameters.model_copy(update={"cutoff": 1.5 * plan.cutoff})
        plans["with a cutoff half as long again"] = make(longer, shape)
    else:
        plans["a quarter of the outcomes"] = make(parameters, shape, max(count // 4, 1))
        if count > _GROUPS:
            plans["means of ten groups of outcomes"] = make(parameters, shape, _GROUPS)
    found = {name: (near, forecast_power(near)) for name, near in plans.items()}
    rows = [
        (
            name,
            each.error,
            math.sqrt(each.sampling),
            each.detectable,
            each.alone if math.isfinite(each.alone) else Finding(),
            judge_worth(near, each),
        )
        for name, (near, each) in found.items()
    ]
    return Table(
        f"Expected errors of effects on {count} outcomes, in standard deviations within groups and "
        "sites: in total, from sampling only, and of the most precise site without noise. The "
        "least detectable effect is detected with power 0.8. "
        f"{_effective(plan, found['as it is'][1])}{caption_with_open(plan)}",
        ("study", "error", "chance alone", "least detectable", "largest site", "worth it"),
        (*rows, *rows_with_open(plan, found["as it is"][1].error)),
    )


def judge_worth(plan: Glm, found: Forecast) -> str:
    """Return whether a study is worth it, and up to which difference of groups in covariates.

    The part of the contrast that covariates explain is not known before the first round, and it may
    make a study worthless. Forecasts after that round vary, and a study near its limit is often
    stopped.
    """
    if why_hopeless(plan, found):
        return "no"
    if found.error > _CLOSE * found.alone:
        return "hardly: close to the largest site"
    if plan.columns.slope or not plan.covariates:
        return "yes"
    gaps = np.arange(plan.parameters.gap, _LARGEST_GAP, _GAP_STEP)
    far = [gap for gap in gaps if why_hopeless(plan, _worse(forecast_power(plan, float(gap))))]
    if not far:
        return "yes"
    if far[0] == gaps[0]:
        return "hardly: close to the effect that analysis.detect requires"
    condition = f"if the groups differ by less than {far[0]:.1f} deviations in every covariate"
    if far[0] > _USUAL_LARGEST:
        return f"yes, {condition}"
    return f"only {condition}; otherwise it stops after its first round"


def _worse(found: Forecast) -> Forecast:
    """Return an unfavourable forecast for after the first round."""
    return replace(found, error=_VARIES * found.error, detectable=_VARIES * found.detectable)


def _effective(plan: Glm, found: Forecast) -> str:
    persons = int(plan.groups.persons.sum())
    names = np.array(plan.shape.sites or tuple(plan.parameters.groups) or ())
    alone = names[plan.groups.spread == 0] if len(names) else names
    useless = (
        f" Sites of one group only, which add nothing and may be removed: {', '.join(alone)}."
        if len(alone)
        else ""
    )
    enough = f"{found.effective:,.0f} in balanced sites."
    return f"Its {persons:,} participants have the information of {enough}{useless}"
