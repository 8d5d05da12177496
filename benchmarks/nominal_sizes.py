"""``python -m benchmarks.nominal_sizes [RUNS]``: results where nominal numbers are wrong.

A study states a nominal number of participants of each site. Other numbers take part, down to none
at one site. Each row has the error of an analysis, the coverage of its 95 % intervals, and the
fraction of the results that have an interval.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding

TRUE = (160, 90, 120, 80)
EPSILONS = (4.0, 1.0)
NOMINAL: dict[str, tuple[float, ...]] = {
    "right": (1.0,) * 4,
    "30 % off by site": (1.3, 0.7, 1.3, 0.7),
    "twice too many": (2.0,) * 4,
    "none at one site": (1.0,) * 4,
}


@dataclass(frozen=True)
class Judged:
    """What one run of an analysis is worth."""

    square: float
    """Mean squared error, in the result's unit."""
    covered: float
    """Fraction of the reported intervals that contain the truth; NaN without intervals."""
    reported: float
    """Share of the numbers that have an interval."""


Run = Callable[[Sequence[int], Sequence[int], float, int], Judged]
"""Function of the true and the nominal numbers, ε and a seed."""


def _judge(findings: Sequence[Finding], truths: Sequence[float] | Array) -> Judged:
    told = [(f, t) for f, t in zip(findings, truths, strict=True) if f.reported]
    if not told:
        return Judged(float("nan"), float("nan"), 0.0)
    square = float(np.mean([(f.value - t) ** 2 for f, t in told]))
    covered = float(np.mean([f.low <= t <= f.high for f, t in told]))
    return Judged(square, covered, len(told) / len(findings))


def _sites(
    table: Array, views: tuple[tuple[str, int], ...], true: Sequence[int]
) -> list[TableSite]:
    parts = np.split(table, np.cumsum(true)[:-1], axis=1)
    return [TableSite(np.ascontiguousarray(part), views) for part in parts]


def _findings(result: Result, table: str) -> list[Finding]:
    rows = result.tables[table].rows
    return [cell for row in rows for cell in row if isinstance(cell, Finding)]


def describe(true: Sequence[int], nominal: Sequence[int], epsilon: float, seed: int) -> Judged:
    """Estimate shares of 16 bins."""
    rng = np.random.default_rng(seed)
    ages = np.clip(rng.normal(0, 0.35, (1, sum(true))), -1, 1)
    truth = np.histogram(ages, 16, (-1, 1))[0] / sum(true)
    asked, sites = {"bins": 16, "means": False}, _sites(ages, (("x", 1),), true)
    found = _findings(answer("describe", asked, sites, epsilon, rng, nominal=nominal), "bins")
    low, value, high = np.array([(each.low, each.value, each.high) for each in found]).T / sum(true)
    square = float(np.mean(np.square(value - truth)))
    return Judged(square, float(np.mean((low <= truth) & (truth <= high))), 1.0)


def average(true: Sequence[int], nominal: Sequence[int], epsilon: float, seed: int) -> Judged:
    """Estimate means of ten columns, some far from 0."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(-0.6, 0.6, 10)
    table = np.clip(truth[:, None] + 0.2 * rng.standard_normal((10, sum(true))), -1, 1)
    sites = _sites(table, (("x", 10),), true)
    found = answer("average", {"bound": 1.7}, sites, epsilon, rng, nominal=nominal)
    return _judge(_findings(found, "means"), truth)


def coordinate(true: Sequence[int], nominal: Sequence[int], epsilon: float, seed: int) -> Judged:
    """Estimate means of ten columns under levels of privacy by view."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(-0.6, 0.6, 10)
    table = np.clip(truth[:, None] + 0.2 * rng.standard_normal((10, sum(true))), -1, 1)
    sites = _sites(table, (("x", 10),), true)
    found = answer("coordinate", {"radii": {"x": 1.5}}, sites, epsilon, rng, nominal=nominal)
    return _judge(_findings(found, "means"), truth)


def regression(true: Sequence[int], nominal: Sequence[int], epsilon: float, seed: int) -> Judged:
    """Estimate coefficients of three columns, with a constant for each site."""
    rng = np.random.default_rng(seed)
    shift = np.repeat(rng.normal(0, 0.15, len(true)), true)
    x = np.clip(rng.normal(0, 0.3, (3, sum(true))) + 0.5 * shift, -1, 1)
    truth = np.array([0.5, -0.3, 0.0])
    y = np.clip(truth @ x + 0.4 * shift + rng.normal(0, 0.15, sum(true)), -1, 1)
    sites = _sites(np.vstack([x, y]), (("x", 3), ("y", 1)), true)
    asked = {"target": "y", "bound": 1.0}
    found = answer("regression", asked, sites, epsilon, rng, nominal=nominal)
    return _judge(_findings(found, "coefficients"), truth)


def glm(true: Sequence[int], nominal: Sequence[int], epsilon: float, seed: int) -> Judged:
    """Estimate differences of two groups in 20 outcomes, ten sites of 60, with nominal groups."""
    rng = np.random.default_rng((seed, 3))
    del true
    people = make_people(600, 20, 10, rng)
    factors = np.resize(np.array(nominal) / np.array(TRUE), 10)
    trial = make_trial(people)
    groups = {
        site: (max(1, round(a * f)), max(1, round(b * (2 - f) if f < 2 else b)))
        for (site, (a, b)), f in zip(trial.parameters.groups.items(), factors, strict=True)
    }
    trial = make_trial(people, groups=groups)
    sizes = tuple(max(1, round(n * f)) for n, f in zip(trial.shape.subjects, factors, strict=True))
    shape = trial.shape.with_units(sizes)
    found = run_trial(
        type(trial)(trial.parameters, trial.sites, shape), noise_of(epsilon, 10), rng
    ).arrays
    truth = people.truth / people.deviation
    covered = np.mean((found["low"] <= truth) & (truth <= found["high"]))
    return Judged(float(np.mean(np.square(found["effect"] - truth))), float(covered), 1.0)


ANALYSES: dict[str, Run] = {
    "describe": describe,
    "average": average,
    "coordinate": coordinate,
    "regression": regression,
    "glm": glm,
}


def rows(runs: int) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table."""
    for name, run in ANALYSES.items():
        for epsilon in EPSILONS:
            base = 0.0
            for stated, factors in NOMINAL.items():
                nobody = stated == "none at one site"
                if nobody and name == "glm":
                    continue
                true = (*TRUE[:-1], 0) if nobody else TRUE
                sizes = [round(n * f) for n, f in zip(TRUE, factors, strict=True)]
                found = [run(true, sizes, epsilon, seed) for seed in range(runs)]
                error = float(np.sqrt(np.nanmean([each.square for each in found])))
                base = base or error
                covered = np.nanmean([each.covered for each in found])
                reported = np.mean([each.reported for each in found])
                numbers = f"{error:.4f}", f"{error / base:.2f}", f"{covered:.3f}", f"{reported:.2f}"
                yield name, f"{epsilon:g}", stated, *numbers


def main(runs: int = 40) -> None:
    """Print the table.

    Parameters
    ----------
    runs : int
        Of each row.
    """
    columns = ("analysis", "ε", "nominal numbers", "error", "over right", "covered", "reported")
    table = Table(*columns, title=f"{sum(TRUE)} participants of 4 sites (glm: 600 of 10)")
    for row in rows(runs):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
