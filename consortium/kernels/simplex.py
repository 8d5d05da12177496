"""Shares: numbers that are not negative and sum to one."""

import numpy as np

from consortium.base.array import Array


def project_to_simplex(vector: Array) -> Array:
    """Return the nearest vector whose entries are not negative and sum to one."""
    falling = np.sort(vector)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(vector) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    nearest: Array = np.maximum(vector - excess[last], 0.0)
    return nearest
