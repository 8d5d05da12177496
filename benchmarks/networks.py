"""``python -m benchmarks.networks [PART ...]``: what group ICA finds, and whether it says so truly.

Parts: ``plain``, ``hard``, ``ica`` (today's `ica` on the hard persons), ``calibration``, ``null``,
``errors``, ``templates`` (`template_networks` beside it). The release is simulated: the mechanism's
noise is added to the mean of all persons' projectors, which is worked out once for each basis.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.network_people import EDGE, People, hard_people, places, plain_people
from benchmarks.timing import show
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Extent, Release, Result
from consortium.algorithms.group_ica.site import smooth_basis
from consortium.kernels.moments import pack_symmetric
from consortium.kernels.projectors import leading_directions, reduce_series
from consortium.study.plan import Plan, make_plan
from consortium.study.spec import Study

GROUP_ICA = REGISTRY["group_ica"]
PLAIN, HARD = (100,) * 4, (150, 90, 60, 40, 25, 15, 10, 10)
LARGE = (300, 200, 150, 120, 90, 65, 45, 30)
FOUND, FALSE = 0.7, 0.5
Key = tuple[float, int]
"""Cut-off and K."""


@lru_cache(maxsize=1)
def extent() -> Extent:
    """The voxels of all studies here."""
    where = places()
    return Extent(len(where.coordinates), 0, (), where)


def plan(people: People, epsilon: float, **analysis: Any) -> Plan:
    """The plan of a study over these hospitals, one of which may collude."""
    privacy = {"epsilon": epsilon, "delta": 1e-5, "colluding_sites": 1}
    study = Study.model_validate(
        {
            "study": "networks",
            "sites": [f"site-{number}" for number in range(len(people.sizes))],
            "data": {"resolution": EDGE},
            "privacy": privacy,
            "algorithm": "group_ica",
            "analysis": {"anyway": True, **analysis},
        }
    )
    shape = extent().shape(people.sizes, tuple(80 * size for size in people.sizes), "subject")
    return make_plan(study, shape)


def key(made: Plan) -> Key:
    """Which mean of projectors a study releases."""
    fixed = made.stages[0].release.fixed
    return fixed["cutoff"], fixed["directions"]  # type: ignore[return-value]


@dataclass
class Pool:
    """Means of persons' projectors, of each hospital alone and of all."""

    people: People
    seed: int
    means: dict[Key, list[Array]] = field(default_factory=dict)

    def add(self, keys: Sequence[Key]) -> None:
        """Work the means out for several bases at once, person by person."""
        new = [each for each in dict.fromkeys(keys) if each not in self.means]
        bases = {c: smooth_basis(extent().places, c).matrix for c, _ in new}
        narrow = {cutoff: matrix.astype(np.float32) for cutoff, matrix in bases.items()}
        sums = {
            each: [np.zeros((bases[each[0]].shape[1],) * 2) for _ in self.people.sizes]
            for each in new
        }
        for site, series in self.people.persons(self.seed) if new else ():
            for each in new:
                reduced = reduce_series(series, narrow[each[0]], "keep")
                directions = leading_directions(reduced, each[1])
                sums[each][site] += directions @ directions.T
        sizes = self.people.sizes
        self.means |= {
            each: [total / size for total, size in zip(totals, sizes, strict=True)]
            for each, totals in sums.items()
        }

    def mean(self, each: Key) -> Array:
        """Of all persons."""
        self.add([each])
        return np.asarray(np.average(self.means[each], axis=0, weights=self.people.sizes))


def answer(matrix: Array, made: Plan, seed: int | None) -> Result:
    """The study's result, with its noise or without any."""
    deviation = 0.0 if seed is None else float(made.stages[0].mechanism.noise.aggregate())
    values = pack_symmetric(matrix)
    values += deviation * np.random.default_rng(seed or 0).standard_normal(len(values))
    run = GROUP_ICA.run(made.study.analysis, made.shape)
    next(run)
    try:
        run.send(Release(values, deviation))
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it asks only once")


