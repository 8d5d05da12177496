"""`group_ica`: networks that are found where there are none.

Expected correlations are held against true ones by `python -m benchmarks.networks calibration`.
"""

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.network_data import NETWORKS, agreement, made_sites
from benchmarks.honesty.running import answer

ANALYSIS = {"components": NETWORKS, "replays": 20, "anyway": True}
FALSE = 0.5


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate participants with networks; a found one is false if it agrees with none of them."""
    sites = made_sites(cell, rng)
    told = answer("group_ica", ANALYSIS, sites, cell.epsilon, rng)
    true = agreement(told.arrays["maps"])
    images = told.images.get("components")
    expected = images.accuracy if images else ()
    seen = [k for k, each in enumerate(expected) if each.state == "found"]
    if not cell.effect:
        return Outcome((), bool(seen), 0, 0, 0)
    pooled = answer("group_ica", ANALYSIS, sites, None, rng)
    right = sum(bool(true[k] >= FALSE) for k in seen)
    wrong = any(true[k] < FALSE for k in seen)
    return Outcome((), wrong, right, NETWORKS, int(pooled.numbers["found"]))
