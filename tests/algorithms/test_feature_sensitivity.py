"""Attempts to move a statistic of persons' vectors further than its sensitivity says.

The attacker replaces one person by anything, and as the centre chooses every argument too.
"""

import numpy as np
import pytest
from feature_sites import FEATURE_CASES, FEATURE_STATISTICS, make_feature_sites
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_sites import shape_of

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query
from consortium.algorithms.memory import ArrayData
from consortium.privacy.bounds import Bound
from consortium.privacy.lattice import Lattice

CONES = {"regression_moment"}


def site_of(table):
    return ArrayData([person[:, None] for person in table.T])


def moved(name, bound, query, one, other):
    """Distance between the statistics of neighbours over the allowed one."""
    with np.errstate(all="ignore"):
        before, after = (FEATURE_STATISTICS[name](site_of(t), query, bound) for t in (one, other))
    return np.linalg.norm(after - before) / bound.sensitivity(one.shape[1])


def regression_query(generator, features):
    scales = 10.0 ** generator.uniform(-3, 3, 3)
    arguments = {
        "target": int(generator.integers(features)),
        "reach": float(scales[0]),
        "intercept": float(scales[1] * generator.integers(2)),
        "weight": float(scales[2]),
    }
    return Query("stage", "regression_moment", arguments)


QUERIES = {"regression_moment": regression_query}


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
    bound = Bound(float(10.0 ** generator.uniform(-2, 1)), cone=name in CONES)
    query = QUERIES[name](generator, features)
    one = np.stack([person(generator, features) for _ in range(persons)], axis=1).astype(dtype)
    other = one.copy()
    other[:, generator.integers(persons)] = person(generator, features)
    assert moved(name, bound, query, one, other) <= 1 + 1e-9


REACHING = {  # two persons as far apart as the clip allows, the query, and the bound
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
    bound, query = Bound(norm, cone=name in CONES), Query("stage", name, arguments)
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
        key: value if isinstance(value, int) else 1e300 * (value + 1.0)
        for key, value in query.arguments.items()
    }
    with np.errstate(all="ignore"):
        statistic = FEATURE_STATISTICS[name](
            site_of(table), Query("stage", name, arguments), Bound(1.0)
        )
    Lattice(2.0**-20, 32).encode(statistic, 1.0)
