"""Possible biases that are larger than an effect's standard error allows for.

Each is a bound on the bias that the released numbers leave possible. If it exceeds half an effect's
standard error, the outcome is withheld from the discoveries, and the report begins with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.glm.centring import Centring
from consortium.algorithms.glm.declared import clipped_columns
from consortium.algorithms.glm.estimation import cut_bias, known_effects
from consortium.algorithms.glm.kernels.contrast_regression import Effects
from consortium.algorithms.glm.kernels.with_open import slopes_contradicted
from consortium.algorithms.glm.learned import Learned
from consortium.base.array import Array

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

REPORTED = "reported"
"""State of an outcome whose numbers are not withheld."""
_HALF = 0.5  # largest bias, as a fraction of an effect's standard error
_LEFT = 0.1  # share of a centre's distance from its starting value that may remain as bias
_BIAS_CORRELATION = 0.5
"""Assumed correlation, in a possible bias, of sites' levels with the part of their means that
shrinking removed. Standard errors assume `covariate_adjustment.LEVEL_CORRELATION`, 0.7. So if this
part is all of the standard error, the bias is 0.5/0.7 of it, and the outcome is withheld."""
_MOST_CLIPPED = 0.6
_MOST_VARIANCE_LOST = 0.3  # fraction of an outcome's variance; correlated outcomes lose as much
_TAIL_PART = 0.4  # fraction of an effect's standard error; the remaining bias varies with its noise
_CAUSES = {
    "factors of a product": "the mean of a column used in a product or square differs from the "
    "stated one, which biases clipping (correct analysis.covariates)",
    "cut column": "the mean or standard deviation of the slope's column differs from the stated "
    "one, and many of its values were clipped (correct analysis.covariates)",
    "site means": "sites whose participants differ in covariates may also differ in outcomes, and "
    "noise hides the size of this difference (declare analysis.site_means)",
    "cut covariates": "covariates vary more than stated, and their differences between the groups "
    "were clipped (correct analysis.covariates)",
    "long tails": "they may have long tails to one side, and clipping removed more of them in "
    "participants who vary more (take logarithms or roots at all sites alike)",
    "unequal deviations": "one of them varies much more than the others, relative to the stated "
    "deviations or, without any, to the columns' limits, and their variances were clipped (state "
    "each outcome's deviation in analysis.norms)",
    "open slopes": "the open cohort's effects contradict those of the hospitals, and so more of "
    "them was clipped (name another open cohort)",
}
_FAR_FACTOR = 0.75  # public deviations
_TAKEN = 0.3  # share of an effect of all outcomes that clipping takes
_FAR_OUTCOME = 3.0  # standard deviations from the open cohort's mean
# Ratio of standard deviations, and the standard error of the logarithm of a slope's own.
_FAR_RATIO = 1.2
_SPREAD_ERROR = 0.03
# Mean and root mean square of a column that is clipped at 2.5, in public standard deviations.
_FAR_COLUMN = 1.1
_WIDE_COLUMN = 1.35


@dataclass(frozen=True, eq=False)
class PossibleBias:
    """Cause of bias, with the effects that it could move."""

    name: str
    """Name for the tables' column `state`."""
    cause: str
    """Completes "because"."""
    concerned: Array
    """Effects that it could move by more than half their standard error, boolean, length V."""


def possible_biases(
    plan: Glm, found: Effects, learned: Learned, centring: Centring
) -> list[PossibleBias]:
    """Return every cause that concerns an outcome; none without noise and clipping."""
    if plan.shape.noise == 0:
        return []
    clipped = lost_information(found, learned)
    moves: dict[str, Array | float] = {
        "factors of a product": _factors(plan, learned, centring),
        "cut column": _column(plan, learned, centring),
        "location": _centre(found, learned),
        "site means": _confounding(found, learned),
        "cut covariates": cut_bias(plan, learned),
        "long tails": _HALF / _TAIL_PART * _tails(found),
        "unequal deviations": np.inf if found.lost.max() > _MOST_VARIANCE_LOST else 0.0,
        "clipped": np.inf if clipped > _MOST_CLIPPED else 0.0,
        "open slopes": _wrong_slopes(plan, found, learned),
    }
    causes = _CAUSES | {
        "location": _centre_sentence(plan, learned),
        "clipped": f"{100 * clipped:.0f} % were clipped away",
    }
    errors = found.each.errors
    biases = [
        PossibleBias(name, causes[name], np.broadcast_to(move, errors.shape) > _HALF * errors)
        for name, move in moves.items()
    ]
    return [bias for bias in biases if bias.concerned.any()]


