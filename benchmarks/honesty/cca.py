"""`cca`: two views of eight and five entries, with one linked direction in each."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome, outcome_of
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding

FIRST, SECOND, SPREAD, LINK = 8, 5, 0.25, 0.6
VIEWS = (("x", FIRST), ("y", SECOND))


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Look for two pairs with and without noise."""
    return study(cell, rng)


def study(cell: Cell, rng: np.random.Generator, **analysis: object) -> Outcome:
    """Run a study of any parameters."""
    link = LINK if cell.effect else 0.0
    sites = [TableSite(table(own, link), VIEWS) for own in background(cell, FIRST + SECOND, rng)]
    asked = {"pairs": 2, "bounds": {"x": 1.0, "y": 1.0}, **analysis}
    private = findings(answer("cca", asked, sites, cell.epsilon, rng))
    if not cell.effect:  # then nothing is true that could be found without noise
        return outcome_of(private, (Finding(),) * 2, (0.0, 0.0))
    return outcome_of(private, findings(answer("cca", asked, sites, None, rng)), (link, 0.0))


def findings(result: Result) -> list[Finding]:
    """Return the pairs of a result."""
    return [row[1] for row in result.tables["pairs"].rows if isinstance(row[1], Finding)]


def table(own: Array, link: float) -> Array:
    """Return participants of one site: the first entries of both views have the link."""
    values = own.copy()
    values[FIRST] = link * own[0] + np.sqrt(1.0 - link**2) * own[FIRST]
    return np.clip(SPREAD * values, -1.0, 1.0).astype(np.float32)
