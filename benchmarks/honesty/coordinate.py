"""`coordinate`: means, and least squares in which one view is less informative."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome, outcome_of
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding

GENES, SCAN, SPREAD, EFFECT = 2, 4, 0.4, 0.5
VIEWS = (("genes", GENES), ("scan", SCAN), ("y", 1))


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Ask for means or, one time in two, for coefficients."""
    return study(cell, rng, squares=bool(rng.integers(2)))


def study(cell: Cell, rng: np.random.Generator, *, squares: bool) -> Outcome:
    """Run a study with and without noise."""
    weights = np.zeros(GENES + SCAN)
    if cell.effect:
        weights[[0, GENES]] = EFFECT, -EFFECT
    asked: dict[str, object] = {"levels": {"genes": 1.0}}
    if squares:
        asked["target"] = "y"
    made = background(cell, GENES + SCAN + 1, rng)
    if not squares and cell.data == "sites":  # whose levels are those that they have in common
        made = [own - own.mean(axis=1, keepdims=True) for own in made]
    truth = weights if squares else np.append(SPREAD * weights, 0.0)
    sites = [TableSite(_table(own, weights, squares=squares), VIEWS) for own in made]
    private = findings(answer("coordinate", asked, sites, cell.epsilon, rng), squares=squares)
    pooled = findings(answer("coordinate", asked, sites, None, rng), squares=squares)
    return outcome_of(private, pooled, truth)


def findings(result: Result, *, squares: bool) -> list[Finding]:
    """Return the coefficients or means of a result."""
    rows = result.tables["coefficients" if squares else "means"].rows
    return [row[-1] for row in rows if isinstance(row[-1], Finding)]


def _table(own: Array, weights: Array, *, squares: bool) -> Array:
    """Return one site's participants, with an explained target unless ``weights`` are given."""
    x, rest = SPREAD * own[:-1], SPREAD * own[-1:]
    if squares:
        x = np.clip(x, -1.0, 1.0)
        values = np.vstack([x, weights @ x + rest])
    else:
        values = np.vstack([x + SPREAD * weights[:, None], rest])
    return np.clip(values, -1.0, 1.0).astype(np.float32)
