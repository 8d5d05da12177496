"""Section 7.3 of the dissertation: how well private CCA finds correlations between modalities.

``python -m benchmarks.papers.fusion`` prints a table and draws docs/images/fusion.png. The error is
that of section 7.3, ‖r* − r‖/K, over K = 5 correlations: of simulated images and potentials against
the population's, and of the two halves of handwritten digits against those without noise.
Differences: exact losses and clipping to public bounds; δ = 1e-5 instead of 0.01; smaller arrays
(144 pixels, 80 samples); the digits of scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.papers.audit import Point, verdict
from benchmarks.papers.common import (
    classical,
    printed_epsilon,
    published_factor,
    published_ratio,
)
from benchmarks.timing import show
from consortium.algorithms.base import PlannedRelease, Release, Result
from consortium.algorithms.cca import Cca
from consortium.algorithms.cca_plan import CcaParameters
from consortium.algorithms.memory import ArrayData
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.privacy.mechanism import plan_mechanism
from consortium.synthetic.fusion import fusion_arrays

Array = NDArray[Any]

CCA = Cca()
DELTA, SITES, PAIRS, RUNS = 1e-5, 10, 5, 10
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
PICTURE = Path("docs/images/fusion.png")


@dataclass(frozen=True)
class Way:
    """A way to spread the noise: the scheme, how many sites collude, and how many hold the data."""

    name: str
    scheme: Any
    colluding: int = 0
    sites: int = SITES
    part: int = 1  # of the data, one in so many persons


WAYS = (
    Way("no privacy", "none"),
    Way("pooled", "local", sites=1),
    Way("cape, none colludes", "cape"),
    Way("cape, 3 collude", "cape", 3),
    Way("secure-sum, 3 collude", "secure-sum", 3),
    Way("conventional", "local", 3),
    Way("one site alone", "local", sites=1, part=SITES),
    Way("as published, at its true ε", "published", 3),
)
OURS = "cape, 3 collude"


@dataclass(frozen=True, eq=False)
class Data:
    """Persons with two views, what to find in them, and public bounds of their norms."""

    name: str
    views: tuple[Array, Array]
    truth: Array
    bounds: Mapping[str, float]


def simulated(persons: int, seed: int) -> Data:
    """Images and potentials whose sources have known correlations."""
    generator = np.random.default_rng(seed)
    made = fusion_arrays(generator, subjects=persons, side=12, channels=8, times=10)
    bounds = {"x": 4.0, "y": 4.0}  # √5 is the root mean squared norm by construction
    return Data(f"fMRI+EEG, N = {persons:,}", made.views, made.correlations, bounds)


def digits(copies: int, seed: int) -> Data:
    """Upper and lower halves, each person ``copies`` times in another order, as in section 7.3."""
    from sklearn.datasets import load_digits

    values = load_digits().data.T / 16.0
    order = np.random.default_rng(seed).permutation(np.repeat(np.arange(values.shape[1]), copies))
    views = values[:32, order], values[32:, order]
    bounds = {"x": 5.0, "y": 5.0}
    plain = Data("", views, np.zeros(PAIRS), bounds)
    truth = solve(plain, WAYS[0], 1.0, np.random.default_rng(0)).arrays["correlations"]
    return Data(f"digits, N = {len(order):,}", views, truth, bounds)


def solve(data: Data, way: Way, epsilon: float, generator: np.random.Generator) -> Result:
    """Run the algorithm over the sites, with the noise that the plan would have."""
    stacked = np.vstack(data.views)[:, :: way.part]
    names = [(name, len(view)) for name, view in zip("xy", data.views, strict=True)]
    columns = stacked.T[:, :, None]
    sites = [ArrayData(list(columns[s :: way.sites]), views=names) for s in range(way.sites)]
    counts = [len(site.lengths) for site in sites]
    shape = sites[0].extent.shape(counts, counts, "subject")
    parameters = CcaParameters(pairs=PAIRS, bounds=dict(data.bounds))
    planned = {r.stage: r for r in CCA.releases(parameters, shape)}
    run = CCA.run(parameters, shape)
    query = next(run)
    try:
        while True:
            release = planned[query.stage]
            local = CCA.statistics[query.statistic]
            parts = [local(site, query, release.bound) for site in sites]
            mean = np.average(parts, axis=0, weights=counts)
            deviation = aggregate(release, way, counts, epsilon)
            noise = deviation * generator.standard_normal(len(mean))
            query = run.send(Release(mean + noise, deviation))
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def published(data: Data, epsilon: float, generator: np.random.Generator) -> Array:
    """Correlations of Algorithm 7.1, where noise leaves them between 0 and 1.

    At its true ε: against the coalition κ = 1 costs most on the diagonal, where replacing a person
    moves C by √2/N. Persons are centred and scaled to norm 1 for nothing, as in section 7.3.
    """
    z = np.vstack(data.views)
    z = z - z.mean(axis=1, keepdims=True)
    z /= np.linalg.norm(z, axis=0).max()
    size, persons = z.shape
    drawn = generator.standard_normal((size, size))
    tau = np.sqrt(2.0) / persons / published_ratio(epsilon, DELTA, SITES, 1)
    c = z @ z.T / persons + tau * (np.triu(drawn) + np.triu(drawn, 1).T)
    part = len(data.views[0])
    cxx, cxy, cyy = c[:part, :part], c[:part, part:], c[part:, part:]
    squares = np.linalg.eigvals(np.linalg.solve(cxx, cxy) @ np.linalg.solve(cyy, cxy.T)).real
    return np.sqrt(np.clip(np.sort(squares)[::-1][:PAIRS], 0.0, 1.0))


def true_epsilon(nominal: float) -> float:
    """ε that Algorithm 7.1 keeps, calibrated for ``nominal``."""
    each = math.sqrt(2.0) * classical(nominal, DELTA) * published_factor(SITES)
    return epsilon_of(each, DELTA)


def aggregate(release: PlannedRelease, way: Way, counts: list[int], epsilon: float) -> float:
    """Standard deviation of the noise in a release."""
    if way.scheme == "none":
        return 0.0
    mechanism = plan_mechanism(
        way.scheme,
        entries=release.entries,
        bound=release.bound,
        units=counts,
        target=mu_of(epsilon, DELTA) * float(np.sqrt(release.share / release.rounds)),
        colluding=way.colluding,
    )
    return mechanism.noise.aggregate()


def correlations(data: Data, way: Way, epsilon: float, seed: int) -> Array:
    """What a way finds of the data's correlations."""
    generator = np.random.default_rng((seed, 1))
    if way.scheme == "published":
        return published(data, epsilon, generator)
    return solve(data, way, epsilon, generator).arrays["correlations"]


