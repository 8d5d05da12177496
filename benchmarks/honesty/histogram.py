"""`histogram`: intervals of the counts of the study's own participants; nothing is announced."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite, answer

BINS, SCALE, SHIFT = 8, 0.4, 0.3


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants of one measure, shifted by the effect."""
    shift = SHIFT if cell.effect else 0.0
    tables = [np.clip(SCALE * x + shift, -1, 1) for x in background(cell, 1, rng)]
    sites = [TableSite(table, (("x", 1),)) for table in tables]
    analysis = {"view": "x", "bins": BINS}
    arrays = answer("histogram", analysis, sites, cell.epsilon, rng).arrays
    values = np.concatenate([table[0] for table in tables])
    truth = np.histogram(values, np.linspace(-1, 1, BINS + 1))[0] / len(values)
    inside = (arrays["low"] <= truth) & (truth <= arrays["high"])
    return Outcome(tuple(map(bool, inside)), False, 0, 0, 0)