def cosines(found: Array, truth: Array) -> Array:
    """Size of the correlation of every true map (rows) with every one that was found."""
    split = truth.shape[1]
    return np.abs(np.corrcoef(truth.T, found.T)[:split, split:])


def matched(found: Array, truth: Array) -> Array:
    """Correlation of each true map with its own of those found, 0 for one that has none."""
    scores = np.zeros(truth.shape[1])
    if found.shape[1]:
        table = cosines(found, truth)
        rows, columns = linear_sum_assignment(-table)
        scores[rows] = table[rows, columns]
    return scores


def resolved(truth: Array, cutoff: float) -> Array:
    """What the basis shows of the truth."""
    basis = smooth_basis(extent().places, cutoff).matrix
    return np.asarray(basis @ (basis.T @ truth))


def _row(scores: Sequence[Array], told: Sequence[Result]) -> list[str]:
    each = np.array(scores)
    found = np.mean([result.numbers["found"] for result in told])
    above = np.mean(np.sum(each >= FOUND, axis=1))
    return [f"{np.median(each):.2f}", f"{each.mean():.2f}", f"{above:.1f}", f"{found:.1f}"]


def plain(seeds: int = 4) -> None:
    """Plain persons: 400 of them, 14 networks."""
    people, rows = plain_people(PLAIN), []
    pool = Pool(people, 0)
    plans = [plan(people, epsilon, components=14) for epsilon in (8.0, 4.0, 2.0)]
    pool.add([key(made) for made in plans])
    for made in plans:
        told = [answer(pool.mean(key(made)), made, seed) for seed in range(seeds)]
        scores = [matched(result.arrays["maps"], people.maps) for result in told]
        size = told[0].numbers["dimensions"]
        rows.append([f"{made.study.privacy.epsilon:g}", str(size), *_row(scores, told)])
    show(
        "400 persons, 14 networks: correlation with the truth",
        ["ε", "d", "median", "mean", "≥ .7", "said to be found"],
        rows,
    )


HARD_CELLS = ((HARD, (4.0, 8.0)), (LARGE, (1.0, 4.0, 8.0)))


def hard(seeds: int = 3) -> None:
    """Hard persons: group ICA beside the pool and the largest hospital, without noise."""
    rows = []
    for sizes, epsilons in HARD_CELLS:
        people = hard_people(sizes)
        pool = Pool(people, 0)
        plans = [plan(people, epsilon, components=20) for epsilon in epsilons]
        free = plan(people, 100.0, components=20, cutoff=27.0, replays=10)
        pool.add([key(made) for made in (*plans, free)])
        persons = f"{sum(sizes):,}"
        for made in plans:
            told = [answer(pool.mean(key(made)), made, seed) for seed in range(seeds)]
            scores = [matched(result.arrays["maps"], people.maps) for result in told]
            rows.append([persons, f"ε = {made.study.privacy.epsilon:g}", *_row(scores, told)])
        alone = {
            "pooled, no noise": pool.mean(key(free)),
            "best hospital": pool.means[key(free)][0],
        }
        for name, matrix in alone.items():
            result = answer(matrix, free, None)
            scores = [matched(result.arrays["maps"], people.maps)]
            rows.append([persons, name, *_row(scores, [result])])
    show(
        "Hard persons, 20 networks, 8 hospitals of unequal size: correlation with the truth",
        ["persons", "", "median", "mean", "≥ .7", "said to be found"],
        rows,
    )


def _components(pool: Pool, plans: Sequence[Plan], seeds: int) -> tuple[Array, Array, Array]:
    """Expected and true correlation of many components, at the basis's resolution and in full."""
    expected, near, full = [], [], []
    pool.add([key(made) for made in plans])
    for made in plans:
        truth = resolved(pool.people.maps, key(made)[0])
        for seed in range(seeds):
            result = answer(pool.mean(key(made)), made, seed)
            maps = result.arrays["maps"]
            if maps.shape[1]:
                expected.append(result.arrays["expected"])
                near.append(cosines(maps, truth).max(axis=0))
                full.append(cosines(maps, pool.people.maps).max(axis=0))
    return np.concatenate(expected), np.concatenate(near), np.concatenate(full)


