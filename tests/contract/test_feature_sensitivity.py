"""Attempts to move a statistic of persons' vectors further than its sensitivity says.

The attacker replaces one person by anything, and as the centre chooses every argument too.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query
from consortium.kernels.classifier import parameter_count
from consortium.privacy.bounds import Bound
from consortium.privacy.lattice import Lattice
from consortium.privacy.view_bounds import Part, PartsBound
from consortium.simulation.array_data import ArrayData
from tests.support.feature_cases import FEATURE_CASES, FEATURE_STATISTICS, make_feature_sites
from tests.support.series_cases import shape_of

CONES = {"coordinate_moment", "mixture_second", "regression_moment", "topic_cube", "topic_second"}


def site_of(table):
    return ArrayData([person[:, None] for person in table.T])


def moved(name, bound, query, one, other):
    """Distance between the statistics of neighbours over the allowed one."""
    with np.errstate(all="ignore"):
        before, after = (FEATURE_STATISTICS[name](site_of(t), query, bound) for t in (one, other))
    return np.linalg.norm(after - before) / bound.sensitivity(one.shape[1])


def parts_bound(norm, cone, features):
    """Views of one entry and of all others, as `coordinate` plans them: ‖z‖² or ‖z‖ is the norm."""
    reach, second = (np.sqrt(norm), 0.7) if cone else (norm, 0.8)
    parts = (Part(1, 0.6 * reach, 1.0), Part(features - 1, second * reach, 1.0))
    return PartsBound(norm, cone, parts=parts, constant=np.sqrt(0.15) * reach if cone else 0.0)


BY_PARTS = {"coordinate_mean", "coordinate_moment"}


def bound_of(name, norm, features=3):
    if name in BY_PARTS:
        return parts_bound(norm, name in CONES, features)
    return Bound(norm, cone=name in CONES)


def plain_query(generator, features):
    return Query("stage", "coordinate")


def regression_query(generator, features):
    scales = 10.0 ** generator.uniform(-3, 3, 3)
    arguments = {
        "target": int(generator.integers(features)),
        "reach": float(scales[0]),
        "intercept": float(scales[1] * generator.integers(2)),
        "weight": float(scales[2]),
    }
    return Query("stage", "regression_moment", arguments)


def network_query(generator, features):
    classes = int(generator.integers(1, features - 1))
    units = [int(n) for n in generator.integers(1, 4, int(generator.integers(0, 3)))] + [classes]
    count = parameter_count([features - classes, *units])
    arguments = {
        "parameters": 10.0 ** generator.uniform(-4, 9) * generator.standard_normal(count),
        "units": np.array(units, dtype=np.float64),
        "target": int(generator.integers(features - classes + 1)),
    }
    return Query("stage", "network_gradient", arguments)


def mixture_query(generator, features):
    size = int(generator.integers(1, 5))
    arguments = {
        "reach": float(10.0 ** generator.uniform(-3, 3)),
        "constant": float(10.0 ** generator.uniform(-3, 3)),
        "whitening": 10.0 ** generator.uniform(-4, 9) * generator.standard_normal((features, size)),
    }
    return Query("stage", "mixture", arguments)


def embedding_query(generator, features):
    size = 10.0 ** generator.uniform(-4, 9)
    frequencies = size * generator.standard_normal((features, int(generator.integers(1, 9))))
    return Query("stage", "mean_embedding", {"frequencies": frequencies})


def topic_query(generator, features):
    size = int(generator.integers(1, features + 1))
    components = int(generator.integers(1, 5))
    scale = 10.0 ** generator.uniform(-4, 9)
    arguments = {
        "size": size,
        "starts": generator.integers(0, features - size + 1, 3).astype(float),
        "whitening": scale * generator.standard_normal((size, components)),
    }
    return Query("stage", "topic", arguments)


QUERIES = {
    "coordinate_mean": plain_query,
    "coordinate_moment": plain_query,
    "mean_embedding": embedding_query,
    "mixture_second": mixture_query,
    "mixture_third": mixture_query,
    "network_gradient": network_query,
    "regression_moment": regression_query,
    "topic_cube": topic_query,
    "topic_second": topic_query,
    "topic_third": topic_query,
}


def person(generator, features):
    """Harmless, hostile, or as the far end of a view's limits."""
    size = 10.0 ** generator.integers(-4, 13)
    kind = generator.integers(4)
    values = size * generator.standard_normal(features)
    if kind == 0:
        values[:] = 0
    elif kind == 1:
        values = np.sign(values)
    elif kind == 2:
        values[1:] *= 1e-9
    return values


