"""`describe`: intervals of means, standard deviations and medians; nothing is announced.

The truth is that of many more participants of the same sites.
"""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import scanners
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.findings import Finding

ENTRIES, SCALE, SHIFT = 4, 0.3, 0.2
MANY = 100
"""Times as many participants, for the truth."""
STATISTICS = "mean", "standard deviation", "median"


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants whose measures are shifted by the effect."""
    shift = SHIFT if cell.effect else 0.0
    law = scanners(cell, ENTRIES, rng)
    draws = (law.persons([times * size for size in cell.sizes], rng) for times in (1, MANY))
    tables, many = ([np.clip(SCALE * x + shift, -1, 1) for x in each] for each in draws)
    sites = [TableSite(table, (("x", ENTRIES),)) for table in tables]
    analysis = {"quantiles": [0.5], "anyway": True}
    table = answer("describe", analysis, sites, cell.epsilon, rng).tables["table1"]
    values = np.concatenate(many, axis=1)
    truth = dict(
        zip(STATISTICS, (values.mean(1), values.std(1), np.median(values, axis=1)), strict=True)
    )
    inside = []
    for row in table.rows:
        found = row[-1]
        assert isinstance(found, Finding)
        true = float(truth[str(row[2])][int(str(row[1])[1:]) - 1])
        if found.reported:
            inside.append(found.low <= true <= found.high)
    return Outcome(tuple(map(bool, inside)), False, 0, 0, 0)
