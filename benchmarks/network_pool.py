"""Means of simulated participants' projectors, and group ICA of them under a study's noise."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.network_people import EDGE, People, places
from benchmarks.studies import result_of, study_of
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Extent, Release, Result
from consortium.algorithms.subspace import smooth_basis
from consortium.kernels.moments import pack_symmetric
from consortium.kernels.projectors import leading_directions, reduce_series
from consortium.study.plan import Plan, make_plan

GROUP_ICA = REGISTRY["group_ica"]
PLAIN, HARD = (100,) * 4, (150, 90, 60, 40, 25, 15, 10, 10)
LARGE = (300, 200, 150, 120, 90, 65, 45, 30)
FOUND, FALSE = 0.7, 0.5
Key = tuple[float, int]
"""Cut-off and K."""


@lru_cache(maxsize=1)
def extent() -> Extent:
    """Return the voxels of all studies here."""
    where = places()
    return Extent(len(where.coordinates), 0, (), where)


def plan(people: People, epsilon: float, scheme: str = "cape", **analysis: Any) -> Plan:
    """Plan a study over these hospitals, one of which may collude."""
    study = study_of(
        *("group_ica", {"anyway": True, **analysis}, len(people.sizes), epsilon),
        data={"resolution": EDGE},
        scheme=scheme,
    )
    shape = extent().shape(people.sizes, tuple(80 * size for size in people.sizes), "subject")
    return make_plan(study, shape)


def key(made: Plan) -> Key:
    """Return the kind of mean of projectors that a study releases."""
    known: Any = made.analysis
    return known.cutoff, known.asked.kept


@dataclass
class Pool:
    """Means of participants' projectors, of each single hospital and of all."""

    people: People
    seed: int
    means: dict[Key, list[Array]] = field(default_factory=dict)

    def add(self, keys: Sequence[Key]) -> None:
        """Work the means out for several bases at once, participant by participant."""
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
        """Return the mean over all participants."""
        self.add([each])
        return np.asarray(np.average(self.means[each], axis=0, weights=self.people.sizes))


def answer(matrix: Array, made: Plan, seed: int | None) -> Result:
    """Return the study's result, with its noise or without any."""
    deviation = 0.0 if seed is None else float(made.stages[0].mechanism.noise.aggregate())
    values = pack_symmetric(matrix)
    values += deviation * np.random.default_rng(seed or 0).standard_normal(len(values))
    return result_of(
        GROUP_ICA(made.study.analysis, made.shape), lambda _: Release(values, deviation)
    )


def cosines(found: Array, truth: Array) -> Array:
    """Return the absolute correlation of every true map (rows) with every found one."""
    split = truth.shape[1]
    return np.abs(np.corrcoef(truth.T, found.T)[:split, split:])


def matched(found: Array, truth: Array) -> Array:
    """Return each true map's correlation with its match among the found ones, 0 without a match."""
    scores = np.zeros(truth.shape[1])
    if found.shape[1]:
        table = cosines(found, truth)
        rows, columns = linear_sum_assignment(-table)
        scores[rows] = table[rows, columns]
    return scores


def resolved(truth: Array, cutoff: float) -> Array:
    """Return the part of the truth that the basis represents."""
    basis = smooth_basis(extent().places, cutoff).matrix
    return np.asarray(basis @ (basis.T @ truth))
