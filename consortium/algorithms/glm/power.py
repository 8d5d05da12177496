"""What a study will see, foretold from public numbers, and whether it is worth its budget."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from consortium.algorithms.base import Array, Expectation, Table
from consortium.algorithms.findings import Finding
from consortium.algorithms.glm.centring import Centring
from consortium.algorithms.glm.choice import BALANCE_SHARE, WITHIN
from consortium.algorithms.glm.estimation import expected_of
from consortium.algorithms.glm.learned import Learned
from consortium.algorithms.glm.plan import GlmPlan
from consortium.algorithms.worth import POOLED
from consortium.errors import StudyError
from consortium.kernels.contrast_regression import (
    SITE_VARIANCE,
    expected_balance,
    imbalance_variance,
)
from consortium.kernels.release_worth import worth_of
from consortium.kernels.shrinkage import shrinkage_factor

DETECTABLE = 3.34
"""Least detectable effect over its standard error: power .8 if a quarter of outcomes differ, at a
false discovery rate of .05."""
RESIDUAL = 1 / 1.15
"""Standard deviation within groups and sites over the whole one."""
_GROUPS = 10
_CLOSE = 0.75
_GUESSED = 0.3  # of ln s²: how much of it lies within sites, and how outcomes go together
_PLANNED = 0.97  # part of the divisor that is planned with
_CRITICAL = DETECTABLE - float(ndtri(0.8))
_RANGED = "how far forecasts were off where it was measured"
_OFF = 0.12  # largest part by which a forecast was off on unkind data: docs/analyses/glm.md


@dataclass(frozen=True)
class Forecast:
    """What a study will see."""

    error: float
    """Expected standard error of an effect, in the outcomes' public standard deviations."""
    sampling: float
    privacy: float
    leak: float
    """Parts of its square: chance, noise, and noise in the adjustment."""
    alone: float
    """Standard error of the site that knows most, on its own; infinite if there is no other."""
    detectable: float
    """Effect that is found with power .8, in standard deviations within groups and sites."""
    effective: float
    """Persons who in balanced groups of every site would tell as much as those there are."""
    kept: float
    """Part of its size that a narrow difference keeps in what is released."""


def forecast_power(plan: GlmPlan) -> Forecast:
    """Foretell a study from what is public before it."""
    choice, groups = plan.choice, plan.groups
    information, squares = groups.information(choice.weights)
    sampling, privacy, leak = choice.parts
    most, alone = _squares_of(plan, math.inf)[0].max(), math.inf
    if len(groups.persons) > 1:
        alone = plan.narrowed * math.sqrt(WITHIN * plan.likeness.resolved / most)
    own, varied = _squares_of(plan, plan.lift)
    whole, chance = choice.weights @ own / information, choice.weights**2 @ varied / squares
    divisor = (whole if plan.columns.slope else whole**2) / plan.narrowed**2
    sampling *= float(chance / whole if plan.columns.slope else chance)  # a slope's w are over ŝ
    sampling, privacy, leak = (float(part / divisor) for part in (sampling, privacy, leak))
    error = math.sqrt(sampling + privacy + leak)
    return Forecast(
        error,
        sampling,
        privacy,
        leak,
        alone,
        DETECTABLE * error / RESIDUAL,
        4 * information**2 / squares,
        min(plan.likeness.kept, 1.0),
    )


def _squares_of(plan: GlmPlan, lift: float) -> tuple[Array, Array]:
    """Sums by site of <t, t> of its units, and of what their outcomes' sums vary by.

    Where rows of units differ the first is more than of one row, as far as its bound, so many times
    a row's, allows; a slope's is seldom reached.
    """
    groups, units = plan.groups, plan.parameters.units
    if units is None:
        own = groups.persons * groups.spread
        return own, own
    most, slope = lift * np.square(groups.largest), plan.columns.slope
    each = units.expected_squares(groups.spread, math.inf if slope else most, slope=slope)
    return groups.persons * each[0], groups.persons * each[1]