def calibration(seeds: int = 4) -> None:
    """Expected against true correlation, over components of plain and of hard persons."""
    parts = []
    for people, size in ((plain_people(PLAIN), 14), (hard_people(HARD), 20)):
        options: list[dict[str, Any]] = [{"components": size}, {"components": "auto"}]
        plans = [plan(people, e, **more) for e in (2.0, 4.0, 8.0) for more in options]
        parts.append(_components(Pool(people, 0), plans, seeds))
    expected, near, full = (np.concatenate(each) for each in zip(*parts, strict=True))
    rows, edges = [], (0.0, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
    for low, high in pairwise(edges):
        within = (expected >= low) & (expected < high)
        if within.any():
            means = [f"{each[within].mean():.3f}" for each in (expected, near, full)]
            rows.append([f"{low:g} to {high:g}", str(int(within.sum())), *means])
    show(
        "Expected and true correlation of components",
        ["expected", "components", "expected", "true, same resolution", "true, in full"],
        rows,
    )
    found = expected >= FOUND
    print(
        f"{found.sum()} found; truly below {FALSE}: {np.mean(near[found] < FALSE):.1%}; "
        f"correlation of expected and true {np.corrcoef(expected, near)[0, 1]:.2f}"
    )


def null(runs: int = 100) -> None:
    """Persons without common networks: how often is one found."""
    rows = []
    makers: Mapping[str, Callable[..., People]] = {
        "plain": plain_people,
        "with own structure, global signal and spikes": hard_people,
    }
    for name, make in makers.items():
        people = make(PLAIN, networks=0.0)
        pool, parts = Pool(people, 0), []
        for epsilon in (4.0, 100.0):
            made = plan(people, epsilon, cutoff=34.0, replays=20)
            matrix = pool.mean(key(made))
            told = [answer(matrix, made, seed) for seed in range(runs)]
            parts.append(sum(float(result.numbers["found"]) > 0 for result in told))
        rows.append([name, str(runs), *map(str, parts)])
    show("No network: runs that find one", ["persons", "runs", "ε = 4", "ε = 100"], rows)


def errors(runs: int = 24) -> None:
    """Standard errors of voxels beside the spread over repeated releases."""
    people = plain_people(PLAIN)
    pool, rows = Pool(people, 0), []
    for epsilon in (4.0, 8.0):
        made = plan(people, epsilon, components=14)
        told = [answer(pool.mean(key(made)), made, seed) for seed in range(runs)]
        ratios = []
        for network in people.maps.T:
            maps, spreads = [], []
            for result in told:
                every = cosines(result.arrays["maps"], network[:, None])[0]
                best = int(every.argmax())
                if every[best] >= FOUND:
                    values = result.arrays["maps"][:, best]
                    maps.append(values * np.sign(values @ network))
                    spreads.append(result.arrays["errors"][:, best])
            if len(maps) >= runs // 2:
                told_error = np.sqrt(np.mean(np.square(spreads), axis=0))
                ratios.append(np.median(told_error / np.std(maps, axis=0, ddof=1)))
        low, middle, high = np.quantile(ratios, (0.0, 0.5, 1.0))
        rows.append([f"{epsilon:g}", str(runs), f"{middle:.2f}", f"{low:.2f} to {high:.2f}"])
    show(
        "Voxels' standard error over the spread of repeated releases, median over the voxels",
        ["ε", "runs", "median network", "all networks"],
        rows,
    )


def templates() -> None:
    """Networks by templates beside group ICA."""
    from benchmarks import network_templates  # which uses what stands here

    network_templates.templates()


PARTS: Mapping[str, Callable[[], None]] = {
    "plain": plain,
    "hard": hard,
    "calibration": calibration,
    "null": null,
    "errors": errors,
    "templates": templates,
}


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
