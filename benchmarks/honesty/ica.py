"""`ica`: components in data without networks; no accuracy is reported."""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.network_data import NETWORKS, made_sites
from benchmarks.honesty.running import answer
from consortium.algorithms.base import Result

ANALYSIS = {"components": NETWORKS, "rounds": 5, "pca_bound": 0.5, "score": "tanh"}


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Count the components that are found; as many are estimated as there are networks."""
    sites = made_sites(cell, rng)
    told = _count(answer("ica", ANALYSIS, sites, cell.epsilon, rng))
    if not cell.effect:
        return Outcome((), told > 0, 0, 0, 0)
    return Outcome((), False, told, NETWORKS, _count(answer("ica", ANALYSIS, sites, None, rng)))


def _count(result: Result) -> int:
    return int(result.numbers["found"])
