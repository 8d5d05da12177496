"""One run of an algorithm with the noise that a plan gives it.

The releases carry the planned Gaussian noise of the aggregate, without the protocol: the tests
show that the protocol adds the same. So ten runs of hundreds of points take minutes.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

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


def colluders(sites: int) -> int:
    """Largest S_C of the dissertation: ⌈S/3⌉ - 1."""
    return math.ceil(sites / 3) - 1


def site_count(scheme: str, sites: int) -> int:
    """Sites that take part: all the data in one place, or one site's part alone, are one."""
    return 1 if scheme in ("pooled", "local") else sites


def even_sizes(count: int, sites: int) -> list[int]:
    """Units of each site, when they are divided evenly."""
    return [len(part) for part in np.array_split(np.empty(count), sites)]


def noisy_run(
    study: Study,
    shape: Shape,
    mean: Mean,
    generator: np.random.Generator,
    *,
    exact: Collection[str] = (),
) -> Result:
    """Run a study whose sites' data lie in one place.

    Parameters
    ----------
    study : Study
    shape : Shape
    mean : callable
        Clipped mean over all units of all sites, for a query and a bound.
    generator : numpy.random.Generator
        Of the noise.
    exact : collection of str
        Stages that are released without noise, although the budget pays for them.
    """
    plan = make_plan(study, shape)
    run = REGISTRY[study.algorithm](study.analysis, shape).run()
    release = None
    try:
        while True:
            query = next(run) if release is None else run.send(release)
            stage = plan.stage(query.stage)
            mechanism = stage.mechanism
            values = mean(stage.release.complete(query), mechanism.bound).ravel()
            free = study.privacy.scheme == "none" or query.stage in exact
            deviation = 0.0 if free else mechanism.noise.aggregate()
            noise = deviation * generator.standard_normal(values.size) if deviation else 0.0
            release = Release(values + noise, deviation)
    except StopIteration as stop:
        result: Result = stop.value
        return result


def private_run(
    algorithm: str,
    analysis: Mapping[str, object],
    table: Array,
    views: Views,
    scheme: str,
    *,
    sites: int,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
    apart: bool = False,
) -> Result:
    """Run an analysis of a D x N table that lies evenly at some sites.

    ``epsilon`` is the whole study's, against the worst coalition; ``pooled`` is one site with all
    the data, ``local`` one site with its own part, and ``published`` the noise of κ = 1. With
    ``apart`` every site is asked for its own mean, as constants of sites need it; without, all
    are asked in one place, as if they were the first site.
    """
    if scheme == "local":
        table = table[:, : table.shape[1] // sites]
    study = paper_study(algorithm, analysis, scheme, sites, epsilon, delta, views=views)
    count = table.shape[1]
    sizes = even_sizes(count, len(study.sites))
    parts = np.split(table, np.cumsum(sizes)[:-1], axis=1) if apart else [table]
    data = [_persons(part, views) for part in parts]
    shape = data[0].extent.shape(sizes, sizes, "subject")
    statistics = REGISTRY[algorithm].statistics

    def mean(query: Query, bound: Bound) -> Array:
        local = statistics[query.statistic]
        told = [local(own, replace(query, site=site), bound) for site, own in enumerate(data)]
        return np.average(told, axis=0, weights=[own.units for own in data])

    return noisy_run(study, shape, mean, generator)


def _persons(table: Array, views: Views) -> ArrayData:
    """Data of which each column is a participant."""
    data = ArrayData([table[:, :1]], views=views)
    data.lengths = [1] * table.shape[1]
    data.table = lambda: table  # type: ignore[method-assign]
    return data


def paper_study(
    algorithm: str,
    analysis: Mapping[str, object],
    scheme: str,
    sites: int,
    epsilon: float,
    delta: float,
    *,
    views: Views = (),
    unit: Unit = "subject",
) -> Study:
    """Write a study of so many equal sites, with noise as one of the curves has it."""
    count = site_count(scheme, sites)
    privacy = {
        "unit": unit,
        "epsilon": epsilon,
        "delta": delta,
        "scheme": {"cape": "cape", "published": "cape", "none": "none"}.get(scheme, "local"),
        "boost": 1.0 if scheme == "published" else 10_000.0,
        "colluding_sites": 0 if count == 1 else colluders(count),
    }
    return Study.model_validate(
        {
            "study": "paper",
            "sites": [f"site{number}" for number in range(count)],
            "data": {"detrend": "none", "standardize": "none"},
            "features": [
                {
                    "name": name,
                    "source": "table",
                    "columns": {f"{name}[1-{size}]": {"low": -1, "high": 1}},
                }
                for name, size in views
            ],
            "privacy": privacy,
            "algorithm": algorithm,
            "analysis": dict(analysis),
        }
    )
