"""`template_networks`: findings compared with templates, and the reported correlation of maps.

Templates agree with two thirds of each network. The truth of a map is the mean of many more
participants' maps.
"""

from functools import lru_cache

import numpy as np

from benchmarks.honesty.cells import Cell, Outcome
from benchmarks.honesty.network_data import FEATURES, NETWORKS, WIDE, made_sites
from benchmarks.honesty.running import answer
from consortium.algorithms.base import Array, Templates
from consortium.kernels.dual_regression import person_maps

ANALYSIS = {"templates": "templates.nii.gz", "anyway": True}
_SHARED = 8  # features that a template has of its network
_MANY = 2000
_ROUNDING = 1e-9  # rounding error of a correlation of one


def _templates() -> Templates:
    maps = np.zeros((FEATURES, NETWORKS))
    rest = NETWORKS * WIDE
    for k in range(NETWORKS):
        maps[k * WIDE : k * WIDE + _SHARED, k] = 1.0
        maps[rest + k * WIDE : rest + (k + 1) * WIDE - _SHARED, k] = 1.0
    return Templates(maps)


TEMPLATES = _templates()


def repetition(cell: Cell, rng: np.random.Generator) -> Outcome:
    """Simulate maps; a found one is false without a network, or if its template is nearer."""
    sites = made_sites(cell, rng, TEMPLATES)
    told = answer("template_networks", ANALYSIS, sites, cell.epsilon, rng)
    truth = _truth(cell.effect)
    true, before = _cosines(told.arrays["weights"], truth), _cosines(TEMPLATES.values, truth)
    networks = told.images["networks"]
    accuracy, found = networks.accuracy, [k for k in range(NETWORKS) if networks.is_found(k)]
    covered = tuple(
        bool(each.low - _ROUNDING <= true[k] <= each.high + _ROUNDING)
        for k, each in enumerate(accuracy)
        if each.reported
    )
    wrong = bool(told.numbers["connections"]) or any(true[k] < before[k] for k in found)
    if not cell.effect:
        return Outcome(covered, wrong or bool(found), 0, 0, 0)
    pooled = answer("template_networks", ANALYSIS, sites, None, rng)
    return Outcome(covered, wrong, len(found), NETWORKS, int(pooled.numbers["found"]))


@lru_cache(maxsize=2)
def _truth(effect: bool) -> Array:
    """Return the mean of many participants' maps; without networks, the expected templates."""
    if not effect:
        return np.asarray(TEMPLATES.values / np.linalg.norm(TEMPLATES.values, axis=0))
    people = made_sites(Cell("sparse effect", 4.0, _MANY), np.random.default_rng(1))
    blocks = [block for site in people for block in site.blocks()]
    return np.asarray(np.mean([person_maps(each, TEMPLATES.values) for each in blocks], axis=0))


def _cosines(maps: Array, truth: Array) -> Array:
    """Return the correlation of each map with its truth, whose norm is corrected for sampling."""
    square = np.square(truth).sum(axis=0)
    square = square - (1.0 - square) / _MANY
    sizes = np.linalg.norm(maps, axis=0)
    return np.asarray(
        np.sum(maps * truth, axis=0) / np.where(sizes > 0, sizes, 1.0) / np.sqrt(square)
    )
