"""Attempts to move a site's statistic further than its sensitivity says.

The attacker replaces one unit by anything, and as the centre chooses every
argument of the query as well.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData

STATISTICS = {
    name: local
    for algorithm in REGISTRY.values()
    if algorithm.takes != "features"
    for name, local in algorithm.statistics.items()
}
CONES = {"projectors", "second_moment", "stacked_moment", "view_moment"}
OF_VECTORS = {
    name for each in REGISTRY.values() if each.takes == "features" for name in each.statistics
}
PAIRS = [
    (name, unit)
    for name in sorted(STATISTICS)
    for unit in ("subject", "timepoint")
    if unit == "subject" or name not in OF_VECTORS | {"projectors"}
]
TOLERANCE = 1e-9  # floating point, in float64


def moved(name, unit, bound, query, one, other):
    """Distance between the statistics of neighbours over the allowed one."""
    views = (("first", 1), ("rest", len(one[0]) - 1))
    sites = [ArrayData(blocks, unit, views=views) for blocks in (one, other)]
    with np.errstate(all="ignore"):
        before, after = (STATISTICS[name](site, query, bound).ravel() for site in sites)
    units = len(one) if unit == "subject" else sum(block.shape[1] for block in one)
    return np.linalg.norm(after - before) / bound.sensitivity(units)


def block(generator, features, volumes, dtype):
    """Data of one subject, from harmless to hostile."""
    size = 10.0 ** generator.integers(-4, 13)
    values = size * generator.standard_normal((features, volumes))
    kind = generator.integers(6)
    if kind == 0:
        values[:] = 0
    elif kind == 1:
        values[:] = values[:1]  # all features alike
    elif kind == 2:
        values[:, 1:] = values[:, :1]  # all volumes alike
    elif kind == 3:
        values[1:] *= 1e-9
    return values.astype(dtype)


def hostile_query(generator, name, features, size):
    """A query of a centre that picks its arguments against the data."""
    scales = 10.0 ** generator.integers(-4, 9, 3)
    unmixing = scales[0] * generator.standard_normal((size, size))
    whitening = scales[1] * generator.standard_normal((features, size))
    kind = generator.integers(4)
    if kind == 0:  # nearly parallel rows
        unmixing = unmixing[:1] + 1e-7 * scales[0] * unmixing
    elif kind == 1:
        whitening = whitening[:, :1] + scales[2] * 1e-6 * generator.standard_normal(whitening.shape)
    elif kind == 2:
        unmixing[:] = np.eye(size)
    arguments = {
        "unmixing": unmixing,
        "whitening": whitening,
        "basis": whitening,
        "bias": scales[2] * generator.standard_normal(size),
        "score": str(generator.choice(["tanh", "volatility"])),
        "directions": int(generator.integers(1, 5)),
        "cutoff": 0.0,
        "global_signal": str(generator.choice(["keep", "remove"])),
    }
    if name in OF_VECTORS:
        arguments |= hostile_geometry(generator, name, features, size)
    return Query("stage", name, arguments)


def hostile_geometry(generator, name, features, size):
    """Centre, norms and factors of any size and sign, and a basis that may not be orthonormal."""
    scales = 10.0 ** generator.integers(-6, 13, 4)
    arguments = {
        "centre": scales[0] * generator.standard_normal(features),
        "norms": scales[1] * generator.standard_normal(2),
        "factors": scales[2] * generator.standard_normal(2),
        "constant": float(scales[3] * generator.standard_normal()),
        "view": 1,
        "basis": scales[0] * generator.standard_normal((features - 1, size)),
    }
    if generator.integers(2):
        arguments["norms"] = np.full(2, 10.0 ** generator.integers(-2, 13))
        arguments["factors"] = 1.0 / arguments["norms"]
    if generator.integers(2):
        arguments["basis-rest"] = scales[1] * generator.standard_normal((features - 1, size))
    return arguments


@pytest.mark.parametrize(("name", "unit"), PAIRS)
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float32, np.float64]))
def test_no_replacement_moves_a_statistic_further_than_its_sensitivity(name, unit, seed, dtype):
    generator = np.random.default_rng(seed)
    features, size = (int(n) for n in generator.integers(2, 6, 2))
    bound = Bound(float(10.0 ** generator.uniform(-2, 1)), cone=name in CONES)
    query = hostile_query(generator, name, features, size)
    most = 2 if name in OF_VECTORS else 6  # one vector for each person
    lengths = generator.integers(1, most, int(generator.integers(1, 4)))
    one = [block(generator, features, length, dtype) for length in lengths]
    other = [values.copy() for values in one]
    place = int(generator.integers(len(one)))
    volumes = slice(None) if unit == "subject" else slice(0, 1)
    other[place][:, volumes] = block(generator, features, lengths[place], dtype)[:, volumes]
    assert moved(name, unit, bound, query, one, other) <= 1 + TOLERANCE


def constant(*values, volumes=1):
    return np.tile(np.array(values, dtype=np.float32)[:, None], (1, volumes))


def whitened_query(name, score="tanh"):
    arguments = {"unmixing": np.eye(2), "whitening": np.eye(2), "bias": np.zeros(2), "score": score}
    if name == "maps":
        arguments["unmixing"] = np.diag([1.0, 0.0])  # no cone for the same reason as below
    arguments["basis"] = np.array([[1.0], [0.0]])  # no cone: it sees one feature of two
    arguments |= {"directions": 1, "cutoff": 0.0, "global_signal": "keep"}
    if name in OF_VECTORS:
        arguments |= {"centre": np.zeros(3), "norms": np.ones(2), "factors": np.ones(2)}
        arguments |= {"view": 1, "constant": 0.6}
    return Query("stage", name, arguments)


REACHING = {  # two blocks of one unit that lie as far apart as the clip allows, and a bound
    "mean_volume": (constant(3, 4), constant(-3, -4), 1.0),
    "projectors": (constant(9, 0), constant(0, 9), 1.0),
    "second_moment": (constant(9, 0), constant(0, 9), 1.0),
    "maps": (constant(0.1, 1), constant(0.1, -1), 0.01),
    "power": (constant(0.1, 1), constant(0.1, -1), 0.01),
    "rotation": (constant(3, 1), constant(1, 3), 0.1),
    "infomax": (constant(0.1, 0), constant(-0.1, 0), 0.01),
    "fixed_point": (constant(0.77, 0.77), constant(0.77, -0.77), 0.3),
    "stacked_location": (constant(0, 0.03, 0), constant(0, -0.03, 0), 0.03),
    # Orthogonal with the constant: vectors at an angle whose cosine is minus 0.36.
    "stacked_moment": (constant(0, 1, 0), constant(0, -0.36, 0.93295), 1.36),
    "view_moment": (constant(0, 1, 0), constant(0, 0, 1), 1.0),
    "view_product": (constant(0, 0.1, 0.9), constant(0, 0.1, -0.9), 0.01),
}


@pytest.mark.parametrize(("name", "unit"), PAIRS)
def test_some_replacement_comes_close(name, unit):
    first, second, norm = REACHING[name]
    bound = Bound(norm, cone=name in CONES)
    others = [constant(*[0.5, 0.25, 0.1][: len(first)])] * 3
    ratio = moved(name, unit, bound, whitened_query(name), [first, *others], [second, *others])
    assert 0.95 <= ratio <= 1 + 1e-6


@pytest.mark.parametrize("name", ["rotation", "fixed_point"])
def test_some_replacement_comes_close_with_the_volatility_score(name):
    first, second = {
        "rotation": (constant(3, 1, volumes=5), constant(1, 3, volumes=5)),
        "fixed_point": (constant(1, 1, volumes=5), constant(1, -1, volumes=5)),
    }[name]
    query = whitened_query(name, "volatility")
    assert moved(name, "subject", Bound(0.1), query, [first], [second]) >= 0.95


def test_the_cones_are_those_that_the_plans_claim():
    from tests.support.series_cases import CASES, shape_of, sites_for

    claimed = set()
    for name, analysis, unit in CASES:
        algorithm = REGISTRY[name]
        parameters = algorithm.Parameters.model_validate(analysis)
        for release in algorithm.releases(parameters, shape_of(sites_for(name, unit))):
            claimed |= {release.statistic} if release.bound.cone else set()
    assert claimed == CONES


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_released_second_moment_is_in_the_cone(seed):
    # √2·B holds only for positive semidefinite contributions; look at them, not at the formula.
    from consortium.kernels.moments import unpack_symmetric

    generator = np.random.default_rng(seed)
    values = block(generator, 4, 3, np.float32)
    for unit in ("subject", "timepoint"):
        packed = STATISTICS["second_moment"](
            ArrayData([values], unit), Query("pca", "second_moment"), Bound(1.0, cone=True)
        )
        assert np.linalg.eigvalsh(unpack_symmetric(packed)).min() >= -1e-12


def test_the_centre_learns_nothing_from_an_overflow():
    # An error, or one person's data missing, would be a number that nobody added noise to.
    from consortium.privacy.lattice import Lattice

    person = np.array([[1.0, -2.0, 0.5], [0.5, 1.5, -1.0]], dtype=np.float32)
    for name in ("rotation", "fixed_point", "infomax", "power", "maps"):
        for unit in ("subject", "timepoint"):
            query = Query(
                "ica",
                name,
                {
                    "unmixing": 1e30 * np.ones((2, 2)),
                    "whitening": 1e30 * np.eye(2),
                    "basis": 1e30 * np.eye(2),
                    "bias": np.zeros(2),
                    "score": "volatility",
                },
            )
            with np.errstate(all="ignore"):
                statistic = STATISTICS[name](ArrayData([person], unit), query, Bound(1.0))
            Lattice(2.0**-20, 32).encode(statistic, 1.0)
