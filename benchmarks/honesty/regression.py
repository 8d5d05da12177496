"""`regression`: linear and logistic, of eight entries of which two explain the target."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome, outcome_of
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding

ENTRIES, SPREAD, BOUND = 8, 0.3, 1.2
EFFECTS = {"linear": 0.5, "logistic": 3.0}
VIEWS = (("x", ENTRIES), ("y", 1))


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Run a linear or, one time in two, a logistic study."""
    return study(cell, rng, "logistic" if rng.integers(2) else "linear")


def study(cell: Cell, rng: np.random.Generator, model: str, **analysis: object) -> Outcome:
    """Run a study with and without noise."""
    truth = np.zeros(ENTRIES)
    if cell.effect:
        truth[:2] = EFFECTS[model], -EFFECTS[model]
    sites = [
        TableSite(table(own, truth, model, rng), VIEWS)
        for own in background(cell, ENTRIES + 1, rng)
    ]
    asked = {"target": "y", "bound": BOUND, "model": model, **analysis}
    private = findings(answer("regression", asked, sites, cell.epsilon, rng))
    pooled = findings(answer("regression", asked, sites, None, rng))
    return outcome_of(private, pooled, truth)


def findings(result: Result) -> list[Finding]:
    """Return the coefficients of a result."""
    found = [row[-1] for row in result.tables["coefficients"].rows]
    return [each for each in found if isinstance(each, Finding)]


def table(own: Array, truth: Array, model: str, rng: np.random.Generator) -> Array:
    """Return participants of one site: entries between -1 and 1, and the target after them."""
    x = np.clip(SPREAD * own[:-1], -1.0, 1.0)
    if model == "linear":
        y = np.clip(truth @ x + SPREAD * own[-1], -1.0, 1.0)
    else:  # a site's own background varies the number of ill participants
        chance = 1.0 / (1.0 + np.exp(-(truth @ x + own[-1].mean())))
        y = np.where(rng.random(x.shape[1]) < chance, 1.0, -1.0)
    return np.vstack([x, y[None]]).astype(np.float32)
