"""What could move an effect further than its error says: the first thing that a report tells.

Each doubt is a bound on what released numbers leave possible, set against half an effect's stated
error. Where one is larger, the outcome is withheld from what is found.
"""

import math
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.glm.centring import Centring
from consortium.algorithms.glm.declared import clipped_columns
from consortium.algorithms.glm.estimation import cut_bias
from consortium.algorithms.glm.learned import Learned
from consortium.algorithms.glm.plan import GlmPlan
from consortium.kernels.contrast_regression import Effects

REPORTED = "reported"
"""State of an outcome whose numbers are not withheld."""
_HALF = 0.5  # of an effect's stated error
_LEFT = 0.1  # of a centre's distance from where it was looked for, after it was learned
_TOGETHER = 0.5  # as correlation of sites' means and levels: then .7 is half the error's square
_MOST_CLIPPED = 0.6
_MOST_LOST = 0.3  # of an outcome's variance: outcomes that go with it lose as much
_TAIL_PART = 0.4  # of an effect's stated error: what a correction leaves open varies with its noise
_CAUSES = {
    "factors of a product": "a column of a product or a square has another mean than is stated, "
    "and where these are centred decides what clipping takes (correct analysis.covariates)",
    "cut column": "the slope's column has another mean or deviation than is stated, so that much "
    "of it was cut (correct analysis.covariates)",
    "site means": "sites whose participants differ in covariates may also differ in outcomes, and "
    "noise hides by how much (declare analysis.site_means)",
    "cut covariates": "covariates vary more than is stated, so that they were cut where the groups "
    "differ in them (correct analysis.covariates)",
    "long tails": "they may have long tails to one side, of which clipping took more where "
    "participants vary more (take logarithms or roots at all sites alike)",
    "unequal deviations": "one of them varies much more than the others, measured in the stated "
    "deviations or, without any, in the columns' limits, so that their variances were clipped "
    "(state each outcome's deviation in analysis.norms)",
}
_FAR_FACTOR = 0.75  # public deviations
_FAR_RATIO, _SPREAD_DOUBT = 1.2, 0.03  # of standard deviations, and the error of a slope's own
_FAR_COLUMN, _WIDE_COLUMN = 1.1, 1.35  # public deviations, of 2.5 that a column is cut to


@dataclass(frozen=True, eq=False)
class PossibleBias:
    """A cause of bias, and how far it could move each effect."""

    name: str
    """For the tables' column `state`."""
    cause: str
    """Completes "because"."""
    concerned: Array
    """True or false, length V. Effects that it could move by more than half their error."""


def doubts_of(
    plan: GlmPlan, found: Effects, learned: Learned, there: Centring
) -> list[PossibleBias]:
    """Return every cause that concerns an outcome; none without noise, as nothing is cut then."""
    if plan.shape.noise == 0:
        return []
    clipped = clipped_of(found, learned)
    moves: dict[str, Array | float] = {
        "factors of a product": _factors(plan, learned, there),
        "cut column": _column(plan, learned, there),
        "location": _centre(found, learned),
        "site means": _confounding(found, learned),
        "cut covariates": cut_bias(plan, learned),
        "long tails": _HALF / _TAIL_PART * _tails(found),
        "unequal deviations": np.inf if found.lost.max() > _MOST_LOST else 0.0,
        "clipped": np.inf if clipped > _MOST_CLIPPED else 0.0,
    }
    causes = _CAUSES | {
        "location": _centre_sentence(plan, learned),
        "clipped": f"{100 * clipped:.0f} % were clipped away",
    }
    errors = found.each.errors
    doubts = [
        PossibleBias(name, causes[name], np.broadcast_to(move, errors.shape) > _HALF * errors)
        for name, move in moves.items()
    ]
    return [doubt for doubt in doubts if doubt.concerned.any()]


def clipped_of(found: Effects, learned: Learned) -> float:
    """Part of the contrast that clipping took."""
    adjustment = learned.adjustment
    whole = adjustment.information * (1 - adjustment.explained) / learned.spread
    return float(np.clip(1 - found.divisor / whole, 0.0, 1.0))


def doubt_sentences(doubts: list[PossibleBias], outcomes: int) -> tuple[str, ...]:
    """The sentence that a headline starts with, if anything is in doubt."""
    if not doubts:
        return ()
    many = int(withheld_by(doubts, outcomes).sum())
    causes = "; and because ".join(doubt.cause for doubt in doubts)
    sentence = (
        f"{many} of {outcomes} outcomes can't be judged, because {causes}: that could move an "
        "effect by about half its stated error or more, so that their numbers are withheld."
    )
    return (sentence,)


def withheld_by(doubts: list[PossibleBias], outcomes: int) -> Array:
    """Outcomes that any doubt concerns."""
    found = np.zeros(outcomes, dtype=bool)
    for doubt in doubts:
        found |= doubt.concerned
    return found


