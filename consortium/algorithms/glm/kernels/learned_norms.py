"""Centre and scale of outcomes, learned from the sums of a first look at them.

Outcomes are u = (y - ℓ⁰)/σ⁰, with norms that may be far off. L holds f R^-¼u with a clip
f = min(1, B/‖R^-¼u‖), F what clipping left of the persons, Z the logarithms of squared distances of
pairs of a site. Each number is drawn to what is stated as far as it is noise, so that right norms
lose next to nothing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, digamma

from consortium.algorithms.glm.kernels.outcome_correlation import OutcomeCorrelation
from consortium.base.array import Array
from consortium.kernels.contrast_regression import SITE_VARIANCE
from consortium.kernels.noisy_shares import EstimatedShares
from consortium.kernels.shrinkage import shrinkage_factor

MOST_LOG = 4.0
"""What the logarithm of a pair's squared distance, over what is usual, is cut to; twice that for
outcomes without limits or stated deviations."""
LEAST_KEPT = 0.1
"""Of the persons, after clipping: with less nothing can be said of the outcomes' centre."""
STATED_WIDTH, MISSING_WIDTH = 1.0, 2.5
"""Standard deviation of the log of the variance around what is stated, or only guessed."""
_LOST = 1.25  # of the least kept, and of the largest logarithm, from where on norms are lost
_CLEARLY = 2.0  # deviations of noise
_TINY = 1e-12
_QUANTILES, _HALVINGS, _RATIOS = 200, 40, (1e-2, 1e4)  # of squared norms


@dataclass(frozen=True, eq=False)
class LookSums:
    """Released sums of the first look."""

    location: Array
    """Length d. L."""
    kept: float
    """F."""
    size: float
    """Z."""
    shares: EstimatedShares
    """Estimated shares of the participants who have each outcome; 1 without gaps."""
    noise: dict[str, float]
    """By location, kept and size. σ_j."""


@dataclass(frozen=True, eq=False)
class LearnedNorms:
    """What is learned of the outcomes."""

    shift: Array
    """Length V. Centre less the one that was started from, over the scale that was started from."""
    factor: float
    """s, scale over the one that was started from."""
    doubt: float
    """Standard deviation of ln s²."""
    shared: float
    own: float
    """Variances of ``shift`` by noise: of what all outcomes have in common, and of each beside
    it."""
    shares: EstimatedShares
    """Shares of the participants who have each outcome."""
    lost: bool
    """Whether the start was too far off to learn anything from."""

    @property
    def present(self) -> Array:
        """Length V. Shares that sums over participants are divided by."""
        return self.shares.divisors

    def missed(self, squares: Array | float = 1.0) -> Array | float:
        """η²/s², variance of a learned centre in learned units.

        Parameters
        ----------
        squares : array or float
            Σ a², of means of outcomes with weights a.
        """
        return (self.shared + self.own * squares) / self.factor**2


def learn_norms(
    sums: LookSums,
    likeness: OutcomeCorrelation,
    persons: float,
    pairs: float,
    width: float,
    most: float = MOST_LOG,
) -> LearnedNorms:
    """Centre and scale, each drawn to the start as far as it is noise.

    Parameters
    ----------
    likeness : OutcomeCorrelation
        R.
    width : float
        π, how far ln s² may be from 0.
    most : float
        What logarithms were cut to.
    """
    kept = float(np.clip(sums.kept, LEAST_KEPT * persons, persons))
    present = sums.shares.divisors
    shift, shared, own = _centre(sums.location, sums.noise["location"], kept, likeness, present)
    freedom = likeness.freedom
    usual = digamma(freedom / 2) + np.log(2 / freedom) + np.log(1 - SITE_VARIANCE)
    found, doubt = sums.size / pairs, sums.noise["size"] / pairs
    trust = float(shrinkage_factor(width**2, doubt**2))
    log = trust * (found - usual)
    few = sums.kept + _CLEARLY * sums.noise["kept"] < _LOST * LEAST_KEPT * persons
    lost = few or abs(found) > most / _LOST + _CLEARLY * doubt
    scale, unknown = float(np.exp(log / 2)), float(np.sqrt(trust) * doubt)
    return LearnedNorms(shift, scale, unknown, shared, own, sums.shares, bool(lost))


def squared_norm_ratio(kept: float, reach: float, likeness: OutcomeCorrelation) -> float:
    """Return the mean squared norm of R^-¼u over its usual one, from the mean clip factor.

    It is the ratio with which participants whose squared norms follow a χ² law would keep as much.
    Differences between sites are part of these norms, which those of pairs within a site are not.

    Parameters
    ----------
    kept : float
        Mean of min(1, B/‖R^-¼u‖) over participants.
    reach : float
        B.
    likeness : OutcomeCorrelation
        R.
    """
    freedom = likeness.freedom
    parts = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    squares = likeness.entries * likeness.root * chdtri(freedom, parts) / freedom
    low, high = np.log(_RATIOS)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        left = np.minimum(1.0, reach / np.sqrt(np.exp(middle) * squares)).mean()
        low, high = (middle, high) if left > kept else (low, middle)
    return float(np.exp((low + high) / 2))


def _centre(
    sums: Array, noise: float, kept: float, likeness: OutcomeCorrelation, present: Array
) -> tuple[Array, float, float]:
    """Mean outcomes, and the variances by noise of what they share and of what they do not.

    Both parts are shrunk by the factor of James and Stein, so that noise is not taken for a centre.
    """
    means = likeness.decode(sums[:, None])[:, 0] / (kept * present)
    variance = (noise / kept) ** 2
    shared = variance * likeness.common
    own = max(variance * float(np.mean(likeness.roots)) - shared, 0.0)
    common = float(means.mean())
    around = means - common
    all_kept = max(0.0, 1 - shared / max(common**2, _TINY))
    each_kept = max(0.0, 1 - own / max(float(np.mean(around**2)), _TINY))
    return all_kept * common + each_kept * around, all_kept * shared, each_kept * own
