"""`admm`: coefficients without effect that are announced; no interval is reported.

Among "sites" the share of either label differs by site, as measures do.
"""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array

ENTRIES, SCALE, EFFECT, PREVALENCE = 4, 0.45, 2.0, 0.7
VIEWS = (("x", ENTRIES), ("y", 1))
ANALYSIS = {"target": "y", "graph": "complete"}


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants whose label depends on the first entry."""
    tables = []
    for table in background(cell, ENTRIES, rng):
        level = PREVALENCE * rng.standard_normal() if cell.data == "sites" else 0.0
        odds = level + (EFFECT * table[0] if cell.effect else 0.0)
        label = np.where(rng.random(table.shape[1]) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
        tables.append(np.vstack([SCALE * table, label]))
    told = _found(tables, cell.epsilon, rng)
    if not cell.effect:
        return Outcome((), bool(told.any()), 0, 0, 0)
    pooled = _found(tables, None, rng)
    return Outcome((), bool(told[1:].any()), int(told[0]), 1, int(pooled[0]))


def _found(tables: list[Array], epsilon: float | None, rng: np.random.Generator) -> Array:
    sites = [TableSite(table, VIEWS) for table in tables]
    return answer("admm", ANALYSIS, sites, epsilon, rng).arrays["found"][:ENTRIES, 0]
