"""Estimate the loss of each entry when a vector of squares is clipped to one norm."""

import numpy as np

from consortium.base.array import Array

_NODES = 24  # nodes of the normal quadrature
_STEPS = 8
_FOURTH = 3.0  # kurtosis of the normal distribution
_MOST_REMOVED = 0.6
"""Largest estimate: the size of an entry that was clipped in most pairs cannot be inferred."""


def clipped_part(squares: Array, total: float, bound: float) -> Array:
    """Return the fraction of each mean square that clipping to a common norm removed.

    An entry that varies much more than the others loses more than they do. Assumptions: entries are
    normal, and the others contribute their mean to the norm.

    Parameters
    ----------
    squares : array, length V
        Mean squares after clipping.
    total : float
        Sum of the squares of all mean squares that are clipped together.
    bound : float
        Largest norm of a vector of squares, in the unit of ``squares``; infinite without a clip.
    """
    if not np.isfinite(bound):
        return np.zeros(len(squares))
    others = _FOURTH * np.maximum(total - np.square(squares), 0.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    normal = tuple(zip(np.square(nodes), weights / weights.sum(), strict=True))
    lost = np.zeros(len(squares))
    for _ in range(_STEPS):
        whole = squares / (1.0 - lost)
        kept = np.zeros(len(squares))
        for square, weight in normal:
            norm = np.sqrt(np.square(whole * square) + others)
            kept += weight * square * (bound / np.maximum(norm, bound))
        lost = np.clip(1.0 - kept, 0.0, _MOST_REMOVED)
    return lost
