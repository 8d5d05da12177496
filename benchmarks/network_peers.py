"""Hard participants' networks by group ICA, other noise, capeDJICA and nilearn's CanICA."""

import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from nilearn.decomposition import CanICA

from benchmarks.network_people import EDGE, hard_people
from benchmarks.network_pool import HARD, Pool, answer, key, matched, plan
from benchmarks.network_rounds import run_study, sites_of
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.space.grid import Grid, template_grid

EPSILON, SIZE, SEEDS = 8.0, 20, 2


def peers() -> None:
    """Measure the correlation with the true networks, 400 participants in eight hospitals."""
    people = hard_people(HARD)
    pool, found = Pool(people, 0), {}
    for name, scheme in (
        ("group_ica", "cape"),
        ("group_ica, every site hides its own", "local"),
    ):
        made = plan(people, EPSILON, scheme, components=SIZE)
        mean = pool.mean(key(made))
        found[name] = [answer(mean, made, seed).arrays["maps"] for seed in range(SEEDS)]
    sites = sites_of(people, 0)
    found["ica"] = [
        run_study(sites, EPSILON, seed, components=SIZE).arrays["mixing"] for seed in range(SEEDS)
    ]
    grid = template_grid(EDGE)
    scans = [[grid.image(block) for block in site.blocks()] for site in sites]
    found["CanICA of all participants, no privacy"] = [canica(grid, list(chain(*scans)))]
    found["CanICA of the largest hospital"] = [canica(grid, scans[0])]
    rows = []
    for name, maps in found.items():
        scores = np.array([matched(each, people.maps) for each in maps])
        above = np.mean(np.sum(scores >= 0.7, axis=1))
        rows.append([name, f"{np.median(scores):.2f}", f"{scores.mean():.2f}", f"{above:.1f}"])
    show(
        f"400 hard participants, 20 networks, ε = {EPSILON:g} where there is one",
        ["", "median", "mean", "≥ .7"],
        rows,
    )


def canica(grid: Grid, scans: Sequence[Any]) -> Array:
    """Return maps by nilearn's group ICA, D x R, of images or of files."""
    model = CanICA(
        n_components=SIZE,
        mask=grid.image(np.ones(grid.features, dtype=np.uint8)),
        smoothing_fwhm=None,
        detrend=False,
        random_state=0,
        memory_level=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of standardized scans, or no convergence
        model.fit(scans)
    return np.asarray(model.components_.T)
