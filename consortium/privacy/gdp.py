"""Gaussian differential privacy: composition, conversion and their inverses, exact.

A release with sensitivity Δ and Gaussian noise of standard deviation τ is μ-GDP
with μ = Δ/τ. Source: Dong, Roth and Su (2022), Corollary 1 and Corollary 2;
Balle and Wang (2018), Theorem 8. A budget is checked before it is spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from scipy.optimize import brentq
from scipy.special import log_ndtr

from consortium.errors import BudgetError, PrivacyError

FALSE_ALARMS = 0.05
"""Rate of false alarms at which a test's power is reported, as is usual in medicine."""
ADDS_UP = (
    "The squares of μ add up, not the ε. So several studies cost less than the sum of their ε."
)
"""Why no ε in a ledger, a report or a page is the sum or the difference of others; for people."""
TWO_READERS = (
    "A site's ledger charges the ε against the coalition. The one against outsiders is smaller "
    "or equal: all sites' noise hides a participant from them, while colluding sites can subtract "
    "their own noise."
)
"""Why a ledger and a report show two ε of one study; for people."""
_MOST_MU = 1e4
_SLACK = 1e-9  # relative; covers the rounding of a sum of squares


def compose(losses: Iterable[float]) -> float:
    """Return μ of the adaptive composition of Gaussian releases: the root of the sum of squares."""
    return math.sqrt(math.fsum(mu * mu for mu in losses))


def delta_of(mu: float, epsilon: float) -> float:
    """Return the smallest δ for which a μ-GDP mechanism is (ε, δ)-DP.

    Parameters
    ----------
    mu : float
        μ >= 0; infinity means no privacy.
    epsilon : float
        ε >= 0.
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    if math.isinf(first):
        return 0.0
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return -math.exp(first) * math.expm1(min(second - first, 0.0))


def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest ε >= 0 for which a μ-GDP mechanism is (ε, δ)-DP, or infinity.

    Raises PrivacyError if δ is not between 0 and 1 or μ is negative.
    """
    _check(delta)
    if mu < 0 or math.isnan(mu):
        raise PrivacyError(f"A privacy loss μ must be 0 or more, got {mu}.")
    if mu > _MOST_MU:
        return math.inf
    if delta_of(mu, 0.0) <= delta:
        return 0.0
    highest = mu * mu / 2 + 40.0 * mu + 1.0
    return float(brentq(lambda e: delta_of(mu, e) - delta, 0.0, highest, xtol=1e-12, rtol=1e-14))


@lru_cache(maxsize=256)  # a site asks for its limits in every round
def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest μ up to 10⁴ whose mechanism is (ε, δ)-DP: the inverse of `epsilon_of`.

    Raises PrivacyError if ε is negative or not finite, or δ is not between 0 and 1.
    """
    _check(delta)
    if not math.isfinite(epsilon) or epsilon < 0:
        raise PrivacyError(f"ε must be a finite number of at least 0, got {epsilon}. Correct it.")
    if delta_of(_MOST_MU, epsilon) <= delta:
        return _MOST_MU
    root = brentq(lambda m: delta_of(m, epsilon) - delta, 0.0, _MOST_MU, xtol=1e-13, rtol=1e-14)
    return float(root)


def detection_power(mu: float, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the power of the best test that distinguishes two neighbouring data sets.

    Parameters
    ----------
    mu : float
        μ >= 0; infinity is allowed.
    false_alarms : float
        Rate of false alarms, between 0 and 1.

    Returns
    -------
    float
        Φ(Φ⁻¹(false_alarms) + μ), from false_alarms (pure guessing) to 1.
    """
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(false_alarms) + mu)


def best_guess(mu: float) -> float:
    """Return the success rate of the best guess between two equally likely data sets: Φ(μ/2)."""
    return NormalDist().cdf(mu / 2)


def _check(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise PrivacyError(f"δ must be between 0 and 1, got {delta}. Correct it.")


@dataclass(frozen=True)
class Budget:
    """Privacy losses so far and the most they may come to, as squares of μ."""

    limit: float
    """μ that the whole study may cost."""
    spent: float = 0.0
    """Sum of the squared μ of all releases so far."""

    @property
    def mu(self) -> float:
        """μ of everything so far."""
        return math.sqrt(self.spent)

    def charge(self, mu: float, what: str) -> Budget:
        """Return the budget after one more release.

        Raises BudgetError if the release would break the promise; nothing is charged.
        """
        spent = self.spent + mu * mu
        if not spent <= self.limit**2 * (1 + _SLACK):
            raise BudgetError(
                f"{what} would increase the loss to μ = {math.sqrt(spent):.4g}, above the promised "
                f"{self.limit:.4g}. Request fewer rounds, or raise epsilon."
            )
        return Budget(self.limit, spent)


def person_loss(mu: float, volumes: int) -> float:
    """Return μ of a participant who contributes ``volumes`` timepoints of μ each: T·μ."""
    return mu * volumes
