"""`pca`: reported variance shares of directions, and directions that are noise.

"sites": levels are subtracted from each participant's series, as every image study does; scales and
tails remain. The true share is that of the study's clipped participants along the released
directions.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import scanners
from benchmarks.honesty.running import answer
from consortium.algorithms.base import Array, Result
from consortium.simulation.array_data import ArrayData

FEATURES, VOLUMES, SIZE, TRUE = 30, 20, 6, 2
STRENGTH, BOUND = 2.5, 0.5  # a direction's deviation over the white part's
ALIKE = 0.7
ANALYSIS = {"components": SIZE, "bound": BOUND}


@dataclass(frozen=True, eq=False)
class _Made:
    """Participants, the directions that they share, and their mean moment as clipped."""

    sites: list[ArrayData]
    truth: Array
    whole: Array


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants of trace 1 whose time series share two directions."""
    made = _made(replace(cell, epsilon=0.0), int(rng.integers(2**62)))
    told = answer("pca", ANALYSIS, made.sites, cell.epsilon, rng)
    covered = tuple(
        bool(share.low <= vector @ made.whole @ vector / np.trace(made.whole) <= share.high)
        for share, vector in zip(told.shares, told.arrays["basis"].T, strict=True)
        if share.bounded
    )
    found = int(told.numbers["found"])
    if not cell.effect:
        return Outcome(covered, found > 0, 0, 0, 0)
    pooled = answer("pca", ANALYSIS, made.sites, None, rng)
    right, without = (_seen(each, made.truth) for each in (told, pooled))
    return Outcome(covered, found > TRUE, right, TRUE, without)


@lru_cache(maxsize=1)
def _made(cell: Cell, seed: int) -> _Made:
    rng = np.random.default_rng(seed)
    truth = np.linalg.qr(rng.standard_normal((FEATURES, TRUE)))[0]
    law = scanners(cell, FEATURES, rng)
    law = replace(law, levels=np.zeros_like(law.levels))
    sites = []
    for table in law.persons([size * VOLUMES for size in cell.sizes], rng):
        if cell.effect:
            table = table + STRENGTH * truth @ rng.standard_normal((TRUE, table.shape[1]))
        blocks = [block / np.sqrt(np.sum(block**2) / VOLUMES) for block in _split(table)]
        sites.append(ArrayData(blocks))
    whole = np.mean([scaled(block) for site in sites for block in site.blocks()], axis=0)
    return _Made(sites, truth, whole)


def _split(table: Array) -> list[Array]:
    return [table[:, k : k + VOLUMES] for k in range(0, table.shape[1], VOLUMES)]


def scaled(block: Array) -> Array:
    """Return a participant's clipped moment."""
    moment = block @ block.T / VOLUMES
    return np.asarray(moment * min(1.0, BOUND / float(np.linalg.norm(moment))))


def _seen(result: Result, truth: Array) -> int:
    """Return the found directions that are within the true ones."""
    found = result.arrays["basis"][:, : int(result.numbers["found"])]
    return min(int(np.sum(np.linalg.norm(truth.T @ found, axis=0) >= ALIKE)), TRUE)
