"""Studies and sites in memory, for tests of the algorithms and of the engine."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import NeighbourAnswers, Release
from consortium.engine.queries import encode_query
from consortium.simulation.array_data import ArrayData
from consortium.study.spec import Study

SITES = ("north", "east", "south", "west")

CASES = (
    ("average", {}, "subject"),
    ("average", {"bound": 0.3}, "timepoint"),
    ("pca", {"components": 2}, "subject"),
    ("pca", {"components": 6, "bound": 0.7}, "timepoint"),
    ("pca", {"components": 2, "solver": "power"}, "subject"),
    ("pca", {"components": 6, "solver": "power", "iterations": 2, "bound": 0.4}, "timepoint"),
    ("ica", {"components": 3, "rounds": 3}, "subject"),
    ("ica", {"components": 3, "rounds": 2, "pca_solver": "power"}, "subject"),
    ("ica", {"components": 2, "rounds": 2, "pca_solver": "power"}, "timepoint"),
    ("ica", {"components": 3, "rounds": 2, "maps": True}, "subject"),
    ("ica", {"components": 2, "rounds": 2, "maps": True, "maps_bound": 0.5}, "timepoint"),
    ("ica", {"components": 2, "rounds": 3, "score": "tanh"}, "subject"),
    ("ica", {"components": 3, "rounds": 2, "optimizer": "fixed-point"}, "subject"),
    ("ica", {"components": 3, "rounds": 2, "optimizer": "gradient"}, "subject"),
    ("ica", {"components": 3, "rounds": 3, "pca_share": 0.2}, "timepoint"),
    ("ica", {"components": 3, "rounds": 2, "optimizer": "gradient"}, "timepoint"),
    ("group_ica", {"components": 2, "replays": 10}, "subject"),
    ("group_ica", {"directions": 3, "global_signal": "remove", "replays": 10}, "subject"),
    ("cca", {"pairs": 2}, "subject"),
    ("cca", {"pairs": 3, "centre_share": 0.0, "constant": 0.0, "shares": {"faces": 2}}, "subject"),
    ("cca", {"pairs": 1, "reduce": {"faces": 2, "age": 1}, "radii": {"age": 2.0}}, "subject"),
    ("cca", {"pairs": 1, "reduce": {"faces": 1}, "solver": "power"}, "subject"),
)
"""Every algorithm with every statistic, in both units; a new algorithm adds its lines."""
SUBJECT_ONLY = {"group_ica"}
"""Algorithms of image series that refuse another unit."""


VIEWS = (("faces", 3), ("erp", 2), ("age", 1))
"""Of the studies of feature vectors."""


def table_views(views=VIEWS):
    """Views of tables with so many columns."""
    limits = {"low": -1.0, "high": 1.0}
    return [
        {"name": name, "source": "table", "columns": {f"{name}[1-{size}]": dict(limits)}}
        for name, size in views
    ]


def make_study(algorithm="average", analysis=None, unit="subject", *, sites=SITES, **privacy):
    """A valid study; timepoint studies turn off what mixes volumes."""
    plain = {"standardize": "none"} if unit == "timepoint" else {}
    if unit == "timepoint" or algorithm == "average":
        plain["detrend"] = "none"
    return Study.model_validate(
        {
            "study": "small",
            "sites": list(sites),
            "data": plain,
            "privacy": {
                "unit": unit,
                "epsilon": 8.0,
                "delta": 1e-5,
                "colluding_sites": 1,
                **privacy,
            },
            "algorithm": algorithm,
            "analysis": analysis or {},
            "features": table_views() if REGISTRY[algorithm].takes == "features" else (),
        }
    )


def make_sites(unit="subject", *, features=6, subjects=(3, 1, 4, 2), seed=0, dtype=np.float32):
    """Sites whose subjects have different numbers of volumes."""
    generator = np.random.default_rng(seed)
    spread = generator.uniform(0.2, 1.0, (features, 1))
    return [
        ArrayData(
            [
                (spread * generator.standard_normal((features, 12 + m))).astype(dtype)
                for m in range(count)
            ],
            unit,
        )
        for count in subjects
    ]


def make_vectors(*, subjects=(3, 1, 4, 2), seed=0, views=VIEWS, dtype=np.float64):
    """Sites with one vector for each person, whose views have two sources in common."""
    generator = np.random.default_rng(seed)
    mixing = generator.standard_normal((sum(size for _, size in views), 2)) / 4
    noise = 0.1 * generator.standard_normal((sum(subjects), len(mixing), 1))
    people = [0.2 + mixing @ generator.standard_normal((2, 1)) + each for each in noise]
    stops = np.cumsum((0, *subjects))
    return [
        ArrayData([p.astype(dtype) for p in people[a:b]], views=views) for a, b in pairwise(stops)
    ]


def sites_for(name, unit):
    """What an algorithm takes."""
    return make_vectors() if REGISTRY[name].takes == "features" else make_sites(unit)


def shape_of(sites):
    """Public sizes."""
    return sites[0].extent.shape(
        [len(site.lengths) for site in sites],
        [sum(site.lengths) for site in sites],
        sites[0].unit,
    )


def pooled_mean(algorithm, query, bound, sites):
    """The mean over all units of all sites, in plain NumPy."""
    shape = shape_of(sites)
    weights = np.array(shape.units) / sum(shape.units)
    local = algorithm.statistics[query.statistic]
    return sum(w * local(s, query, bound).ravel() for w, s in zip(weights, sites, strict=True))


def hearing(query, stage, site, told):
    """The query as a site gets it, with what it heard if the stage hears."""
    if not stage.neighbours:
        return query
    answers = np.zeros(
        (len(told), len(stage.neighbours), told[0].shape[1] if told else stage.entries)
    )
    for number, rows in enumerate(told):
        within = [site, *stage.neighbours[site]]
        answers[number, within] = rows[within]
    return replace(query, neighbour_answers=NeighbourAnswers(site, answers))


def answered(algorithm, query, stage, sites, told, noise):
    """What is released of the sites' answers: their mean, or a row for each of them."""
    local = algorithm.statistics[query.statistic]
    rows = [
        local(each, hearing(query, stage, site, told), stage.bound).ravel()
        for site, each in enumerate(sites)
    ]
    if stage.released == "each":
        return np.stack([row + noise(stage.entries) for row in rows])
    return np.average(rows, axis=0, weights=shape_of(sites).units) + noise(stage.entries)


