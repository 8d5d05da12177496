"""Location and scale of outcomes, learned from the sums of a first look.

Outcomes are u = (y - ℓ⁰)/σ⁰, with initial values ℓ⁰ and σ⁰ that may be wrong. L is the sum of f
R^-¼u with the clipping factor f = min(1, B/‖R^-¼u‖), F the sum of f, and Z the sum of logarithms of
squared distances of pairs of a site. Each estimate is shrunk to its initial value in proportion to
its noise, so correct initial values lose little precision.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, digamma

from consortium.algorithms.glm.kernels.contrast_regression import SITE_VARIANCE
from consortium.algorithms.glm.kernels.outcome_correlation import OutcomeCorrelation
from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor
from consortium.base.array import Array
from consortium.kernels.noisy_shares import EstimatedShares

MOST_LOG = 4.0
"""Limit of the logarithm of a pair's squared distance relative to the usual one; doubled for
outcomes without limits or stated standard deviations."""
LEAST_KEPT = 0.1
"""Smallest mean clipping factor; below it the outcomes' location cannot be learned."""
STATED_WIDTH = 1.0
MISSING_WIDTH = 2.5
"""Prior standard deviation of the log variance around a stated value, and around a guess."""
_LOST = 1.25  # factor on the smallest F and the largest logarithm at which norms are lost
_CLEARLY = 2.0  # standard deviations of noise
_TINY = 1e-12
_QUANTILES = 200
_HALVINGS = 40
_RATIOS = (1e-2, 1e4)  # least and largest ratio of squared norms


@dataclass(frozen=True, eq=False)
class LookSums:
    """Released sums of `glm`'s first look at the outcomes."""

    location: Array
    """L, length d."""
    kept: float
    """F."""
    size: float
    """Z."""
    shares: EstimatedShares
    """Estimated shares of the participants who have each outcome; 1 if none are missing."""
    noise: dict[str, float]
    """σ_j of location, kept and size."""


@dataclass(frozen=True, eq=False)
class LearnedNorms:
    """Learned location and scale of the outcomes."""

    shift: Array
    """Learned minus initial location, in initial standard deviations. Length V."""
    factor: float
    """s, learned scale relative to the initial one."""
    log_square_error: float
    """Standard deviation of ln s²."""
    shared: float
    own: float
    """Noise variances of ``shift``, for the mean over outcomes and for deviations from it."""
    shares: EstimatedShares
    """Shares of the participants who have each outcome."""
    lost: bool
    """Whether the initial values were too far off to learn from."""

    @property
    def present(self) -> Array:
        """Shares that sums over participants are divided by, length V."""
        return self.shares.divisors

    def missed(self, squares: Array | float = 1.0) -> Array | float:
        """Return η²/s², the variance of a learned centre in learned units.

        Parameters
        ----------
        squares : array or float
            Σ a² for means of outcomes with weights a; 1 for single outcomes.
        """
        return (self.shared + self.own * squares) / self.factor**2


def learn_norms(
    sums: LookSums,
    outcome_correlation: OutcomeCorrelation,
    persons: float,
    pairs: float,
    width: float,
    most: float = MOST_LOG,
) -> LearnedNorms:
    """Return location and scale, each shrunk to its initial value in proportion to its noise.

    Parameters
    ----------
    outcome_correlation : OutcomeCorrelation
        R.
    width : float
        π, prior standard deviation of ln s².
    most : float
        Limit of the logarithms.
    """
    kept = float(np.clip(sums.kept, LEAST_KEPT * persons, persons))
    present = sums.shares.divisors
    shift, shared, own = _centre(
        sums.location, sums.noise["location"], kept, outcome_correlation, present
    )
    freedom = outcome_correlation.freedom
    usual = digamma(freedom / 2) + np.log(2 / freedom) + np.log(1 - SITE_VARIANCE)
    found = sums.size / pairs
    error = sums.noise["size"] / pairs
    trust = float(shrinkage_factor(width**2, error**2))
    log = trust * (found - usual)
    few = sums.kept + _CLEARLY * sums.noise["kept"] < _LOST * LEAST_KEPT * persons
    lost = few or abs(found) > most / _LOST + _CLEARLY * error
    scale = float(np.exp(log / 2))
    return LearnedNorms(
        shift=shift,
        factor=scale,
        log_square_error=float(np.sqrt(trust) * error),
        shared=shared,
        own=own,
        shares=sums.shares,
        lost=bool(lost),
    )


def squared_norm_ratio(kept: float, reach: float, outcome_correlation: OutcomeCorrelation) -> float:
    """Return the mean squared norm of R^-¼u over that of stated outcomes, from the clip factor.

    If the squared norms of participants follow a χ² law scaled by this ratio, their mean clip
    factor is ``kept``. The ratio is between the ends of ``_RATIOS``. It includes the variance
    between sites, which distances of pairs within a site do not show.

    Parameters
    ----------
    kept : float
        Mean of min(1, B/‖R^-¼u‖) over participants.
    reach : float
        B.
    outcome_correlation : OutcomeCorrelation
        R.
    """
    freedom = outcome_correlation.freedom
    parts = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    squares = (
        outcome_correlation.entries * outcome_correlation.root * chdtri(freedom, parts) / freedom
    )
    low, high = np.log(_RATIOS)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        left = np.minimum(1.0, reach / np.sqrt(np.exp(middle) * squares)).mean()
        low, high = (middle, high) if left > kept else (low, middle)
    return float(np.exp((low + high) / 2))


def _centre(
    sums: Array, noise: float, kept: float, outcome_correlation: OutcomeCorrelation, present: Array
) -> tuple[Array, float, float]:
    """Return the mean outcomes, and the noise variances of their common part and of the rest.

    Both parts are shrunk by the factor of James and Stein to avoid mistaking noise for a centre.
    """
    means = outcome_correlation.decode(sums[:, None])[:, 0] / (kept * present)
    variance = (noise / kept) ** 2
    shared = variance * outcome_correlation.common
    own = max(variance * float(np.mean(outcome_correlation.roots)) - shared, 0.0)
    common = float(means.mean())
    around = means - common
    all_kept = max(0.0, 1 - shared / max(common**2, _TINY))
    each_kept = max(0.0, 1 - own / max(float(np.mean(around**2)), _TINY))
    return all_kept * common + each_kept * around, all_kept * shared, each_kept * own
