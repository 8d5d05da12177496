"""One run of an algorithm with the noise that a plan gives it.

The releases carry the planned Gaussian noise of the aggregate, without the protocol: the tests
show that the protocol adds the same. So ten runs of hundreds of points take minutes.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.studies import result_of, study_of
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Query, Release, Result, Shape
from consortium.privacy.bounds import Bound, Unit
from consortium.simulation.array_data import ArrayData
from consortium.study.plan import make_plan
from consortium.study.spec import Study

RUNS = 10
SCHEMES = ("none", "pooled", "cape", "conv", "local")
Views = Sequence[tuple[str, int]]
Mean = Callable[[Query, Bound], Array]


class Promise(NamedTuple):
    """Sites, and what holds for the whole study against the worst coalition of them."""

    sites: int
    epsilon: float
    delta: float


def colluders(sites: int) -> int:
    """Return the dissertation's largest S_C: ⌈S/3⌉ - 1."""
    return math.ceil(sites / 3) - 1


def site_count(scheme: str, sites: int) -> int:
    """Return the number of sites, which is 1 with all the data in one place or one site's part."""
    return 1 if scheme in ("pooled", "local") else sites


def even_sizes(count: int, sites: int) -> list[int]:
    """Return the units of each site, if they are divided evenly."""
    return [len(part) for part in np.array_split(np.empty(count), sites)]


def noisy_run(
    study: Study,
    shape: Shape,
    mean: Mean,
    generator: np.random.Generator,
    *,
    exact: Collection[str] = (),
) -> Result:
    """Run a study whose sites' data are in one place.

    Parameters
    ----------
    study : Study
    shape : Shape
    mean : callable
        Clipped mean over all units of all sites, for a query and a bound.
    generator : numpy.random.Generator
        Generator of the noise.
    exact : collection of str
        Stages that are released without noise, although the budget includes them.
    """
    plan = make_plan(study, shape)

    def answer(query: Query) -> Release:
        stage = plan.stage(query.stage)
        mechanism = stage.mechanism
        values = mean(query, mechanism.bound).ravel()
        free = study.privacy.scheme == "none" or query.stage in exact
        deviation = 0.0 if free else mechanism.noise.aggregate()
        noise = deviation * generator.standard_normal(values.size) if deviation else 0.0
        return Release(values + noise, deviation)

    return result_of(REGISTRY[study.algorithm](study.analysis, shape), answer)


def private_run(
    algorithm: str,
    analysis: Mapping[str, object],
    table: Array,
    views: Views,
    scheme: str,
    promise: Promise,
    generator: np.random.Generator,
    *,
    apart: bool = False,
) -> Result:
    """Run an analysis of a D x N table that is divided evenly among some sites.

    ``pooled`` is one site with all the data, ``local`` one site with its own part, and
    ``published`` the noise of κ = 1. With ``apart`` every site is asked for its own mean, as
    constants of sites require. Otherwise, all are asked in one place, as if they were the first.
    """
    if scheme == "local":
        table = table[:, : table.shape[1] // promise.sites]
    study = paper_study(algorithm, analysis, scheme, promise, views=views)
    count = table.shape[1]
    sizes = even_sizes(count, len(study.sites))
    parts = np.split(table, np.cumsum(sizes)[:-1], axis=1) if apart else [table]
    data = [table_data(part, views) for part in parts]
    shape = data[0].extent.shape(sizes, sizes, "subject")
    plan = REGISTRY[algorithm](study.analysis, shape)

    def mean(query: Query, bound: Bound) -> Array:
        local = plan.statistics[query.statistic]
        told = [local(plan, s, replace(query, site=n), bound) for n, s in enumerate(data)]
        return np.average(told, axis=0, weights=[own.units for own in data])

    return noisy_run(study, shape, mean, generator)


def table_data(table: Array, views: Views) -> ArrayData:
    """Return data in which each column is a participant."""
    data, whole = ArrayData([table[:, :1]], views=views), np.ascontiguousarray(table)
    data.lengths = [1] * table.shape[1]
    data.table = lambda: whole  # type: ignore[method-assign]
    return data


def paper_study(
    algorithm: str,
    analysis: Mapping[str, object],
    scheme: str,
    promise: Promise,
    *,
    views: Views = (),
    unit: Unit = "subject",
) -> Study:
    """Write a study of equal sites, with noise as in one of the curves."""
    count = site_count(scheme, promise.sites)
    return study_of(
        *(algorithm, analysis, count, promise.epsilon),
        views=views,
        unit=unit,
        delta=promise.delta,
        scheme={"cape": "cape", "published": "cape", "none": "none"}.get(scheme, "local"),
        boost=1.0 if scheme == "published" else "exact",
        colluding_sites=0 if count == 1 else colluders(count),
    )
