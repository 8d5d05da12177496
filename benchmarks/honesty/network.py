"""`network`: one hidden layer; the truth of its accuracy is that on many new persons."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.people import background
from benchmarks.honesty.running import Persons, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding
from consortium.kernels.classifier import predict

ENTRIES, SPREAD, EFFECT, NEW = 4, 0.4, 4.0, 20
VIEWS = (("x", ENTRIES), ("y", 1))
ASKED = {"target": "y", "hidden": [4], "rounds": 15}


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Train with and without noise, and try the network on new persons of the same sites."""
    weight = EFFECT if cell.effect else 0.0
    made = background(cell, ENTRIES, rng)
    levels = rng.standard_normal(len(made)) if cell.data == "sites" else np.zeros(len(made))
    sites = [Persons(_table(x, weight, b, rng), VIEWS) for x, b in zip(made, levels, strict=True)]
    private = answer("network", ASKED, sites, cell.epsilon, rng)
    told = _told(private)
    parts = zip(made, levels, strict=True)
    fresh = np.hstack([_table(np.repeat(x, NEW, axis=1), weight, b, rng) for x, b in parts])
    truth = _accuracy(private, fresh)
    found = told.state == "found"
    # Sites that differ in how many are ill, and in scanner, can be told by the scanner.
    covered = (bool(told.low <= truth <= told.high),) if told.bounded else ()
    if not cell.effect:
        return Outcome(covered, found and truth <= _largest(fresh), 0, 0, 0)
    better = _told(answer("network", ASKED, sites, None, rng))
    return Outcome(covered, False, int(found), 1, int(better.state == "found"))


def _told(result: Result) -> Finding:
    found = result.tables["accuracy"].rows[0][1]
    assert isinstance(found, Finding)
    return found


def _accuracy(result: Result, table: Array) -> float:
    sizes = [int(size) for size in result.arrays["units"]]
    guessed = predict(result.arrays["parameters"], sizes, table[:-1].astype(np.float64))[0] > 0.5
    return float(np.mean(guessed == (table[-1] > 0)))


def _largest(table: Array) -> float:
    share = float(np.mean(table[-1] > 0))
    return max(share, 1.0 - share)


def _table(own: Array, weight: float, level: float, rng: np.random.Generator) -> Array:
    """Persons of one site, told by their first entry."""
    x = np.clip(SPREAD * own, -1.0, 1.0)
    chance = 1.0 / (1.0 + np.exp(-(weight * x[0] + level)))
    y = np.where(rng.random(x.shape[1]) < chance, 1.0, -1.0)
    return np.vstack([x, y[None]]).astype(np.float32)
