"""The studies on which `benchmarks.forecasts` compares forecasts with results.

Participants are those of `benchmarks.honesty` without differences between their four sites, unless
an analysis needs others. They are simulated here, and not by the forecasting code.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import t as student

from benchmarks.honesty import cca, regression
from benchmarks.honesty.cells import Cell
from benchmarks.honesty.network import accuracy
from benchmarks.honesty.people import background
from benchmarks.honesty.running import TableSite
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding
from consortium.simulation.array_data import ArrayData

LINK = 0.5
"""Correlation of the simulated views, and what their study assumes."""
TOLD_APART = 0.7
"""Fraction of simulated participants of two classes that the best rule classifies correctly."""
ENTRIES, SPREAD = 6, 0.4
"""Of participants of two classes, and the standard deviation of their entries."""
NEW = 20_000
Sites = list[ArrayData]


@dataclass(frozen=True)
class Trial:
    """An analysis that is tried."""

    algorithm: str
    analysis: Mapping[str, Any]
    views: tuple[tuple[str, int], ...]
    people: Callable[[Cell, np.random.Generator], Sites]
    """Makes sites from a cell and a generator."""
    told: Callable[[Result], Array]
    """A result's errors, if the truth of its numbers is zero, or the numbers whose mean is
    forecast, such as whether the link was found. Empty if nothing was reported.
    """
    mean: bool = False
    """Whether the mean of the reported numbers is forecast, and not their usual size."""
    times: float = 1.0
    """Tolerated deviation between a forecast and the measured number."""


def _average_people(cell: Cell, rng: np.random.Generator) -> Sites:
    return [
        TableSite((0.1 * table).astype(np.float32), (("x", 30),))
        for table in background(cell, 30, rng)
    ]


def _uneven_people(cell: Cell, rng: np.random.Generator) -> Sites:
    """Simulate participants of heavy tails and several sizes.

    The bound is a tenth above the usual norm.
    """
    sites: Sites = []
    for size in cell.sizes:
        table = student(5).rvs((_MANY, size), random_state=rng) / math.sqrt(5 / 3 * _MANY)
        table *= np.exp(0.2 * rng.standard_normal(size))
        sites.append(TableSite(table.astype(np.float32), (("x", _MANY),)))
    return sites


_MANY = 120


def _average_error(result: Result) -> Array:
    return result.arrays["mean"].ravel()


def _explained_people(cell: Cell, rng: np.random.Generator, model: str) -> Sites:
    none = np.zeros(regression.ENTRIES)
    tables = background(cell, regression.ENTRIES + 1, rng)
    return [TableSite(regression.table(own, none, model, rng), regression.VIEWS) for own in tables]


def _coefficient_error(result: Result) -> Array:
    return np.array([each.value for each in regression.findings(result) if each.reported])


def _linked_people(cell: Cell, rng: np.random.Generator) -> Sites:
    tables = background(cell, cca.FIRST + cca.SECOND, rng)
    return [TableSite(cca.table(own, LINK), cca.VIEWS) for own in tables]


def _is_found(result: Result) -> Array:
    return np.array([cca.findings(result)[0].state == "found"], dtype=np.float64)


def _two_classes(size: int, spread: float, rng: np.random.Generator) -> Array:
    """Simulate participants whose first entry separates them.

    So the best rule agrees with the assumption.
    """
    label = np.where(rng.random(size) < 0.5, 1.0, -1.0)
    entries = rng.standard_normal((ENTRIES, size))
    entries[0] += float(ndtri(TOLD_APART)) * label
    return np.vstack([np.clip(spread * entries, -1.0, 1.0), label])


def _classified_people(cell: Cell, rng: np.random.Generator, spread: float) -> Sites:
    views = (("x", ENTRIES), ("y", 1))
    return [
        TableSite(_two_classes(size, spread, rng).astype(np.float32), views) for size in cell.sizes
    ]


def _network_accuracy(result: Result) -> Array:
    fresh = _two_classes(NEW, SPREAD, np.random.default_rng(1))
    return np.array([accuracy(result, [fresh])])


def _neighbours_accuracy(result: Result) -> Array:
    fresh = _two_classes(NEW, _HALF, np.random.default_rng(1))
    weights, level = result.arrays["coefficients"][:-1, 0], result.arrays["intercept"]
    return np.array([np.mean((weights @ fresh[:-1] + level > 0) == (fresh[-1] > 0))])


_HALF = math.sqrt(0.5 / ENTRIES)


def _balanced_people(cell: Cell, rng: np.random.Generator) -> Sites:
    """Simulate participants whose mean is exactly zero: each has an opposite one."""
    tables = background(cell, ENTRIES, rng)
    halves = (np.clip(SPREAD * own[:, : own.shape[1] // 2], -1, 1) for own in tables)
    return [TableSite(np.hstack([half, -half]), (("x", ENTRIES),)) for half in halves]


def _mean_error(result: Result) -> Array:
    return np.asarray(result.arrays["means"][-1] / SPREAD)


def _floor(result: Result) -> Array:
    floors = [row[4] for row in result.tables["sites"].rows]
    return np.array([max(each for each in floors if isinstance(each, float))])


def _alike_people(cell: Cell, rng: np.random.Generator) -> Sites:
    tables = background(cell, ENTRIES, rng)
    return [TableSite(np.clip(SPREAD * own, -1, 1), (("x", ENTRIES),)) for own in tables]


_LEVELS = {"levels": {"genes": 1.0}}


def _coins(cell: Cell, rng: np.random.Generator) -> Sites:
    """Simulate participants of the largest variance that their views allow."""
    views = (("genes", 6), ("scan", 4))
    tables = [np.where(own > 0, 1.0, -1.0) for own in background(cell, 10, rng)]
    return [TableSite(table.astype(np.float32), views) for table in tables]


def _genes_mean(result: Result) -> Array:
    return _genes(result, "means")


def _genes_people(cell: Cell, rng: np.random.Generator) -> Sites:
    views = (("genes", 6), ("scan", 4), ("y", 1))
    spread = np.array([SPREAD] * 10 + [0.3])[:, None]
    tables = [np.clip(spread * own, -1, 1) for own in background(cell, 11, rng)]
    return [TableSite(table.astype(np.float32), views) for table in tables]


def _genes_coefficient(result: Result) -> Array:
    return _genes(result, "coefficients")


def _genes(result: Result, table: str) -> Array:
    found = [row[-1] for row in result.tables[table].rows if row[0] == "genes"]
    return np.array([each.value for each in found if isinstance(each, Finding) and each.reported])


_ASKED = {"target": "y", "bound": regression.BOUND}
_CLASSES = (("x", ENTRIES), ("y", 1))
_APART = {"target": "y", "detect": TOLD_APART}
ANALYSES: Mapping[str, Trial] = {
    "average": Trial("average", {"bound": 0.6}, (("x", 30),), _average_people, _average_error),
    "average, uneven": Trial(
        "average", {"bound": 1.1}, (("x", _MANY),), _uneven_people, _average_error
    ),
    "linear regression": Trial(
        "regression",
        _ASKED,
        regression.VIEWS,
        partial(_explained_people, model="linear"),
        _coefficient_error,
    ),
    "logistic regression": Trial(
        "regression",
        {**_ASKED, "model": "logistic"},
        regression.VIEWS,
        partial(_explained_people, model="logistic"),
        _coefficient_error,
    ),
    "cca": Trial(
        "cca", {"pairs": 2, "detect": LINK}, cca.VIEWS, _linked_people, _is_found, mean=True
    ),
    "network": Trial(
        "network",
        {**_APART, "hidden": [8]},
        _CLASSES,
        partial(_classified_people, spread=SPREAD),
        _network_accuracy,
        mean=True,
    ),
    "admm": Trial(
        "admm",
        _APART,
        _CLASSES,
        partial(_classified_people, spread=_HALF),
        _neighbours_accuracy,
        mean=True,
    ),
    "describe": Trial(
        "describe", {"anyway": True}, (("x", ENTRIES),), _balanced_people, _mean_error
    ),
    "summarize": Trial("summarize", {}, (("x", ENTRIES),), _alike_people, _floor, mean=True),
    "coordinate": Trial("coordinate", _LEVELS, (("genes", 6), ("scan", 4)), _coins, _genes_mean),
    "coordinate, target": Trial(
        "coordinate",
        {**_LEVELS, "target": "y"},
        (("genes", 6), ("scan", 4), ("y", 1)),
        _genes_people,
        _genes_coefficient,
    ),
}