def update_forecast(plan: GlmPlan, learned: Learned, centring: Centring) -> Forecast:
    """The forecast made again after the first round, in learned deviations."""
    choice, design, before = plan.choice, plan.design, forecast_power(plan)
    expected = expected_of(plan, centring, learned)
    balance = 0.0 if plan.parameters.smooth else expected_balance(expected)
    if balance and not plan.columns.slope:  # a slope's are seldom in balance: who is far is clipped
        noise = (2 * choice.reach * design.noise) ** 2 / BALANCE_SHARE
        kept = float(shrinkage_factor(balance, noise))
        balance *= 1 - kept**2
    noise = (2 * choice.reach * choice.norm * design.noise) ** 2 * design.root
    parts = (
        WITHIN * plan.likeness.resolved * expected.cut * expected.squares,
        noise / choice.shares["effects"] / choice.clip**2,
        expected.explained * expected.adjustment_noise
        + SITE_VARIANCE * expected.offset_noise
        + balance / choice.clip**2 * imbalance_variance(SITE_VARIANCE, expected.missed, expected),
    )
    divisor = (_PLANNED * expected.divisor / choice.clip / plan.narrowed) ** 2
    sampling, privacy, leak = (part / divisor for part in parts)
    error = math.sqrt(sampling + privacy + leak)
    return replace(
        before,
        error=error,
        sampling=sampling,
        privacy=privacy,
        leak=leak,
        detectable=DETECTABLE * error / RESIDUAL,
    )


def why_hopeless_now(plan: GlmPlan, learned: Learned, centring: Centring) -> str:
    """Say why what is left of a study's budget would be spent for nothing; empty if it would not.

    Where outcomes vary more than is stated, so much more must an effect be that is found. It counts
    as far as it is sure, two standard errors below what was learned, and by more than forecasts are
    off: who is stopped has lost a run.
    """
    if learned.norms.lost:
        return (
            "the outcomes lie so far from their norms, or limits, that neither centre nor scale "
            "could be learned; state analysis.norms in the outcomes' unit"
        )
    found = update_forecast(plan, learned, centring)
    factor = learned.unit / plan.narrowed * math.exp(-math.hypot(learned.norms.doubt, _GUESSED))
    corrected = replace(found, detectable=max(factor, 1.0) * found.detectable)
    sure = 1 - _OFF
    if not why_hopeless(
        plan,
        replace(corrected, error=sure * corrected.error, detectable=sure * corrected.detectable),
    ):
        return ""
    reason = why_hopeless(plan, corrected)
    if factor > 1 and not why_hopeless(plan, found):
        return f"outcomes vary {factor:.2g} times as much as is stated, or more, so that {reason}"
    return reason


def expect(plan: GlmPlan) -> tuple[Expectation, ...]:
    """The forecast in numbers; the range is how far forecasts were from what was then stated."""
    found, asked = forecast_power(plan), plan.parameters.detect
    left = asked * found.kept
    expected = [
        Expectation("standard error", found.error, rises=False, ranged=_RANGED),
        Expectation("least detectable effect", found.detectable, rises=False, ranged=_RANGED),
    ]
    ranged = [
        replace(each, low=each.value * (1 - _OFF), high=each.value * (1 + _OFF))
        for each in expected
    ]
    best, middle, worst = (
        float(ndtr(left * RESIDUAL / (off * found.error) - _CRITICAL))
        for off in (1 - _OFF, 1, 1 + _OFF)
    )
    name = f"power to find an effect of {asked:g}"
    power = Expectation(name, middle, worst, best, ranged=_RANGED)
    return *ranged, power, Expectation(POOLED, _enough(plan, found), rises=False)


def _enough(plan: GlmPlan, found: Forecast) -> float:
    """Participants with whom noise adds three tenths to the error of pooled data."""
    persons = sum(plan.shape.units)
    return worth_of(persons * found.sampling, found.privacy + found.leak, persons).enough


def why_hopeless(plan: GlmPlan, found: Forecast) -> str:
    """Say why a study is hopeless, and what would be enough; empty if it is not."""
    asked, kept, reasons = plan.parameters.detect, found.kept, []
    if found.detectable > asked * kept:
        smoothed = (
            f" (of which such a cutoff keeps {100 * kept:.0f} %)" if plan.parameters.smooth else ""
        )
        reasons.append(
            f"the smallest effect that it would find is {found.detectable:.2g} standard "
            f"deviations, and analysis.detect asks for {asked:g}{smoothed}"
        )
    if found.error >= found.alone:
        reasons.append(
            f"its standard error is {found.error:.2g}, and the largest site alone would have "
            f"{found.alone:.2g} without any noise"
        )
    if not reasons:
        return ""
    return f"{' and '.join(reasons)}; {what_suffices(plan, found)}"


def what_suffices(plan: GlmPlan, found: Forecast) -> str:
    """Say what would be enough: persons, outcomes, or a larger ε."""
    asked = plan.parameters.detect * found.kept
    target = min(asked * RESIDUAL / DETECTABLE, 0.99 * found.alone)
    entries, ways = plan.outcomes, []
    factor = _needed_persons(found, target)
    if factor is not None:
        ways.append(f"{_round(factor * plan.groups.persons.sum())} participants in sites as these")
    fewer = 0 if plan.parameters.smooth else _outcomes_for(found, target, entries)
    if fewer >= 1:
        ways.append(f"{fewer} outcomes instead of {entries}")
    if target**2 > found.sampling:
        times = math.sqrt((found.privacy + found.leak) / (target**2 - found.sampling))
        ways.append(f"{math.ceil(10 * times) / 10:g} times the ε")
    enough = f"about {', or '.join(ways)} would do" if ways else "nothing near it would do"
    return f"{enough}. Change the study, or set analysis.anyway: true"


