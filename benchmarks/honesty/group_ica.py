"""`group_ica`: expected correlations with the truth, and networks where there are none."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.network_data import NETWORKS, agreement, made_sites
from benchmarks.honesty.running import answer
from consortium.algorithms.base import Result

ANALYSIS = {"components": NETWORKS, "replays": 20, "anyway": True}
FALSE, SLACK = 0.5, 0.1


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """A network found is false if it agrees with none; what it is expected to, it should."""
    sites = made_sites(cell, rng)
    told, pooled = (
        answer("group_ica", ANALYSIS, sites, epsilon, rng) for epsilon in (cell.epsilon, None)
    )
    true = agreement(told.arrays["maps"])
    images = told.images.get("components")
    expected = images.accuracy if images else ()
    seen = [k for k, each in enumerate(expected) if each.state == "found"]
    covered = tuple(bool(true[k] >= expected[k].low - SLACK) for k in seen) if cell.effect else ()
    if not cell.effect:
        return Outcome(covered, bool(seen), 0, 0, 0)
    right = sum(bool(true[k] >= FALSE) for k in seen)
    wrong = any(true[k] < FALSE for k in seen)
    return Outcome(covered, wrong, right, NETWORKS, _count(pooled))


def _count(result: Result) -> int:
    return int(result.numbers["found"])
