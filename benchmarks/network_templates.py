"""`template_networks` compared with group ICA, from correct, private and wrong templates.

The release is simulated as in `benchmarks.networks`: noise is added to the mean of all
participants' maps, which is computed once for each basis and set of templates, over a quarter of
the participants.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.network_people import EDGE, People, hard_people, plain_people
from benchmarks.network_pool import FOUND, HARD, PLAIN, Pool, answer, extent, key, matched, plan
from benchmarks.studies import result_of, study_of
from benchmarks.timing import show
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Release, Result, Templates
from consortium.algorithms.subspace import smooth_basis
from consortium.algorithms.template_networks.centre import in_basis
from consortium.kernels.dual_regression import person_maps
from consortium.kernels.projectors import reduce_series
from consortium.space.grid import template_grid
from consortium.study.plan import Plan, make_plan

EPSILONS = (1.0, 4.0, 8.0)
BY_TEMPLATES = REGISTRY["template_networks"]


@dataclass(frozen=True, eq=False)
class Cell:
    """A study with one set of templates."""

    name: str
    templates: Templates
    plan: Plan

    @property
    def cutoff(self) -> float:
        """Return the basis's cut-off in mm."""
        analysis: Any = self.plan.analysis
        return float(analysis.cutoff)


def fewer(people: People) -> People:
    """Return every fourth participant. Their mean replaces that of all, whose noise is added."""
    return replace(people, sizes=tuple(max(size // 4, 1) for size in people.sizes))


def cell(people: People, epsilon: float, name: str, maps: Array) -> Cell:
    """Plan a study of only the maps over these hospitals, one of which may collude."""
    asked = {"templates": "x.nii", "connectivity": False, "anyway": True}
    sites, data = len(people.sizes), {"resolution": EDGE}
    study = study_of("template_networks", asked, sites, epsilon, data=data)
    templates = Templates(np.asarray(maps, dtype=np.float32))
    shape = extent().shape(people.sizes, tuple(80 * size for size in people.sizes), "subject")
    return Cell(name, templates, make_plan(study, replace(shape, templates=templates)))


def means(people: People, cells: Sequence[Cell]) -> list[Array]:
    """Return the mean of the participants' maps for every cell, d x R each."""
    places = extent().places
    bases = {
        each.cutoff: smooth_basis(places, each.cutoff).matrix.astype(np.float32) for each in cells
    }
    given = [in_basis(each.templates, places, each.cutoff) for each in cells]
    sums = [np.zeros(each.shape) for each in given]
    for _, series in people.persons(0):
        reduced = {cutoff: reduce_series(series, basis, "keep") for cutoff, basis in bases.items()}
        for total, templates, each in zip(sums, given, cells, strict=True):
            total += person_maps(reduced[each.cutoff], templates)
    return [total / sum(people.sizes) for total in sums]


def result(mean: Array, made: Cell, seed: int) -> Result:
    """Return the study's result with its noise."""
    deviation = float(made.plan.stages[0].mechanism.noise.aggregate())
    values = mean + deviation * np.random.default_rng(seed).standard_normal(mean.shape)
    return result_of(
        BY_TEMPLATES(made.plan.study.analysis, made.plan.shape),
        lambda _: Release(values.ravel(), deviation),
    )


def _moved(maps: Array) -> Array:
    """Return maps moved to the front by one voxel."""
    grid = template_grid(EDGE)
    volume = np.zeros((*grid.shape, maps.shape[1]), np.float32)
    volume[grid.mask] = maps
    return np.asarray(np.roll(volume, 1, axis=1)[grid.mask])


def templates(seeds: int = 2) -> None:
    """Measure the mean correlation with the truth, over all true networks."""
    populations = (
        ("plain", plain_people(PLAIN), hard_people(HARD).maps),
        ("hard", hard_people(HARD), plain_people(PLAIN).maps),
    )
    rows: list[list[str]] = []
    for name, people, unlike in populations:
        rows += _rows(name, people, unlike, seeds)
    show(
        "400 participants: mean correlation with the truth over all networks",
        ["participants", "ε", "way", "template alone", "mean", "≥ .7", "reported beyond templates"],
        rows,
    )


def _rows(name: str, people: People, unlike: Array, seeds: int) -> Iterator[list[str]]:
    count = people.maps.shape[1]
    pool = Pool(fewer(people), 0)
    plans = [plan(people, epsilon, components=count, replays=10) for epsilon in EPSILONS]
    earlier = answer(pool.mean(key(plans[1])), plans[1], 99).arrays["maps"]
    sets: Mapping[str, Array] = {
        "right": people.maps,
        "8 mm off": _moved(people.maps),
        "group_ica, ε = 4": earlier,
        "unlike": unlike,
    }
    cells = [cell(people, e, label, maps) for e in EPSILONS for label, maps in sets.items()]
    for each, mean in zip(cells, means(fewer(people), cells), strict=True):
        results = [result(mean, each, seed) for seed in range(seeds)]
        scores = [matched(one.arrays["maps"], people.maps) for one in results]
        alone = matched(each.templates.values, people.maps).mean()
        beyond = np.mean([each.templates.count - _only(one) for one in results])
        parts: list[Any] = [f"{each.plan.study.privacy.epsilon:g}", each.name, f"{alone:.2f}"]
        yield [name, *parts, *_told(scores), f"{beyond:.1f} of {each.templates.count}"]
    pool.add([key(made) for made in plans])
    for made in plans:
        told = [answer(pool.mean(key(made)), made, seed) for seed in range(seeds)]
        scores = [matched(each.arrays["maps"], people.maps) for each in told]
        yield [name, f"{made.study.privacy.epsilon:g}", "group_ica", "", *_told(scores), ""]


def _told(scores: Sequence[Array]) -> list[str]:
    above = np.mean(np.sum(np.array(scores) >= FOUND, axis=1))
    return [f"{np.mean(scores):.2f}", f"{above:.1f}"]


def _only(found: Result) -> float:
    return float(found.numbers["template_only"])