def _needed_persons(found: Forecast, target: float) -> float | None:
    """Factor on the persons at which sampling/f + noise/f² is the target's square.

    The largest site grows with the others, so that its own error falls by √f too; then only noise
    must fall.
    """
    noise, square = found.privacy + found.leak, target**2
    factor = (found.sampling + math.sqrt(found.sampling**2 + 4 * square * noise)) / (2 * square)
    room = found.alone**2 - found.sampling
    if room <= 0:
        return None
    return max(factor, 1.01 * noise / room)


def _outcomes_for(found: Forecast, target: float, entries: int) -> int:
    """Outcomes at which the noise, in proportion to their number, leaves the target."""
    room = target**2 - found.sampling - found.leak
    return int(min(entries * room / found.privacy, entries)) if found.privacy > 0 else entries


def _round(count: float) -> str:
    digits = max(0, int(math.log10(max(count, 1))) - 1)
    return f"{math.ceil(count / 10**digits) * 10**digits:,}"


def check_worth(plan: GlmPlan) -> Forecast:
    """Foretell a study, and refuse one that is hopeless.

    Raises StudyError if it is hopeless and nobody said that it is to be run anyway, or has more
    coefficients than persons.
    """
    sizes = plan.shape.subjects
    needed = 1 + plan.covariates + len(sizes)
    # Without noise nothing is known of the sizes yet: only rounds are counted.
    if plan.shape.noise > 0 and needed > sum(sizes):
        raise StudyError(
            f"field 'analysis.formula': its columns and the sites' constants have {needed} "
            f"coefficients, and there are {sum(sizes)} participants; leave columns out."
        )
    found = forecast_power(plan)
    reason = (
        why_hopeless(plan, found) if plan.shape.noise > 0 and not plan.parameters.anyway else ""
    )
    if reason:
        raise StudyError(f"field 'analysis': this study is hopeless: {reason}.")
    return found


def tabulate_power(plan: GlmPlan) -> Table:
    """Tabulate what the study will see, and what others near it would."""
    parameters, shape, count = plan.parameters, plan.shape, plan.outcomes
    louder, softer = (replace(shape, noise=factor * shape.noise) for factor in (2.0, 0.5))
    near = type(plan)
    plans = {
        "as it is": plan,
        "twice the noise (near half the ε)": near(parameters, louder),
        "half the noise (near twice the ε)": near(parameters, softer),
    }
    if parameters.smooth:
        longer = parameters.model_copy(update={"cutoff": 1.5 * plan.cutoff})
        plans["with a cutoff half as long again"] = near(longer, shape)
    else:
        plans["a quarter of the outcomes"] = near(parameters, shape, max(count // 4, 1))
        if count > _GROUPS:
            plans["means of ten groups of outcomes"] = near(parameters, shape, _GROUPS)
    found = {name: forecast_power(each) for name, each in plans.items()}
    rows = [
        (
            name,
            each.error,
            math.sqrt(each.sampling),
            each.detectable,
            each.alone if math.isfinite(each.alone) else Finding(),
            _verdict(plan, each),
        )
        for name, each in found.items()
    ]
    return Table(
        f"Expected errors of effects on {count} outcomes, in public standard deviations: whole, "
        "of chance alone, and of the site that knows most, without noise. The least detectable "
        "effect, in standard deviations within groups and sites, is found with power 0.8. "
        f"{_effective(plan, found['as it is'])}",
        ("study", "error", "chance alone", "least detectable", "largest site", "worth it"),
        tuple(rows),
    )


def _verdict(plan: GlmPlan, found: Forecast) -> str:
    if why_hopeless(plan, found):
        return "no"
    return "hardly: close to the largest site" if found.error > _CLOSE * found.alone else "yes"


def _effective(plan: GlmPlan, found: Forecast) -> str:
    persons = int(plan.groups.persons.sum())
    names = np.array(plan.shape.sites or tuple(plan.parameters.groups) or ())
    alone = names[plan.groups.spread == 0] if len(names) else names
    useless = (
        f" Participants of one group only, who tell nothing: {', '.join(alone)}."
        if len(alone)
        else ""
    )
    enough = f"{found.effective:,.0f} in balanced sites."
    return f"Its {persons:,} participants tell as much as {enough}{useless}"
