"""Shares, which are not negative and sum to one, and numbers that are not below a minimum."""

import numpy as np

from consortium.base.array import Array


def project_to_simplex(vector: Array) -> Array:
    """Return the nearest vector whose entries are not negative and sum to one."""
    falling = np.sort(vector)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(vector) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    nearest: Array = np.maximum(vector - excess[last], 0.0)
    return nearest


def project_above(numbers: Array, least: float) -> Array:
    """Return the nearest numbers that are at least ``least`` and have the same sum.

    All are ``least`` if the sum is too small.

    Examples
    --------
    >>> project_above(np.array([-2.0, 7.0]), 1.0)
    array([1., 4.])
    """
    raw = numbers - least
    whole = float(raw.sum())
    found = np.full(len(raw), least)
    if whole > 0:
        found += whole * project_to_simplex(raw / whole)
    return found
