"""Expected size of the bias of a mean of participants who are clipped by their joint norm.

Participants' values are in learned units and clipped to norm √d + λ for d numbers. The mean is
divided by the mean clipping factor, so only columns that are skewed, or whose centre is off, keep a
bias. With c the clipping factors, the bias grows with the root of the mean of 1 - c and with the
skewness of the column over √d, and that of a variance with the kurtosis over √d. With fewer than
eight numbers it grows faster as d falls, and few bins far from zero are clear of noise, which makes
estimates of skewness and kurtosis too small. The constants are fitted to simulated columns
(`python -m benchmarks.describe bias`) and to real ages (`python -m benchmarks.first_paper`).
"""

import math

_LOST = 0.06
_FALL = 0.9
_OFF_CENTRE = 0.1
_SKEWED = 0.14
_HEAVY = 0.25
_MANY = 8
"""Number of columns below which biases grow faster than with 1/√d."""
_USUAL_SKEWNESS = 2.0
_WEIGHT = 1.5
_MARGINS = [k / 10 for k in range(3, 81)]


def usual_lost(margin: float) -> float:
    """Return the usual mean of 1 - c, with c the clipping factors, for a margin λ."""
    return _LOST * math.exp(-margin / _FALL)


def mean_bias(lost: float, numbers: int, skewness: float) -> float:
    """Return the standard deviation of a mean's bias, in deviations of the column.

    Parameters
    ----------
    lost : float
        Mean of 1 - c.
    numbers : int
        d.
    """
    return math.sqrt(lost) * (_OFF_CENTRE + _SKEWED * abs(skewness) * _by_number(numbers))


def square_bias(lost: float, numbers: int, kurtosis: float) -> float:
    """Return the standard deviation of a variance's bias, relative to the variance."""
    return math.sqrt(lost) * _HEAVY * kurtosis * _by_number(numbers)


def _by_number(numbers: int) -> float:
    """Return 1/√d, or more if there are few numbers."""
    return max(1 / math.sqrt(numbers), math.sqrt(_MANY) / numbers)


def choose_margin(numbers: int, noise: float) -> float:
    """Return the margin λ of clipping with the smallest error of a mean.

    Parameters
    ----------
    numbers : int
        d.
    noise : float
        Noise of a mean for a clipping norm of 1.
    """

    def error(margin: float) -> float:
        bias = _WEIGHT * mean_bias(usual_lost(margin), numbers, _USUAL_SKEWNESS)
        return math.hypot(noise * (math.sqrt(numbers) + margin), bias)

    return min(_MARGINS, key=error)
