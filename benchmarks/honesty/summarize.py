"""`summarize`: distances of all sites from one, their intervals and upper limits.

Among "sites" all differ from it, so nothing can be false.
"""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import scanners
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Table
from consortium.algorithms.findings import Finding
from consortium.algorithms.summarize.kernels.mean_embedding import (
    draw_frequencies,
    fourier_features,
)

ENTRIES, SCALE, SHIFT, WIDTH, FREQUENCIES = 3, 0.35, 0.5, 0.9, 50
ANALYSIS = {"target": "site1", "points": 1, "width": WIDTH, "frequencies": FREQUENCIES, "seed": 0}
MANY = 5_000


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate sites of which only the second is shifted."""
    shift = np.zeros((cell.sites, ENTRIES, 1))
    shift[1] = SHIFT if cell.effect else 0.0
    law = scanners(cell, ENTRIES, rng)
    tables, many = (
        [np.clip(SCALE * x + s, -1, 1) for x, s in zip(law.persons(sizes, rng), shift, strict=True)]
        for sizes in (cell.sizes, (MANY,) * cell.sites)
    )
    frequencies = draw_frequencies(ENTRIES, FREQUENCIES, WIDTH, np.random.default_rng(0))
    means = [fourier_features(table, frequencies).mean(axis=1) for table in many]
    apart = [1] if cell.effect else range(1, cell.sites) if cell.data == "sites" else []
    truth = [
        float(np.sum((means[s] - means[0]) ** 2)) if s in apart else 0.0
        for s in range(1, cell.sites)
    ]
    told = _rows(tables, cell.epsilon, rng)
    covered = tuple(
        d.low <= true <= d.high if d.reported else true <= most
        for (d, most), true in zip(told, truth, strict=True)
    )
    wrong = any(d.reported and true == 0 for (d, _), true in zip(told, truth, strict=True))
    if not cell.effect and cell.data != "sites":
        return Outcome(covered, wrong, 0, 0, 0)
    pooled = _rows(tables, None, rng)
    right, without = (
        sum(d.reported for (d, _), true in zip(x, truth, strict=True) if true)
        for x in (told, pooled)
    )
    return Outcome(covered, wrong, right, len(apart), without)


def _rows(
    tables: list[Array], epsilon: float | None, rng: np.random.Generator
) -> list[tuple[Finding, float]]:
    sites = [TableSite(table, (("x", ENTRIES),)) for table in tables]
    table: Table = answer("summarize", ANALYSIS, sites, epsilon, rng).tables["sites"]
    found = []
    for row in table.rows:
        distance, most = row[2], row[3]
        assert isinstance(distance, Finding)
        assert isinstance(most, float)
        found.append((distance, most))
    return found