def errors() -> Iterator[tuple[str, str, float, list[float]]]:
    """Errors over runs: data, way, ε, the error of each run."""
    makers = [
        lambda seed: simulated(2_000, seed),
        lambda seed: simulated(20_000, seed),
        lambda seed: digits(4, seed),
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
    """Print the tables, draw the picture, and compare with what is published."""
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
    show(
        "Algorithm 7.1 at nominal ε, S = 10, δ = 1e-5",
        ["nominal", "Theorem 3.1", "true"],
        [
            [f"{e:g}", f"{printed_epsilon(e, DELTA, SITES):.3g}", f"{true_epsilon(e):.3g}"]
            for e in EPSILONS
        ],
    )
    draw(table)
    every = {(data, name, epsilon): values for data, name, epsilon, values in runs}
    print(
        verdict(
            Point(f"{data}, ε = {epsilon:g}", every[data, OURS, epsilon], values)
            for (data, name, epsilon), values in every.items()
            if name == WAYS[-1].name
        )
    )


def draw(table: list[tuple[str, str, float, float]]) -> None:
    """One panel for each data set."""
    names = list(dict.fromkeys(row[0] for row in table))
    figure = Figure(figsize=(3.4 * len(names), 3.7), dpi=130, layout="constrained")
    for axes, data in zip(figure.subplots(1, len(names)), names, strict=True):
        for number, way in enumerate(WAYS):
            row = {e: v for d, n, e, v in table if (d, n) == (data, way.name)}
            values = [row.get(e, row[EPSILONS[0]]) for e in EPSILONS]
            style = "--" if way.name in ("no privacy", "cape, none colludes") else "-"
            axes.loglog(EPSILONS, values, style, color=f"C{number}", label=way.name, marker=".")
        axes.set_title(data, fontsize=9)
        axes.set_xlabel("ε")
        axes.tick_params(labelsize=8)
    figure.axes[0].set_ylabel("error of the correlations")
    lines = figure.axes[0].get_lines()
    figure.legend(handles=lines, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(PICTURE)


if __name__ == "__main__":
    fusion()
