"""Simulated participants with and without differences between their sites."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import stdtrit

from benchmarks.honesty.cells import Cell
from consortium.algorithms.base import Array

OFFSET, SCALES, TAIL = 0.7, (0.7, 1.4), 5
"""Of "sites": deviation of sites' levels in participants' deviations, range of their scales, and
degrees of freedom of the participants' own."""
_QUANTILES = 2**16


@dataclass(frozen=True)
class Scanners:
    """What participants are but for an effect, site by site.

    Standard normal and independent; of "sites" with heavy tails, a level of each site and entry and
    a scale of each site.
    """

    levels: Array
    """entries x sites."""
    scales: Array
    """Length sites."""
    heavy: bool

    def persons(self, sizes: Sequence[int], rng: np.random.Generator) -> list[Array]:
        """Return an array for each site, entries x participants."""
        entries = len(self.levels)
        found = []
        for site, size in enumerate(sizes):
            shape = (entries, size)
            draws = _heavy(shape, rng) if self.heavy else rng.standard_normal(shape)
            draws *= self.scales[site]
            draws += self.levels[:, [site]]
            found.append(draws)
        return found


@lru_cache(maxsize=1)
def _quantiles() -> Array:
    """Return equally likely values of t with 5 degrees of freedom, of variance one."""
    values = stdtrit(TAIL, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return np.asarray(values / values.std())


def _heavy(shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Draw heavy tails: one of many quantiles, which is four times as fast as t itself."""
    return _quantiles()[rng.integers(_QUANTILES, size=shape, dtype=np.uint16)]


def scanners(cell: Cell, entries: int, rng: np.random.Generator) -> Scanners:
    """Draw how sites differ, if they do."""
    if cell.data != "sites":
        return Scanners(np.zeros((entries, cell.sites)), np.ones(cell.sites), heavy=False)
    levels = OFFSET * rng.standard_normal((entries, cell.sites))
    return Scanners(levels, rng.uniform(*SCALES, cell.sites), heavy=True)


def background(cell: Cell, entries: int, rng: np.random.Generator) -> list[Array]:
    """Draw what participants are but for the effect: for each site entries x participants."""
    return scanners(cell, entries, rng).persons(cell.sizes, rng)
