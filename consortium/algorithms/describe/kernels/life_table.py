"""Survival from noisy counts by time and event: the actuarial estimate of Kaplan and Meier.

Participants who leave in a bin of time are at risk for half of it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from consortium.base.array import Array

_LEAST_AT_RISK = 3.0
"""Standard deviations of its noise that the number at risk must exceed."""
_LARGEST_HAZARD = 0.99
_LARGEST_ERROR = 0.5


@dataclass(frozen=True)
class Survival:
    """Shares without an event at the ends of bins of time, length K; NaN where withheld."""

    shares: Array
    low: Array
    high: Array


def estimate_survival(
    events: Array, lost: Array, beyond: float, deviation: float, critical: float
) -> Survival:
    """Return the curve with pointwise intervals for noise and chance.

    With d events, c losses and r at risk in a bin, the hazard is h = d/(r - c/2), and log S is the
    sum of log(1 - h). Its variance is Greenwood's sum of h/((r - c/2)(1 - h)) plus the noise, which
    is carried through by derivatives.

    Parameters
    ----------
    events, lost : array, length K
        Noisy numbers of participants with an event, and whose follow-up ends, in each bin.
    beyond : float
        Noisy number of participants who are followed to the end.
    deviation : float
        Standard deviation of the noise in each number.
    critical : float
        Half the width of an interval in standard deviations.
    """
    bins = len(events)
    at_risk = np.cumsum((events + lost)[::-1])[::-1] + beyond
    exposed = at_risk - lost / 2
    noise = deviation * np.sqrt(2.0 * (bins - np.arange(bins)) + 1.0)
    enough = np.logical_and.accumulate(exposed > np.maximum(_LEAST_AT_RISK * noise, 1.0))
    exposed = np.where(enough, exposed, 1.0)
    hazards = np.where(enough, np.minimum(events / exposed, _LARGEST_HAZARD), 0.0)
    logs = np.cumsum(np.log1p(-hazards))
    chance = np.cumsum(np.maximum(hazards, 0.0) / (exposed * (1 - hazards)))
    error = np.sqrt(chance + deviation**2 * _squared_slopes(hazards, exposed))
    kept = enough & (error < _LARGEST_ERROR)
    shares = np.full(bins, np.nan)
    if kept.any():
        falling = isotonic_regression(np.exp(logs[kept]), increasing=False).x
        shares[kept] = np.clip(falling, 0.0, 1.0)
    reach = critical * error
    found = np.exp(logs)
    low = np.where(kept, np.minimum(found * np.exp(-reach), shares), np.nan)
    high = np.where(kept, np.clip(found * np.exp(reach), shares, 1.0), np.nan)
    return Survival(shares, np.clip(low, 0.0, 1.0), high)


def _squared_slopes(hazards: Array, exposed: Array) -> Array:
    """Return Σ (∂ log S/∂ count)² over all counts, at each end of a bin."""
    bins = len(hazards)
    direct = 1.0 / (exposed * (1 - hazards))
    through = hazards * direct
    sums = np.cumsum(through)
    found = np.empty(bins)
    for last in range(bins):
        shared = np.where(np.arange(bins) <= last, sums, sums[last])
        inside = np.arange(bins) <= last
        of_events = shared - np.where(inside, direct, 0.0)
        of_lost = shared - np.where(inside, through / 2, 0.0)
        found[last] = np.sum(of_events**2) + np.sum(of_lost**2) + sums[last] ** 2
    return found