def lost_information(found: Effects, learned: Learned) -> float:
    """Return the fraction of the contrast's information that clipping removed.

    For a slope it includes the loss by limited weights.
    """
    adjustment = learned.adjustment
    whole = adjustment.information * (1 - adjustment.explained) / learned.spread
    return float(np.clip(1 - found.divisor / whole, 0.0, 1.0))


def bias_sentences(biases: list[PossibleBias], outcomes: int) -> tuple[str, ...]:
    """Return the first sentence of a headline if any outcome is withheld."""
    if not biases:
        return ()
    many = int(withheld_by(biases, outcomes).sum())
    causes = "; and because ".join(bias.cause for bias in biases)
    sentence = (
        f"The numbers of {many} of {outcomes} outcomes are withheld, because {causes}. That could "
        "bias an effect by about half its standard error or more."
    )
    return (sentence,)


def withheld_by(biases: list[PossibleBias], outcomes: int) -> Array:
    """Return the outcomes that any cause concerns."""
    found = np.zeros(outcomes, dtype=bool)
    for bias in biases:
        found |= bias.concerned
    return found


def contradicted_sentences(plan: Glm, learned: Learned) -> tuple[str, ...]:
    """Return warnings on stated numbers that contradict those of the first round.

    They concern standard deviations and, with an open cohort, units. They withhold nothing.
    """
    found = list[str]()
    error = learned.norms.log_square_error / 2
    source = "analysis.norms.deviation" if plan.open is None else "the open cohort"
    if plan.in_stated_units and _contradicts(learned.ratio, error):
        found.append(
            f"Outcomes vary within groups and sites {learned.ratio:.2g} times as much as "
            f"{source} states. The plan's forecast is for the stated number."
        )
    spread = learned.spread / plan.design.unit
    if plan.columns.slope and _contradicts(spread, _SPREAD_ERROR):
        found.append(
            f"'{plan.columns.group.label}' varies within sites {spread:.2g} times as much as the "
            "study expects. State the standard deviation within sites, analysis.covariates with "
            "'within', for a correct forecast."
        )
    if plan.open is not None:
        found += _far_outcomes(plan, learned)
    return tuple(found)


def _far_outcomes(plan: Glm, learned: Learned) -> list[str]:
    """Return a warning on outcomes that are far from the open cohort's, as in another unit."""
    norms = learned.norms
    far = np.abs(norms.shift) / norms.factor > _FAR_OUTCOME
    if not far.any():
        return []
    first = plan.columns.labels[int(np.argmax(far))][1]
    sentence = (
        f"{int(far.sum())} of {plan.outcomes} outcomes ('{first}' is one) are more than "
        f"{_FAR_OUTCOME:g} standard deviations from the open cohort's mean. Check that its table "
        "has the study's units."
    )
    return [sentence]


def _wrong_slopes(plan: Glm, found: Effects, learned: Learned) -> float:
    """Return the bias from an open cohort's slopes that contradict the effects, or 0.

    Formula: 0.3 √(d̄² - Var d̄), with d̄ the mean over outcomes of the effects less these slopes.
    Clipping shrinks the mean of all outcomes. It took 0.2 to 0.5 of it on real participants.
    """
    if plan.open is None or not plan.open.knows_contrast:
        return 0.0
    opened = known_effects(plan, learned)[0]
    along, whole = plan.outcome_correlation.decode(
        plan.outcome_correlation.decode(np.column_stack([opened, np.ones(plan.outcomes)]))
    ).T  # R^½ of slopes and of ones
    shared = float(along @ along / (opened @ opened))
    effects = found.each.effects
    errors = found.each.errors
    if not slopes_contradicted(effects, errors, opened, shared):
        return 0.0
    chance = float(np.mean(np.square(errors)) * (whole @ whole)) / plan.outcomes**2
    left = float(np.mean(effects - opened)) ** 2 - chance
    return _TAKEN * math.sqrt(max(left, 0.0))