def test_every_statistic_is_attacked():
    assert set(QUERIES) == set(FEATURE_STATISTICS) == set(REACHING)


@pytest.mark.parametrize("name", sorted(FEATURE_STATISTICS))
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float32, np.float64]))
def test_no_replacement_moves_a_statistic_further_than_its_sensitivity(name, seed, dtype):
    generator = np.random.default_rng(seed)
    features, persons = int(generator.integers(3, 7)), int(generator.integers(1, 5))
    bound = bound_of(name, float(10.0 ** generator.uniform(-2, 1)), features)
    query = QUERIES[name](generator, features)
    one = np.stack([person(generator, features) for _ in range(persons)], axis=1).astype(dtype)
    other = one.copy()
    other[:, generator.integers(persons)] = person(generator, features)
    assert moved(name, bound, query, one, other) <= 1 + 1e-9


REACHING = {  # two persons as far apart as the clip allows, the query, and the bound
    "coordinate_mean": ([1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], {}, 0.9),
    "coordinate_moment": ([1.0, 1.0, 0.0], [-1.0, 3 / 7, np.sqrt(40) / 7], {}, 0.9),
    "mean_embedding": (
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        {"frequencies": np.pi * np.eye(3)[:, :1]},
        1.0,
    ),
    "mixture_second": (
        [3.0, 0.0, 1.0],
        [0.0, 2.0, 0.0],
        {"reach": 1.0, "constant": 0.01},
        1.0,
    ),
    "mixture_third": (
        [3.0, 0.0, 1.0],
        [-3.0, 0.0, -1.0],
        {"reach": 9.0, "whitening": np.eye(3)},
        1.0,
    ),
    "topic_second": (
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        {"starts": np.zeros(3), "size": 3},
        1.0,
    ),
    "topic_cube": (
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        {"starts": np.zeros(3), "size": 3},
        1.0,
    ),
    "topic_third": (
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        {"starts": np.zeros(3), "whitening": np.array([[1.0], [-1.0], [0.0]])},
        1.0,
    ),
    "network_gradient": (
        [0.0, 0.0, 1.0],
        [0.0, 0.0, -1.0],
        {"target": 2, "units": np.ones(1), "parameters": np.zeros(3)},
        0.4,
    ),
    "regression_moment": (
        [3.0, 4.0, 1.0],
        [-4.0, 3.0, 0.0],
        {"target": 2, "reach": 1.0, "intercept": 0.0, "weight": 0.1},
        0.9,
    ),
}


@pytest.mark.parametrize("name", sorted(FEATURE_STATISTICS))
def test_some_replacement_comes_close(name):
    first, second, arguments, norm = REACHING[name]
    bound, query = bound_of(name, norm), Query("stage", name, arguments)
    one = np.tile(np.array(first)[:, None], 4)
    other = one.copy()
    other[:, 0] = second
    assert 0.95 <= moved(name, bound, query, one, other) <= 1 + 1e-6


def test_the_cones_are_those_that_the_plans_claim():
    claimed = set()
    for name, views, analysis in FEATURE_CASES:
        algorithm, shape = REGISTRY[name], shape_of(make_feature_sites(views))
        for release in algorithm.releases(algorithm.Parameters(**analysis), shape):
            claimed |= {release.statistic} if release.bound.cone else set()
    assert claimed == CONES


@pytest.mark.parametrize("name", sorted(FEATURE_STATISTICS))
def test_the_centre_learns_nothing_from_an_overflow(name):
    # An error, or one person's data missing, would be a number that nobody added noise to.
    table = np.array([[1.0, -2.0, 0.5], [0.5, 1.5, -1.0], [1e30, 1.0, 1.0]], dtype=np.float32)
    query = QUERIES[name](np.random.default_rng(0), 3)
    arguments = {
        key: value
        if isinstance(value, int) or key in ("units", "starts")
        else 1e300 * (value + 1.0)
        for key, value in query.arguments.items()
    }
    with np.errstate(all="ignore"):
        statistic = FEATURE_STATISTICS[name](
            site_of(table), Query("stage", name, arguments), bound_of(name, 1.0)
        )
    Lattice(2.0**-20, 32).encode(statistic, 1.0)
