"""Numbers of participants in a group at each site, estimated from noisy counts."""

import numpy as np

from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor
from consortium.base.array import Array

COUNT_NOISE = 2 / np.sqrt(3.0)
"""Noise in the number of participants of a group, relative to that in the sum of their halves ±1/2.
The number is the sum of the halves and half the participants, which are counted with √(3/4)
each."""
_WIDTH = 0.25
"""Prior standard deviation of the fraction of a site's participants in a group."""


def count_variances(persons: Array, noise: float) -> Array:
    """Return the variance of each site's number of participants in a group, given its noisy count.

    Parameters
    ----------
    persons : array, length S
        n_s; 0 for a site that is missing, whose number is 0.
    noise : float
        Standard deviation of the noise in a count.
    """
    usual = np.square(_WIDTH * np.asarray(persons, dtype=np.float64))
    return np.asarray(shrinkage_factor(usual, noise**2) * noise**2)


def estimate_proportions(
    counts: Array, persons: Array, expected: Array, noise: float
) -> tuple[Array, Array]:
    """Return proportions from counts that are shrunk to expected ones in proportion to noise.

    Parameters
    ----------
    counts : array, length S
        Noisy counts; ignored for sites that did not count.
    persons : array, length S
        n_s of the sites that counted, 0 for the others.
    expected : array, length S
        Expected proportions.

    Returns
    -------
    proportions : array, length S
        q̂_s, within 0 and 1.
    variances : array, length S
        Variance of a site's number of participants in the group around n_s q̂_s.

    Examples
    --------
    The count of a large site has a large weight, and that of a small one a small weight:

    >>> found, doubts = estimate_proportions(
    ...     np.array([300.0, 12.0]), np.array([1000, 10]), np.array([0.5, 0.5]), 10.0
    ... )
    >>> found.round(2).tolist(), np.sqrt(doubts).round(1).tolist()
    ([0.3, 0.54], [10.0, 2.4])
    """
    variances = count_variances(persons, noise)
    usual = np.square(_WIDTH * np.asarray(persons, dtype=np.float64))
    present = usual > 0
    trust = np.where(present, shrinkage_factor(usual, noise**2), 0.0)
    raw = np.where(present, counts / np.where(present, persons, 1.0), 0.0)
    return np.clip(trust * raw + (1 - trust) * expected, 0.0, 1.0), variances