def _contradicts(ratio: float, error: float) -> bool:
    """Return whether a ratio differs from 1 by more than the tolerance and two standard errors."""
    return abs(math.log(ratio)) > math.log(_FAR_RATIO) + 2 * error


def states_of(biases: list[PossibleBias], lacking: Array) -> tuple[str, ...]:
    """Return why each outcome's numbers are withheld, or that they are reported.

    Parameters
    ----------
    lacking : array of bool, length V
        Outcomes that too few participants have.
    """
    causes = [*((bias.name, bias.concerned) for bias in biases), ("missing values", lacking)]
    return tuple(
        f"withheld: {', '.join(own)}" if own else REPORTED
        for own in ([name for name, which in causes if which[v]] for v in range(len(lacking)))
    )


def _centre_sentence(plan: Glm, learned: Learned) -> str:
    norms = learned.norms
    far = float(np.sqrt(np.mean(np.square(norms.shift)))) / norms.factor
    stated = plan.parameters.norms.location is not None
    place = "stated" if stated else "initial"
    if plan.open is not None:
        place = "open cohort's"
    return f"they are about {far:.2g} of their standard deviations from the {place} location"


def _centre(found: Effects, learned: Learned) -> Array:
    """Return the bias of effects from the error that may remain in learned centres.

    Formula: 0.1 |d| b / D, with d the distance of the learned from the starting centre in standard
    deviations and b the root of the expected squared sum of weights. The factor 0.1 is a choice.
    The bias is infinite if the norms were lost.
    """
    if learned.norms.lost:
        return np.full(found.each.errors.shape, np.inf)
    unbalanced = float(np.sqrt(found.balance[0])) / found.divisor
    return np.asarray(_LEFT * unbalanced * np.abs(learned.norms.shift) / learned.norms.factor)


def _factors(plan: Glm, learned: Learned, centring: Centring) -> float:
    """Return infinity if a column of a product or a square is far from its stated mean, or 0."""
    factors = plan.columns.products.rows
    if not len(factors):
        return 0.0
    own = [e.row in factors and not e.levels for e in clipped_columns(plan.columns)[0]]
    centres = learned.adjustment.centres + np.nan_to_num(plan.declared)
    persons = centring.groups.persons
    means = persons @ centres[:, own] / persons.sum()
    return np.inf if np.abs(means).max(initial=0.0) > _FAR_FACTOR else 0.0


def _column(plan: Glm, learned: Learned, centring: Centring) -> float:
    """Return infinity if a slope's column was clipped unequally or much at both ends, or 0.

    The share outside the limits is estimated from the mean square about the stated mean, including
    site means. Differences between a unit's rows have more weight than a single row, so the column
    looks wider.
    """
    if not plan.columns.slope:
        return 0.0
    persons = centring.groups.persons
    units = plan.parameters.units
    means = learned.adjustment.centres[:, 0]
    usual = np.ones(1)
    if units is not None:
        usual, _ = units.expected_squares(usual, np.inf, slope=True)
    square = learned.spread**2 / float(usual[0]) + float(persons @ means**2) / float(persons.sum())
    mean = float(persons @ means) / float(persons.sum())
    return np.inf if abs(mean) > _FAR_COLUMN or square > _WIDE_COLUMN**2 else 0.0


def _confounding(found: Effects, learned: Learned) -> float:
    """Return the bias from sites' levels that correlate with the sites' covariate means.

    Shrinking hides a part of these means. The standard error includes this part with a correlation
    of 0.7 to the levels. If it is most of the standard error, the standard error depends on this
    assumption.
    """
    adjustment = learned.adjustment
    hidden = adjustment.squared(np.square(adjustment.confounded))
    return _BIAS_CORRELATION * math.sqrt(found.between * hidden) / learned.spread / found.divisor


def _tails(found: Effects) -> Array:
    """Return the bias that a correction for long tails leaves open, at least that of most outcomes.

    An outcome with a standard error above the median may have the longer tail, so its bias is
    scaled up in proportion.
    """
    usual = np.median(found.tail_variance)
    errors = found.each.errors
    larger = np.maximum(errors / np.median(errors), 1.0)
    return np.asarray(larger * np.sqrt(np.maximum(found.tail_variance, usual)) / found.divisor)
