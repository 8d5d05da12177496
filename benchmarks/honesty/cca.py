"""`cca`: two views of eight and five entries, of which one direction each is linked."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import background
from benchmarks.honesty.running import Persons, answer
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
    sites = [Persons(table(own, link), VIEWS) for own in background(cell, FIRST + SECOND, rng)]
    asked = {"pairs": 2, "bounds": {"x": 1.0, "y": 1.0}, **analysis}
    private = findings(answer("cca", asked, sites, cell.epsilon, rng))
    truth = (link, 0.0)
    both = list(zip(private, truth, strict=True))
    covered = tuple(bool(f.low <= r <= f.high) for f, r in both if f.bounded)
    wrong = any(f.state == "found" and not r for f, r in both)
    if not cell.effect:
        return Outcome(covered, wrong, 0, 0, 0)
    pooled = findings(answer("cca", asked, sites, None, rng))
    return Outcome(
        covered,
        wrong,
        sum(f.state == "found" for f, r in both if r),
        int(cell.effect),
        sum(f.state == "found" for f, r in zip(pooled, truth, strict=True) if r),
    )


def findings(result: Result) -> list[Finding]:
    """Pairs of a result."""
    return [row[1] for row in result.tables["pairs"].rows if isinstance(row[1], Finding)]


def table(own: Array, link: float) -> Array:
    """Participants of one site: the first entries of both views have the link."""
    values = own.copy()
    values[FIRST] = link * own[0] + np.sqrt(1.0 - link**2) * own[FIRST]
    return np.clip(SPREAD * values, -1.0, 1.0).astype(np.float32)
