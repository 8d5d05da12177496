"""What clipping takes of long tails, and by how much that alone would move effects.

A clip takes more where persons vary more. Of outcomes with a tail to one side it then takes more of
one group's, or more at one end of a column, and groups of equal means differ in what is left.
Released are the sums of what was taken, over all persons, and how much squared norms go with the
weights w. What is taken is taken to lie in the same direction everywhere and to grow by a power of
how far persons vary; then the contrast of what was taken is θ times its sum.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.glm.kernels.outcome_correlation import OutcomeCorrelation
from consortium.base.array import Array
from consortium.kernels.shrinkage import shrinkage_factor

_POWER = 4.0  # of what is taken, in the ratio of deviations between persons, sites' levels included
_UNSURE = 0.35  # of θ: tails are not all of a kind
_WIDTH = 0.4  # around 0, of the logarithm of squared norms: between groups, or a deviation of w
_TAKEN = 0.035  # deviations: what is taken of outcomes with long tails, on the mean over persons
_SPREAD = 0.8  # of that logarithm among persons
_FARTHEST = 4.0  # that groups may be apart where each logarithm is cut to ±2
_SLOPE_POWER = 3.8  # of a slope: of what is taken, in squared norms
_UNEVEN = 3.0  # of chance, over the square of that change: norms hold sites' levels, too
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class TailSums:
    """Released sums about what clipping took."""

    lost: Array
    """Length V. Σ (1 - c) u, after R^¼."""
    tail: float
    """The same of the mean outcome, which is known better."""
    lean: Array
    """Length K. Σ w ln(‖R^-¼u‖²/(V g)), with the weights of every coefficient."""
    noise: dict[str, float]
    """By lost, tail and lean. σ_j; that of lost before R^¼."""


@dataclass(frozen=True, eq=False)
class LostTails:
    """What clipping is found to have taken from the sums T, and how unsure that is."""

    lost: Array
    """Length V. Σ (1 - c) u, as far as it is no noise."""
    shared: float
    own: float
    """Variances by noise of what the outcomes share of it, and of each beside it."""
    theta: Array
    unsure: Array
    """Length K. θ and its variance."""
    uneven: Array
    """Length K. By what part of itself a coefficient's variance by chance is larger, since persons
    vary more where its weight is larger."""

    @property
    def shift(self) -> Array:
        """Σ (1 - c) w u, K x V."""
        return np.outer(self.theta, self.lost)

    def variance(self, averages: Array | None = None) -> Array:
        """Variance of ``shift``, or of its means with weights G x V: K x V, or K x G."""
        lost, squares = self.lost, np.ones(len(self.lost))
        if averages is not None:
            lost, squares = averages @ lost, np.square(averages).sum(axis=1)
        noise = self.shared + self.own * squares
        unsure = self.unsure[:, None]
        found: Array = (np.square(self.theta)[:, None] + unsure) * noise + unsure * np.square(lost)
        return found


def no_tails(outcomes: int, rows: int) -> LostTails:
    """Of a study that doesn't ask."""
    return LostTails(np.zeros(outcomes), 0.0, 0.0, *np.zeros((3, rows)))


@dataclass(frozen=True)
class TailLoss:
    """How what clipping takes goes with the contrast's weights, by how squared norms do."""

    information: float
    """Σ w t̃, or Σ w² of a slope, if nobody were clipped."""
    theta: Callable[[float], float]
    """θ, of the change of the logarithm of squared norms with a weight that is one larger."""
    width: float = _WIDTH
    """What that change may usually be."""


def lean_of_groups(persons: float, information: float, part: float) -> TailLoss:
    """Of two groups.

    Parameters
    ----------
    persons, information : float
        n and Σ w t̃, if nobody were clipped.
    part : float
        q, of the second group among the persons.
    """
    return TailLoss(information, lambda apart: _contrast(apart, part) * information / persons)


def lean_of_slope(persons: float, left: float, most: float) -> TailLoss:
    """Of a column with limits, whose weights have a deviation of one before they are cut.

    Parameters
    ----------
    left : float
        Of Σ w², where one factor is cut.
    most : float
        W_c, which they are cut to.
    """
    return TailLoss(
        persons * left,
        lambda change: min(max(_SLOPE_POWER * left * change, -most), most),
    )


def lean_of_others(persons: float, squares: Array) -> list[TailLoss]:
    """Of other coefficients beside the contrast's, by whose weights nobody is clipped harder.

    Parameters
    ----------
    squares : array, length K - 1
        Σ w² of each.
    """
    return [_lean_of_other(persons, s) for s in np.maximum(squares / persons, _TINY).tolist()]


def _lean_of_other(persons: float, spread: float) -> TailLoss:
    """Of weights of this variance."""
    width = _WIDTH / math.sqrt(spread)
    return TailLoss(persons * spread, lambda change: _SLOPE_POWER * spread * change, width)


def lost_tails(
    sums: TailSums, likeness: OutcomeCorrelation, persons: float, leans: Sequence[TailLoss]
) -> LostTails:
    """Estimate what clipping took.

    Parameters
    ----------
    likeness : OutcomeCorrelation
        R.
    persons : float
        n.
    leans : sequence of Lean, length K
    """
    found = np.array(
        [_theta(lean, float(sum_), sums) for lean, sum_ in zip(leans, sums.lean, strict=True)]
    )
    return LostTails(*_drawn(sums, likeness, _TAKEN * persons), *found.T)


def _theta(lean: TailLoss, released: float, sums: TailSums) -> tuple[float, float, float]:
    """θ, its variance, and how uneven chance is."""
    noise = (sums.noise["lean"] / lean.information) ** 2 + _SPREAD**2 / lean.information
    kept = float(shrinkage_factor(lean.width**2, noise))
    change, doubt = kept * released / lean.information, math.sqrt(kept * noise)
    theta, low, high = (lean.theta(change + sign * doubt) for sign in (0, -1, 1))
    uneven = _UNEVEN * min(abs(change * _WIDTH / lean.width), 1.0) ** 2
    return theta, (_UNSURE * theta) ** 2 + ((high - low) / 2) ** 2, uneven


def _contrast(apart: float, part: float) -> float:
    """(e₂ - e₁)/ē, of what is taken in either group, whose squared norms are e^apart times."""
    times = float(np.exp(_POWER * np.clip(apart, -_FARTHEST, _FARTHEST) / 2))
    return (times - 1) / (1 + part * (times - 1))


def _drawn(
    sums: TailSums, likeness: OutcomeCorrelation, usual: float
) -> tuple[Array, float, float]:
    """What was taken, drawn to 0 as far as it is noise, and what variances are left.

    Both parts by the factor of James and Stein, or by what is usual where that tells less. Of few
    outcomes that factor is known badly: what is drawn to 0 may be there.
    """
    variance = sums.noise["lost"] ** 2
    own = variance * max(float(np.mean(likeness.roots)) - likeness.common, 0.0)
    shared, around = sums.noise["tail"] ** 2, sums.lost - sums.lost.mean()
    with np.errstate(over="ignore"):  # what is infinite is kept
        all_kept = _kept(float(np.square(sums.tail)), shared, usual)
        each_kept = _kept(float(np.mean(np.square(around))), own, usual)
    unsure = min(1 / math.sqrt(len(around) + 2), float(shrinkage_factor(usual**2, own)))
    found = all_kept * sums.tail + each_kept * around
    return found, all_kept * shared, max(each_kept, unsure) * own


def _kept(square: float, noise: float, usual: float) -> float:
    prior = float(shrinkage_factor(usual**2, noise))
    return min(max(0.0, 1 - noise / max(square, _TINY)), prior)
