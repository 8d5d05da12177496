"""`network`: one hidden layer; the truth of its accuracy is that on many new participants."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding
from consortium.algorithms.network.kernels.classifier import predict

ENTRIES, SPREAD, EFFECT, NEW = 4, 0.4, 4.0, 20
VIEWS = (("x", ENTRIES), ("y", 1))
ASKED = {"target": "y", "hidden": [4], "rounds": 15}


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Train with and without noise, and try the network on new participants of the same sites."""
    return study(cell, rng)


def study(cell: Cell, rng: np.random.Generator, **analysis: object) -> Outcome:
    """Run a study of any parameters. Among "sites" the share of either class differs by site."""
    weight, asked = EFFECT if cell.effect else 0.0, {**ASKED, **analysis}
    made = background(cell, ENTRIES, rng)
    levels = rng.standard_normal(len(made)) if cell.data == "sites" else np.zeros(len(made))
    sites = [TableSite(_table(x, weight, b, rng), VIEWS) for x, b in zip(made, levels, strict=True)]
    private = answer("network", asked, sites, cell.epsilon, rng)
    told = _told(private)
    fresh = [
        _table(np.repeat(x, NEW, axis=1), weight, b, rng) for x, b in zip(made, levels, strict=True)
    ]
    truth = accuracy(private, fresh)
    found = told.state == "found"
    covered = (bool(told.low <= truth <= told.high),) if told.bounded else ()
    if not cell.effect:
        return Outcome(covered, found and truth <= _largest(fresh), 0, 0, 0)
    better = _told(answer("network", asked, sites, None, rng))
    return Outcome(covered, False, int(found), 1, int(better.state == "found"))


def _told(result: Result) -> Finding:
    found = result.tables["accuracy"].rows[0][1]
    assert isinstance(found, Finding)
    return found


def accuracy(result: Result, tables: list[Array]) -> float:
    """Return the fraction of participants, each with their site, that are classified correctly."""
    sizes = [int(size) for size in result.arrays["units"]]
    biases = result.arrays.get("site_biases")
    right = []
    for site, table in enumerate(tables):
        parameters = result.arrays["parameters"].copy()
        if biases is not None:
            parameters[: sizes[1] * (1 + sizes[0]) : 1 + sizes[0]] = biases[:, site]
        guessed = predict(parameters, sizes, table[:-1].astype(np.float64))[0] > 0.5
        right.append(guessed == (table[-1] > 0))
    return float(np.mean(np.concatenate(right)))


def _largest(tables: list[Array]) -> float:
    """Share of each site's larger class."""
    larger = [max(np.sum(table[-1] > 0), np.sum(table[-1] <= 0)) for table in tables]
    return float(sum(larger) / sum(table.shape[1] for table in tables))


def _table(own: Array, weight: float, level: float, rng: np.random.Generator) -> Array:
    """Return participants of one site, classified by their first entry."""
    x = np.clip(SPREAD * own, -1.0, 1.0)
    chance = 1.0 / (1.0 + np.exp(-(weight * x[0] + level)))
    y = np.where(rng.random(x.shape[1]) < chance, 1.0, -1.0)
    return np.vstack([x, y[None]]).astype(np.float32)
