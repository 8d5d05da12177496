"""Made-up persons with and without differences between their sites."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.cells import Cell
from consortium.algorithms.base import Array

OFFSET, SCALES, TAIL = 0.7, (0.7, 1.4), 5
"""Of "sites": deviation of the sites' levels in persons' deviations, range of their scales, and
degrees of freedom of the persons' own."""


def background(cell: Cell, entries: int, rng: np.random.Generator) -> list[Array]:
    """Draw what persons are but for the effect: of each site an array, entries x persons.

    Standard normal and independent; of "sites" with levels, scales and heavy tails, all entries
    of a site shifted by levels of their own.
    """
    if cell.data != "sites":
        return [rng.standard_normal((entries, size)) for size in cell.sizes]
    tail = np.sqrt((TAIL - 2) / TAIL)
    return [
        OFFSET * rng.standard_normal((entries, 1))
        + rng.uniform(*SCALES) * tail * rng.standard_t(TAIL, (entries, size))
        for size in cell.sizes
    ]
