"""Correction of effects for the long tails that clipping removed.

Clipping removes more if participants vary more. For outcomes with a tail to one side it then
removes more in one group, or at one end of a column, and groups of equal means differ after
clipping. The site releases sums of the removed parts over all participants, and of the product of
the weights w with the logarithm of squared norms. Assumptions: the removed part has the same
direction everywhere and grows by a power of the standard deviation. Then the contrast of the
removed part is θ times its sum. The release calls the sum of weights and logarithms ``lean``: it
shows how far participants' norms lean to one end of the weights.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.glm.kernels.outcome_correlation import OutcomeCorrelation
from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor
from consortium.base.array import Array

_POWER = 4.0  # exponent of the ratio of standard deviations, including sites' levels, in the loss
_UNSURE = 0.35  # relative standard deviation of θ, because kinds of tails differ
# Prior standard deviation of the change of log squared norms between groups, or by one of w.
_WIDTH = 0.4
_TAKEN = 0.035  # usual mean loss of outcomes with long tails, in standard deviations
_SPREAD = 0.8  # standard deviation of that logarithm among participants
_FARTHEST = 4.0  # largest difference of groups, since `clipping.MOST_LEAN` clips each to ±2
_SLOPE_POWER = 3.8  # for a slope: power of the loss in squared norms
# Relative increase of the sampling variance over that squared change: norms include levels.
_UNEVEN = 3.0
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class TailSums:
    """Released sums about the loss by clipping."""

    lost: Array
    """Σ (1 - c) u, after R^¼, length V."""
    tail: float
    """The same for the mean outcome, which has less noise."""
    lean: Array
    """Σ w ln(‖R^-¼u‖²/(V g)), with the weights of every coefficient, length K."""
    noise: dict[str, float]
    """σ_j of lost, tail and lean; that of lost before R^¼."""


@dataclass(frozen=True, eq=False)
class LostTails:
    """Estimated loss of the sums T by clipping, with its variance."""

    lost: Array
    """Σ (1 - c) u, shrunk in proportion to its noise, length V."""
    shared: float
    own: float
    """Noise variances of its mean over outcomes, and of each outcome around it."""
    theta: Array
    theta_variance: Array
    """θ and its variance, length K."""
    uneven: Array
    """Relative increase of a coefficient's sampling variance, since participants vary more where
    its weight is larger. Length K."""
    changes: Array
    """Change of the logarithm of squared norms per unit of the weight, shrunk. Length K."""

    @property
    def shift(self) -> Array:
        """Σ (1 - c) w u = θ Σ (1 - c) u, K x V."""
        return np.outer(self.theta, self.lost)

    def variance(self, averages: Array | None = None) -> Array:
        """Return the variance of ``shift``, or of its means with weights G x V: K x V, or K x G.

        Formula: (θ² + Var θ) σ² + Var θ · lost², with σ² the noise variance of the loss.
        """
        lost = self.lost
        squares = np.ones(len(self.lost))
        if averages is not None:
            lost = averages @ lost
            squares = np.square(averages).sum(axis=1)
        noise = self.shared + self.own * squares
        theta_variance = self.theta_variance[:, None]
        found: Array = (
            np.square(self.theta)[:, None] + theta_variance
        ) * noise + theta_variance * np.square(lost)
        return found


def no_tails(outcomes: int, rows: int) -> LostTails:
    """Return a correction of 0 for a study that does not release the loss."""
    return LostTails(np.zeros(outcomes), 0.0, 0.0, *np.zeros((4, rows)))


@dataclass(frozen=True)
class TailLoss:
    """Relation of the loss to the contrast's weights, given that of squared norms to them."""

    information: float
    """Σ w t̃, or Σ w² of a slope, before norms are clipped."""
    theta: Callable[[float], float]
    """Function from the change of the log squared norm per unit of the weight to θ."""
    width: float = _WIDTH
    """Prior standard deviation of that change."""


def tail_loss_of_groups(persons: float, information: float, part: float) -> TailLoss:
    """Return the relation of lost tails to squared norms for the contrast of two groups.

    Parameters
    ----------
    persons, information : float
        n, and Σ w t̃ without clipping.
    part : float
        q, fraction of the participants in the second group.
    """
    return TailLoss(information, lambda apart: _contrast(apart, part) * information / persons)


def tail_loss_of_slope(persons: float, left: float, most: float) -> TailLoss:
    """Return the relation of lost tails to squared norms for a slope.

    Its weights have variance 1 before they are clipped.

    Parameters
    ----------
    left : float
        Fraction of Σ w² that remains if one factor w of each square is limited.
    most : float
        W_c, limit of the weights.
    """
    return TailLoss(
        persons * left,
        lambda change: min(max(_SLOPE_POWER * left * change, -most), most),
    )


def tail_losses_of_others(persons: float, squares: Array) -> list[TailLoss]:
    """Return the relations of lost tails to squared norms for the other coefficients.

    Their weights do not affect clipping.

    Parameters
    ----------
    squares : array, length K - 1
        Σ w² of each coefficient.
    """
    return [_tail_loss_of_other(persons, s) for s in np.maximum(squares / persons, _TINY).tolist()]


def _tail_loss_of_other(persons: float, spread: float) -> TailLoss:
    """Return the relation for weights of this variance."""
    width = _WIDTH / math.sqrt(spread)
    return TailLoss(persons * spread, lambda change: _SLOPE_POWER * spread * change, width)


def lost_tails(
    sums: TailSums,
    outcome_correlation: OutcomeCorrelation,
    persons: float,
    relations: Sequence[TailLoss],
) -> LostTails:
    """Return the estimated loss by clipping for all coefficients.

    Parameters
    ----------
    sums : TailSums
        As they were released.
    outcome_correlation : OutcomeCorrelation
        R.
    persons : float
        n.
    relations : sequence of TailLoss, length K
        Of each coefficient.
    """
    found = np.array(
        [
            _theta(relation, float(sum_), sums)
            for relation, sum_ in zip(relations, sums.lean, strict=True)
        ]
    )
    return LostTails(*_shrunk_loss(sums, outcome_correlation, _TAKEN * persons), *found.T)


def _theta(
    relation: TailLoss, released: float, sums: TailSums
) -> tuple[float, float, float, float]:
    """Return θ, its variance, relative increase of the sampling variance, and the change itself."""
    noise = (sums.noise["lean"] / relation.information) ** 2 + _SPREAD**2 / relation.information
    kept = float(shrinkage_factor(relation.width**2, noise))
    change = kept * released / relation.information
    error = math.sqrt(kept * noise)
    theta, low, high = (relation.theta(change + sign * error) for sign in (0, -1, 1))
    uneven = _UNEVEN * min(abs(change * _WIDTH / relation.width), 1.0) ** 2
    return theta, (_UNSURE * theta) ** 2 + ((high - low) / 2) ** 2, uneven, change


def _contrast(apart: float, part: float) -> float:
    """Return (e₂ - e₁)/ē, with e₁ and e₂ the mean losses in two groups and ē their mean.

    ``apart`` is the difference of their log squared norms. The loss is the fourth power of the
    ratio of standard deviations.
    """
    times = float(np.exp(_POWER * np.clip(apart, -_FARTHEST, _FARTHEST) / 2))
    return (times - 1) / (1 + part * (times - 1))


def _shrunk_loss(
    sums: TailSums, outcome_correlation: OutcomeCorrelation, usual: float
) -> tuple[Array, float, float]:
    """Return the loss, shrunk to 0 in proportion to its noise, and the remaining noise variances.

    Mean and deviations are shrunk by the factor of James and Stein, or by that of the usual loss if
    it is smaller. With few outcomes the estimated factor is imprecise, and the deviations may be
    real, so their variance keeps a minimum.
    """
    variance = sums.noise["lost"] ** 2
    own = variance * max(
        float(np.mean(outcome_correlation.roots)) - outcome_correlation.common, 0.0
    )
    shared = sums.noise["tail"] ** 2
    around = sums.lost - sums.lost.mean()
    with np.errstate(over="ignore"):  # an infinite square has a factor of 1
        all_kept = _kept(float(np.square(sums.tail)), shared, usual)
        each_kept = _kept(float(np.mean(np.square(around))), own, usual)
    least_kept = min(1 / math.sqrt(len(around) + 2), float(shrinkage_factor(usual**2, own)))
    found = all_kept * sums.tail + each_kept * around
    return found, all_kept * shared, max(each_kept, least_kept) * own


def _kept(square: float, noise: float, usual: float) -> float:
    prior = float(shrinkage_factor(usual**2, noise))
    return min(max(0.0, 1 - noise / max(square, _TINY)), prior)
