"""Section 7.3 of the dissertation: how well private CCA finds correlations between modalities.

``python -m benchmarks.replication.fusion`` prints a table and draws docs/images/fusion.png. The
error is that of section 7.3, ‖r* − r‖/K, over K = 5 correlations: of simulated images and
potentials against the population's, and of the two halves of handwritten digits against those
without noise. Differences: exact losses and clipping to public bounds; δ = 1e-5 instead of 0.01;
smaller arrays (144 pixels, 80 samples); the digits of scikit-learn. Views are taken as they are,
and once more in their leading principal directions, which the section finds without privacy.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.replication.audit import Point, verdict
from benchmarks.replication.fusion_ways import (
    CUT,
    DELTA,
    OURS,
    PAIRS,
    RIVAL,
    SITES,
    WAYS,
    Data,
    correlations,
    solve,
)
from benchmarks.replication.printed import show_moment_costs
from tests.support.fusion import fusion_arrays

RUNS = 10
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
PICTURE = Path("docs/images/fusion.png")


def simulated(persons: int, seed: int) -> Data:
    """Simulate images and potentials whose sources have known correlations."""
    generator = np.random.default_rng(seed)
    made = fusion_arrays(generator, subjects=persons, side=12, channels=8, times=10)
    bounds = {"x": 4.0, "y": 4.0}  # √5 is the root mean squared norm by construction
    return Data(f"fMRI+EEG, N = {persons:,}", made.views, made.correlations, bounds)


def digits(copies: int, seed: int) -> Data:
    """Return upper and lower halves, ``copies`` times in another order (section 7.3)."""
    from sklearn.datasets import load_digits

    values = load_digits().data.T / 16.0
    order = np.random.default_rng(seed).permutation(np.repeat(np.arange(values.shape[1]), copies))
    views = values[:32, order], values[32:, order]
    bounds = {"x": 5.0, "y": 5.0}
    plain = Data("", views, np.zeros(PAIRS), bounds)
    truth = solve(plain, WAYS[0], 1.0, np.random.default_rng(0)).arrays["correlations"]
    return Data(f"digits, N = {len(order):,}", views, truth, bounds)


def reduced(data: Data, size: int) -> Data:
    """Project each view on its leading principal directions, without privacy (section 7.3)."""
    views = []
    for view in data.views:
        centred = view - view.mean(axis=1, keepdims=True)
        basis = np.linalg.eigh(centred @ centred.T)[1][:, -size:]
        views.append(basis.T @ view)
    plain = Data(f"{data.name}, {size} + {size}", (views[0], views[1]), data.truth, data.bounds)
    if not data.name.startswith("digits"):
        return plain
    truth = solve(plain, WAYS[0], 1.0, np.random.default_rng(0)).arrays["correlations"]
    return replace(plain, truth=truth)


def errors() -> Iterator[tuple[str, str, float, list[float]]]:
    """Return errors over runs: data, way, ε, the error of each run."""
    makers = [
        lambda seed: simulated(2_000, seed),
        lambda seed: simulated(20_000, seed),
        lambda seed: digits(4, seed),
        lambda seed: reduced(simulated(2_000, seed), PAIRS),
        lambda seed: reduced(simulated(20_000, seed), PAIRS),
        lambda seed: reduced(digits(4, seed), 16),
    ]
    for make in makers:
        found: dict[tuple[str, float], list[float]] = {}
        for seed in range(RUNS):
            data = make(seed)
            for way in WAYS:
                for epsilon in EPSILONS if way.scheme != "none" else EPSILONS[:1]:
                    r = correlations(data, way, epsilon, seed)
                    error = float(np.linalg.norm(data.truth - r)) / PAIRS
                    found.setdefault((way.name, epsilon), []).append(error)
        for (name, epsilon), values in found.items():
            yield data.name, name, epsilon, values


def fusion() -> None:
    """Print the tables, draw the picture, and compare with the published results."""
    runs = list(errors())
    table = [(data, name, epsilon, float(np.mean(values))) for data, name, epsilon, values in runs]
    for data in dict.fromkeys(row[0] for row in table):
        print(f"\n{data}: error of the correlations, mean of {RUNS} runs\n")
        print("| noise | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
        print("| --- |" + " --- |" * len(EPSILONS))
        for way in WAYS:
            row = {e: v for d, n, e, v in table if (d, n) == (data, way.name)}
            shown = [f"{row.get(e, row[EPSILONS[0]]):.4f}" for e in EPSILONS]
            print(f"| {way.name} | {' | '.join(shown)} |")
    show_moment_costs("7.1", EPSILONS, DELTA, SITES)
    draw(table)
    every = {(data, name, epsilon): values for data, name, epsilon, values in runs}
    for rival in (RIVAL, CUT):
        points = [
            Point(f"{data}, ε = {epsilon:g}", every[data, OURS, epsilon], values)
            for (data, name, epsilon), values in every.items()
            if name == rival
        ]
        print(f"{rival}: {verdict(points)}")


def draw(table: list[tuple[str, str, float, float]]) -> None:
    """Draw one panel for each data set."""
    names = list(dict.fromkeys(row[0] for row in table))
    figure = Figure(figsize=(10.2, 6.4), dpi=130, layout="constrained")
    for axes, data in zip(figure.subplots(2, 3).ravel(), names, strict=True):
        for number, way in enumerate(WAYS):
            row = {e: v for d, n, e, v in table if (d, n) == (data, way.name)}
            values = [row.get(e, row[EPSILONS[0]]) for e in EPSILONS]
            style = "-" if way.scheme in ("local", "published") or way.name == OURS else "--"
            axes.loglog(EPSILONS, values, style, color=f"C{number}", label=way.name, marker=".")
        axes.set_title(data, fontsize=9)
        axes.set_xlabel("ε")
        axes.tick_params(labelsize=8)
    for first in (0, 3):
        figure.axes[first].set_ylabel("error of the correlations")
    lines = figure.axes[0].get_lines()
    figure.legend(handles=lines, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(PICTURE)


if __name__ == "__main__":
    fusion()
