"""Quantiles of a noisy histogram, with intervals."""

import numpy as np

from consortium.base.array import Array
from consortium.kernels.simplex import project_to_simplex


def estimate_quantiles(
    cells: Array, quantiles: Array, edges: Array, deviation: float, critical: float
) -> Array:
    """Return quantiles of a noisy histogram with intervals for noise and chance.

    A bin may contain the quantile q unless one of its edges rules it out. With b participants below
    an edge and a above it, T = (1 - q) b - q a has the expectation 0 if the quantile is at that
    edge, whatever the number of participants is. The variance of T is σ² ((1 - q)² k + q² (K - k))
    for k of K bins below the edge, plus q (1 - q) for each participant. Each edge rules the true
    bin out in at most half of the allowed cases.

    Parameters
    ----------
    cells : array, length K
        Noisy numbers of participants.
    quantiles : array, length Q
    edges : array, length K + 1
    deviation : float
        σ, standard deviation of the noise in each cell.
    critical : float
        Half the width of an interval in standard deviations.

    Returns
    -------
    array, Q x 3
        Value, interpolated within its bin, and both ends of the interval, which are edges.
    """
    bins = len(cells)
    total = float(cells.sum())
    below = np.concatenate([[0.0], np.cumsum(cells)])
    steps = np.concatenate([[0.0], np.cumsum(cell_shares(cells))])
    ends = np.arange(bins + 1)
    found = np.empty((len(quantiles), 3))
    for row, quantile in enumerate(quantiles):
        apart = below - quantile * total
        noise = (1 - quantile) ** 2 * ends + quantile**2 * (bins - ends)
        chance = quantile * (1 - quantile) * max(total, 0.0)
        half = critical * np.sqrt(deviation**2 * noise + chance)
        value = float(np.interp(quantile, steps, edges))
        here = min(int(np.searchsorted(edges, value, side="right")) - 1, bins - 1)
        start = np.append(True, apart[1:-1] - half[1:-1] < 0)
        stop = np.append(apart[1:-1] + half[1:-1] >= 0, True)
        possible = start & stop
        possible[here] = True
        left = np.flatnonzero(possible)
        found[row] = value, edges[left[0]], edges[left[-1] + 1]
    return found


def cell_shares(cells: Array) -> Array:
    """Return shares of cells that are not negative and sum to one, from noisy numbers."""
    return project_to_simplex(cells / max(float(cells.sum()), 1.0))
