"""`average`: intervals of the mean's entries.

The truth is the mean of clipped participants of the same sites. Levels of sites are part of it, so
that among "sites" a value is false only if its sign is.
"""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import scanners
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding
from consortium.privacy.clipping import clip_columns

ENTRIES, TRUE, EFFECT = 30, 3, 0.5
SCALE, BOUND = 0.1, 0.6  # the bound is a little above the usual norm
MANY = 40  # times as many participants, for the truth


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants whose first entries have a mean."""
    mean = np.zeros((ENTRIES, 1))
    mean[:TRUE] = EFFECT * SCALE if cell.effect else 0.0
    law = scanners(cell, ENTRIES, rng)
    tables = [SCALE * table + mean for table in law.persons(cell.sizes, rng)]
    many = [
        SCALE * table + mean for table in law.persons([MANY * size for size in cell.sizes], rng)
    ]
    means = [clip_columns(table, BOUND).mean(axis=1) for table in many]
    truth = np.average(means, axis=0, weights=cell.sizes)
    told = _told(tables, cell.epsilon, rng)
    covered = tuple(each.low <= true <= each.high for each, true in zip(told, truth, strict=True))
    effects = mean[:, 0] if cell.data != "sites" else truth
    wrong = [
        each.state == "found" and each.value * effect <= 0
        for each, effect in zip(told, effects, strict=True)
    ]
    if not cell.effect:
        return Outcome(covered, any(wrong), 0, 0, 0)
    pooled = _told(tables, None, rng)
    right, without = (sum(each.state == "found" for each in x[:TRUE]) for x in (told, pooled))
    return Outcome(covered, any(wrong), right, TRUE, without)


def _told(tables: list[Array], epsilon: float | None, rng: np.random.Generator) -> list[Finding]:
    sites = [TableSite(table, (("x", ENTRIES),)) for table in tables]
    result: Result = answer("average", {"bound": BOUND}, sites, epsilon, rng)
    return [
        cell for row in result.tables["means"].rows for cell in row if isinstance(cell, Finding)
    ]