def contradicted_sentences(plan: GlmPlan, learned: Learned) -> tuple[str, ...]:
    """Say which stated standard deviations contradict those learned in the first round."""
    found = list[str]()
    doubt = learned.norms.doubt / 2
    if plan.in_stated_units and _contradicts(learned.ratio, doubt):
        found.append(
            f"Outcomes vary within groups and sites {learned.ratio:.2g} times as much as "
            "analysis.norms.deviation states: the plan's forecast holds for that number."
        )
    spread = learned.spread / plan.design.unit
    if plan.columns.slope and _contradicts(spread, _SPREAD_DOUBT):
        found.append(
            f"'{plan.columns.group.label}' varies within sites {spread:.2g} times as much as the "
            "study expects: state analysis.covariates with 'within', the standard deviation within "
            "sites, so that the plan's forecast holds."
        )
    return tuple(found)


def _contradicts(ratio: float, doubt: float) -> bool:
    """Whether a ratio is further from 1 than is allowed and than two standard errors explain."""
    return abs(math.log(ratio)) > math.log(_FAR_RATIO) + 2 * doubt


def states_of(doubts: list[PossibleBias], lacking: Array) -> tuple[str, ...]:
    """Return why each outcome's numbers are withheld, or that they are reported.

    Parameters
    ----------
    lacking : array of bool, length V
        Outcomes that too few participants have.
    """
    causes = [*((doubt.name, doubt.concerned) for doubt in doubts), ("missing values", lacking)]
    return tuple(
        f"withheld: {', '.join(own)}" if own else REPORTED
        for own in ([name for name, which in causes if which[v]] for v in range(len(lacking)))
    )


def _centre_sentence(plan: GlmPlan, learned: Learned) -> str:
    norms = learned.norms
    far = float(np.sqrt(np.mean(np.square(norms.shift)))) / norms.factor
    where = "stated" if plan.parameters.norms.location is not None else "looked for"
    return f"they lie about {far:.2g} of their deviations from where they were {where}"


def _centre(found: Effects, learned: Learned) -> Array:
    """By what may be left of a centre that is far off, times what weights do not cancel by."""
    if learned.norms.lost:
        return np.full(found.each.errors.shape, np.inf)
    unbalanced = float(np.sqrt(found.balance[0])) / found.divisor
    return np.asarray(_LEFT * unbalanced * np.abs(learned.norms.shift) / learned.norms.factor)


def _factors(plan: GlmPlan, learned: Learned, there: Centring) -> float:
    """Whether a column of a product or a square lies far from its stated mean."""
    factors = plan.columns.products.rows
    if not len(factors):
        return 0.0
    own = [e.row in factors and not e.levels for e in clipped_columns(plan.columns)[0]]
    centres = learned.adjustment.centres + np.nan_to_num(plan.declared)
    persons = there.groups.persons
    means = persons @ centres[:, own] / persons.sum()
    return np.inf if np.abs(means).max(initial=0.0) > _FAR_FACTOR else 0.0


def _column(plan: GlmPlan, learned: Learned, there: Centring) -> float:
    """Whether a slope's column was cut far from symmetrically, or at both ends.

    What of it lies beyond its limits follows from its square about the stated mean, sites' means
    and all. What rows of units differ by weighs more than a row, so that it looks wider.
    """
    if not plan.columns.slope:
        return 0.0
    persons, units = there.groups.persons, plan.parameters.units
    means, usual = learned.adjustment.centres[:, 0], np.ones(1)
    if units is not None:
        usual, _ = units.expected_squares(usual, np.inf, slope=True)
    square = learned.spread**2 / float(usual[0]) + float(persons @ means**2) / float(persons.sum())
    mean = float(persons @ means) / float(persons.sum())
    return np.inf if abs(mean) > _FAR_COLUMN or square > _WIDE_COLUMN**2 else 0.0


def _confounding(found: Effects, learned: Learned) -> float:
    """By sites' levels that go closely with their covariates, of which shrinking hides a part.

    That part stands in the error for a correlation of .7. Where it is most of the error, the error
    rests on that guess.
    """
    adjustment = learned.adjustment
    hidden = adjustment.squared(np.square(adjustment.confounded))
    return _TOGETHER * math.sqrt(found.between * hidden) / learned.spread / found.divisor


def _tails(found: Effects) -> Array:
    """Return the bias that a correction for long tails leaves open, at least that of most outcomes.

    An outcome with a larger error than most may have the longer tail, so that it is judged by
    theirs.
    """
    usual, errors = np.median(found.tails), found.each.errors
    larger = np.maximum(errors / np.median(errors), 1.0)
    return np.asarray(larger * np.sqrt(np.maximum(found.tails, usual)) / found.divisor)
