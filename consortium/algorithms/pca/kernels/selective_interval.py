"""Intervals for what is told only because it came out large."""

import math

from scipy.special import log_ndtr

_TAIL = 0.025
_REACH = 50.0  # deviations; an end further away is as good as none


def selective_interval(value: float, deviation: float, threshold: float) -> tuple[float, float]:
    """95 % interval for the mean of a normal number that is told if it passes a threshold.

    Far beyond the threshold this is the usual one. Near it a number is there because chance was
    kind, and the lower end lies far below: of those told, 95 % hold the truth.

    Parameters
    ----------
    value : float
        Beyond the threshold.

    Returns
    -------
    low, high : float
        Minus infinity for a low end that is out of sight.

    Notes
    -----
    For Z ~ N(θ, s²) given Z > t the chance of Z >= z, Φ((θ - z)/s) / Φ((θ - t)/s), grows with θ;
    the ends are where it is .025 and .975 (Lee, Sun, Sun & Taylor 2016, with one cut).
    """
    if deviation == 0.0:
        return value, value
    beyond = max(value - threshold, 0.0) / deviation

    def excess(theta: float, tail: float) -> float:
        return float(log_ndtr(theta) - log_ndtr(theta + beyond)) - math.log(tail)

    def end(tail: float) -> float:
        if excess(-_REACH, tail) >= 0.0:
            return -math.inf
        from scipy.optimize import brentq

        return value + deviation * float(brentq(excess, -_REACH, _REACH, args=(tail,)))

    if beyond == 0.0:
        return -math.inf, -math.inf
    return end(_TAIL), end(1.0 - _TAIL)
