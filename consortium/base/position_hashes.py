"""Hashes of positions, for sites in memory whose participants have no labels."""

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)


def hashes_of_positions(count: int) -> NDArray[np.uint64]:
    """Return a number for each of the first positions, the same however many there are.

    Numbers are mixed as by SplitMix64 (Steele, Lea and Flood 2014).

    Examples
    --------
    >>> hashes_of_positions(2).tolist()
    [16294208416658607535, 7960286522194355700]
    >>> bool((hashes_of_positions(5)[:2] == hashes_of_positions(2)).all())
    True
    """
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in _MULTIPLIERS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed
