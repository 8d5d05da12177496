"""Bins of a column between public limits."""

import numpy as np
from numpy.typing import NDArray

from consortium.base.array import Array

_ROUNDING = 2.0**-25
"""Twice the largest rounding error of float32 from -1 to 1, as a fraction of that interval."""


def bins_of(entries: Array, edges: Array) -> NDArray[np.int64]:
    """Return the bin of each entry, counted from 0.

    A bin contains its lower edge, and the last bin also its upper one. A site stores entries as
    float32, so a value at an edge may come back slightly below it. Entries that float32 cannot
    distinguish from an edge count as on the edge.

    Parameters
    ----------
    entries : array
        Between -1 and 1, which mean the first and the last edge.
    edges : array, length K + 1
        In the column's own unit.
    """
    low = float(edges[0])
    high = float(edges[-1])
    values = low + (entries + 1.0) / 2.0 * (high - low)
    places = np.searchsorted(edges, values + _ROUNDING * (high - low), side="right") - 1
    return np.clip(places, 0, len(edges) - 2).astype(np.int64)


def reaches_end(entries: Array) -> NDArray[np.bool_]:
    """Return whether each entry is at the upper limit or beyond it."""
    return np.asarray(entries >= 1.0 - 2 * _ROUNDING)
