"""Figures 6.2 and 6.3 with DP-djICA, the older rival with Laplace noise.

``python -m benchmarks.replication.ica_laplace`` prints a table and writes
docs/images/ica_laplace.png. The chapter describes DP-djICA in two sentences, so its scale and its
bound are reconstructed (`djica.laplace`). It is treated kindly: data are whitened without privacy
loss, no site adds noise of its own, levels of rounds come from the best composition for δ = 1e-5,
and every point uses the best of some rounds and rates.
"""

import numpy as np

from benchmarks.replication.audit import Panel, verdict
from benchmarks.replication.djica import laplace
from benchmarks.replication.drawing import panels
from benchmarks.replication.ica import DELTA, RUNS, estimate, runs
from benchmarks.replication.summarize_published import pure_level
from benchmarks.timing import show
from consortium.algorithms.base import Array
from tests.support.gain_index import gain_index

SUBJECTS = (64, 256)
EPSILONS = (0.1, 1.0, 10.0)
LARGE = (100.0, 1000.0, 10_000.0)
"""ε of the rival only, to find where it begins to work."""
SETTINGS = ((10, 0.1), (100, 0.1), (100, 2.0))
"""Rounds and rates of the rival."""
KEYS = ("none", "cape", "conv", "local")


def rival(subjects: int, epsilon: float) -> Array:
    """Return the gain index of DP-djICA with its best setting, one number for each run."""
    found = [
        [_one(subjects, epsilon, s, setting) for s in range(RUNS[subjects])] for setting in SETTINGS
    ]
    return min((np.array(each) for each in found), key=lambda each: float(each.mean()))


def _one(subjects: int, epsilon: float, seed: int, setting: tuple[int, float]) -> float:
    rounds, rate = setting
    courses, _ = runs(subjects, seed)
    level = max(epsilon / rounds, pure_level(epsilon, rounds, DELTA))
    g = np.random.default_rng([seed, subjects, rounds])
    return gain_index(laplace(courses.table, level, rounds, rate, g) @ courses.mixing)


def scores(subjects: int, epsilon: float) -> dict[str, Array]:
    """Return the gain index of every method, one number for each run."""
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    for seed in range(RUNS[subjects]):
        courses, sites = runs(subjects, seed)
        for key in KEYS:
            g = np.random.default_rng([seed, subjects])
            unmixing = estimate(courses, key, epsilon, DELTA, g, sites=sites)
            found[key].append(gain_index(unmixing @ courses.mixing))
    arrays = {key: np.array(values) for key, values in found.items()}
    return arrays | {"DP-djICA": rival(subjects, epsilon)}


def main() -> None:
    drawn, rows = [], []
    for subjects in SUBJECTS:
        panel = Panel(f"M = {subjects}", "ε", [(e, scores(subjects, e)) for e in EPSILONS])
        drawn.append(panel)
        for epsilon, found in panel.points:
            cells = [f"{values.mean():.4f}" for values in found.values()]
            rows.append([panel.title, f"{epsilon:g}", *cells])
    for epsilon in LARGE:
        index = f"{rival(SUBJECTS[0], epsilon).mean():.4f}"
        rows.append([drawn[0].title, f"{epsilon:g}", *[""] * len(KEYS), index])
    show("Gain index, mean of runs, S = 4", ["data", "ε", *KEYS, "DP-djICA"], rows)
    print(panels("ica_laplace", [panel.curves() for panel in drawn], "gain index"))
    print(verdict(point for panel in drawn for point in panel.compared("DP-djICA")))


if __name__ == "__main__":
    main()
