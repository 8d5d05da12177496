"""`tensor`: whether participants who are all of one kind are taken for several."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array

ENTRIES, KINDS, SPREAD, BOUND = 6, 3, 0.15, 1.5
ANALYSIS = {"components": KINDS, "bound": BOUND}


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants of one kind, or of three kinds whose centres are orthogonal."""
    centres = np.linalg.qr(rng.standard_normal((ENTRIES, KINDS)))[0]
    tables = []
    for table in background(cell, ENTRIES, rng):
        kinds = rng.choice(KINDS, size=table.shape[1], p=(0.5, 0.3, 0.2))
        middle = centres[:, kinds] if cell.effect else centres.mean(axis=1, keepdims=True)
        tables.append(middle + SPREAD * table)
    found = _found(tables, cell.epsilon, rng)
    if not cell.effect:
        return Outcome((), found > 0, 0, 0, 0)
    return Outcome((), False, found, KINDS, _found(tables, None, rng))


def _found(tables: list[Array], epsilon: float | None, rng: np.random.Generator) -> int:
    sites = [TableSite(table, (("x", ENTRIES),)) for table in tables]
    return int(answer("tensor", ANALYSIS, sites, epsilon, rng).numbers["found"])