def drive(algorithm, parameters, sites, noise=lambda entries: 0.0):
    """Run an algorithm without an engine; returns its queries, releases and result.

    Queries of a stage that hears are recorded as the first site gets them.
    """
    planned = {r.stage: r for r in algorithm.releases(parameters, shape_of(sites))}
    run = algorithm.run(parameters, shape_of(sites))
    queries, releases, told = [], [], []
    try:
        query = next(run)
        while True:
            stage = planned[query.stage]
            queries.append(hearing(query, stage, 0, told))
            values = answered(algorithm, query, stage, sites, told, noise)
            told += [values] if stage.released == "each" else []
            releases.append(Release(values, 0.0, tuple(range(len(sites)))))
            query = run.send(releases[-1])
    except StopIteration as stop:
        return queries, releases, stop.value


def loud(seed):
    """Noise for `drive` that is larger than any signal."""
    generator = np.random.default_rng(seed)
    return lambda entries: generator.standard_normal(entries)


def form(query):
    """Shapes and types of a query's arguments, as a plan holds them."""
    return {
        name: value.shape if isinstance(value, np.ndarray) else type(value)
        for name, value in query.arguments.items()
    }


def check_fixed(stage, query):
    """What study and sizes decide is asked for as the plan has it."""
    for name, value in stage.fixed.items():
        assert np.array_equal(value() if callable(value) else value, query.arguments[name]), name


def check_replay(algorithm, parameters, sites):
    """The same releases lead to the same queries and the same result."""
    queries, releases, result = drive(algorithm, parameters, sites, loud(3))
    again = algorithm.run(parameters, shape_of(sites))
    assert encode_query(next(again)) == encode_query(queries[0])
    for release, query in zip(releases, queries[1:], strict=False):
        assert encode_query(again.send(release)) == encode_query(query)
    with pytest.raises(StopIteration) as stop:
        again.send(releases[-1])
    for key, array in stop.value.value.arrays.items():
        assert np.array_equal(array, result.arrays[key])


def check_sizes_and_bounds(algorithm, parameters, sites):
    """Statistics have the planned size and keep their bound, at every site."""
    planned = {r.stage: r for r in algorithm.releases(parameters, shape_of(sites))}
    queries, _, _ = drive(algorithm, parameters, sites, loud(2))
    for query in queries:
        stage = planned[query.stage]
        for site in sites:
            statistic = algorithm.statistics[query.statistic](site, query, stage.bound)
            assert statistic.size == stage.entries
            assert statistic.dtype == np.float64
            assert np.linalg.norm(statistic) <= stage.bound.norm * (1 + 1e-9)
