"""Variance of each entry among participants, from noisy means of entries and of their squares."""

import math

import numpy as np
from scipy.special import log_ndtr

from consortium.base.array import Array

_NORMAL = 1.4826
"""Standard deviation of a normal distribution divided by its median absolute deviation."""
_LARGEST_SHIFT = 1.0
"""Largest shift of an estimate by shrinkage, in standard deviations of its noise (Efron and Morris
1972)."""


def entry_variances(mean: Array, squares: Array, level: Array, bound: float) -> Array:
    """Return the variance of each entry among participants.

    Estimates are shrunk to their median, in proportion to the noise in their differences (James and
    Stein). No estimate is shifted by more than the noise's standard deviation, so an entry that
    varies much more than the others keeps its variance. The result is the expectation of a
    variance, which is not negative.

    Parameters
    ----------
    mean : array, length D
        Noisy means of the entries.
    squares : array, length D
        Noisy means of the entries' squares. Their noise is √2 ``bound`` times ``level``.
    level : array, length D
        Standard deviation of the noise in ``mean``.
    bound : float
        Largest norm of a participant's entries.
    """
    many = len(mean)
    own = math.sqrt(2.0) * bound * level  # noise of a mean square
    found = squares - np.square(mean) + level**2
    noise = own**2 + 4.0 * np.square(mean) * level**2
    centre = float(np.median(found))
    kept = 1.0
    if many > 3:
        apart = (_NORMAL * float(np.median(np.abs(found - centre)))) ** 2
        expected = float(noise.mean()) * (many - 3) / (many - 1)
        kept = max(1.0 - expected / apart, 0.0) if apart > 0 else 0.0
    most = _LARGEST_SHIFT * np.sqrt(noise)
    middle = found + np.clip((1.0 - kept) * (centre - found), -most, most)
    spread = np.sqrt(noise * (kept + (1.0 - kept) / many))
    return np.minimum(positive_mean(middle, spread), bound**2)


def positive_mean(values: Array, spread: Array) -> Array:
    """Return the expectation of normal numbers, given that they are not negative."""
    with np.errstate(all="ignore"):
        z = values / spread
        density = np.exp(-np.square(z) / 2 - log_ndtr(z)) / math.sqrt(2 * math.pi)
    return np.where(spread > 0, values + spread * density, np.maximum(values, 0.0))
