"""Figures 7.1 and 7.2 on fMRI+EEG over N and δ: how well private CCA finds correlations.

``python -m benchmarks.replication.fusion_axes`` prints a table and writes
docs/images/fusion_axes.png. Data, error and methods are those of `fusion`, in the five leading
principal directions of each view, which the chapter finds without privacy.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.replication.audit import Panel, verdict
from benchmarks.replication.drawing import panels
from benchmarks.replication.fusion import RUNS, reduced, simulated
from benchmarks.replication.fusion_ways import DELTA, KEYS, PAIRS, WAYS, correlations
from benchmarks.timing import show
from consortium.algorithms.base import Array

EPSILONS = (0.5, 2.0)
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000)
DELTAS = (1e-8, 1e-6, 1e-4, 1e-2)
PEOPLE = 5_000
"""N along the axis of δ."""


def scores(persons: int, epsilon: float, delta: float) -> dict[str, Array]:
    """Return the error of every method, one number for each run."""
    found: dict[str, list[float]] = {key: [] for key in KEYS.values()}
    for seed in range(RUNS):
        data = reduced(simulated(persons, seed), PAIRS)
        for way in WAYS:
            if way.name in KEYS:
                r = correlations(data, way, epsilon, seed, delta)
                found[KEYS[way.name]].append(float(np.linalg.norm(data.truth - r)) / PAIRS)
    return {key: np.array(values) for key, values in found.items()}


def main() -> None:
    drawn = []
    for epsilon in EPSILONS:
        lines: dict[str, Sequence[tuple[float, Mapping[str, Array]]]] = {
            "N": [(n, scores(n, epsilon, DELTA)) for n in SIZES],
            "δ": [(d, scores(PEOPLE, epsilon, d)) for d in DELTAS],
        }
        fixed = {"N": "δ = 1e-5", "δ": f"N = {PEOPLE:,}"}
        for axis, points in lines.items():
            drawn.append(Panel(f"fMRI+EEG, 5 + 5, ε = {epsilon:g}, {fixed[axis]}", axis, points))
    show(
        "Error of the correlations, mean of ten runs, S = 10, three colluding, true ε",
        ["data", "at", *KEYS.values()],
        [
            [panel.title, f"{at:g}", *(f"{found[key].mean():.4f}" for key in KEYS.values())]
            for panel in drawn
            for at, found in panel.points
        ],
    )
    print(panels("fusion_axes", [panel.curves() for panel in drawn], "error of the correlations"))
    print(verdict(point for panel in drawn for point in panel.compared()))


if __name__ == "__main__":
    main()
