"""How many of each site's persons are of a group, as far as noisy counts tell."""

import numpy as np

from consortium.base.array import Array
from consortium.kernels.shrinkage import shrinkage_factor

COUNT_NOISE = 2 / np.sqrt(3.0)
"""Noise in the number of participants of a group over that in their halves of ±1/2. The number is
the sum of the halves and of half the participants, which are counted with √(3/4) each."""
_WIDTH = 0.25
"""Of a site's part of persons in a group, around what is expected of it."""


def count_variances(persons: Array, noise: float) -> Array:
    """Variance of each site's number of persons in a group, given its count with noise.

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
    """Draw counts to what is expected, as far as they are noise.

    Parameters
    ----------
    counts : array, length S
        With noise; of no meaning where nobody was counted.
    persons : array, length S
        Of the sites that counted, 0 for the others.
    expected : array, length S
        Parts that are expected.

    Returns
    -------
    proportions : array, length S
        q̂_s, within 0 and 1.
    doubts : array, length S
        Variance of a site's number of persons in the group around n_s q̂_s.

    Examples
    --------
    A large site is believed, and of a small one the count tells little:

    >>> found, doubts = estimate_proportions(
    ...     np.array([300.0, 12.0]), np.array([1000, 10]), np.array([0.5, 0.5]), 10.0
    ... )
    >>> found.round(2).tolist(), np.sqrt(doubts).round(1).tolist()
    ([0.3, 0.54], [10.0, 2.4])
    """
    doubts = count_variances(persons, noise)
    usual = np.square(_WIDTH * np.asarray(persons, dtype=np.float64))
    there = usual > 0
    trust = np.where(there, shrinkage_factor(usual, noise**2), 0.0)
    raw = np.where(there, counts / np.where(there, persons, 1.0), 0.0)
    return np.clip(trust * raw + (1 - trust) * expected, 0.0, 1.0), doubts
