"""`ica`: components where there are no networks; no accuracy is told."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.network_data import NETWORKS, made_sites
from benchmarks.honesty.running import answer

ANALYSIS = {"components": NETWORKS, "rounds": 5, "pca_bound": 0.5, "score": "tanh"}


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Components found of as many as there are networks."""
    sites = made_sites(cell, rng)
    told, pooled = (
        int(answer("ica", ANALYSIS, sites, epsilon, rng).numbers["found"])
        for epsilon in (cell.epsilon, None)
    )
    if not cell.effect:
        return Outcome((), told > 0, 0, 0, 0)
    return Outcome((), False, told, NETWORKS, pooled)
