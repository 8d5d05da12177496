"""Attempts to move a site's statistic further than its sensitivity says.

The attacker replaces one unit by anything, and as the centre chooses every argument of the query
as well. Statistics of neighbours' answers have `tests/unit/algorithms/test_admm_sensitivity.py`.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sensitivity_cases import all_attacks
from benchmarks.sensitivity_search import mutated
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query
from consortium.kernels.moments import unpack_symmetric
from consortium.privacy.bounds import Bound
from consortium.privacy.lattice import Lattice
from consortium.privacy.view_bounds import Part, PartsBound
from consortium.simulation.array_data import ArrayData
from tests.support.cases import CASES, planned_by, prepared
from tests.support.hostile_questions import STATISTICS, block, hostile_question

LOCAL = {name: local for each in REGISTRY.values() for name, local in each.statistics.items()}
OF_VECTORS = {
    name for each in REGISTRY.values() if each.takes == "features" for name in each.statistics
}
PAIRS = [
    (name, unit)
    for name in STATISTICS
    for unit in ("subject", "timepoint")
    if unit == "subject" or name not in OF_VECTORS | {"projectors", "variances"}
]
TOLERANCE = 1e-9  # floating point, in float64
ATTACKS = {attack.name: attack for attack in all_attacks()}
PLANS = {
    name: [a.plan for a in ATTACKS.values() if a.start.query.statistic == name] for name in LOCAL
}
"""By statistic, of the analyses' own examples."""


class Kinds(NamedTuple):
    """Statistics by how a person moves them."""

    cones: set[str]
    moved_by_their_norm: set[str]
    by_parts: set[str]


@cache
def kinds():
    """What the registry's plans say; worked out once, and not while tests are collected."""
    planned = [r for each in CASES for r in planned_by(*prepared(*each.values)).values()]
    return Kinds(
        {release.statistic for release in planned if release.bound.cone},
        {r.statistic for r in planned if r.bound.influence == r.bound.norm},
        {r.statistic for r in planned if isinstance(r.bound, PartsBound)},
    )


def site_of(blocks, unit="subject"):
    return ArrayData(blocks, unit, views=(("first", 1), ("rest", len(blocks[0]) - 1)))


def parts_bound(norm, cone, features):
    """Views of one entry and of all others, as `coordinate` plans them: ‖z‖² or ‖z‖ is the norm."""
    reach, second = (np.sqrt(norm), 0.7) if cone else (norm, 0.8)
    parts = (Part(1, 0.6 * reach, 1.0), Part(features - 1, second * reach, 1.0))
    return PartsBound(norm, cone, parts=parts, constant=np.sqrt(0.15) * reach if cone else 0.0)


def bound_of(name, norm, features=3):
    cones, moved_by_their_norm, by_parts = kinds()
    if name == "mean_squares":
        return Bound(np.sqrt(1.5) * norm, influence=2 * norm)
    if name in by_parts:
        return parts_bound(norm, name in cones, features)
    if name in moved_by_their_norm:
        return Bound(norm, influence=norm)
    return Bound(norm, cone=name in cones)


def moved(plan, unit, bound, query, one, other):
    """Distance between the statistics of neighbours over the allowed one."""
    local = LOCAL[query.statistic]
    with np.errstate(all="ignore"):
        before, after = (local(plan, site_of(b, unit), query, bound).ravel() for b in (one, other))
    units = len(one) if unit == "subject" else sum(each.shape[1] for each in one)
    return np.linalg.norm(after - before) / bound.sensitivity(units)


def test_statistics_are_either_attacked_here_or_of_neighbours_or_new():
    assert set(STATISTICS) <= set(LOCAL)
    assert {name.split()[0].partition(".")[2] for name in ATTACKS} == set(LOCAL)


@pytest.mark.parametrize(("name", "unit"), PAIRS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float32, np.float64]))
def test_no_replacement_moves_a_statistic_further_than_its_sensitivity(name, unit, seed, dtype):
    generator = np.random.default_rng(seed)
    features = int(generator.integers(3, 7))
    bound = bound_of(name, float(10.0 ** generator.uniform(-2, 1)), features)
    query, plan = hostile_question(name, generator, features), PLANS[name][seed % len(PLANS[name])]
    most = 2 if name in OF_VECTORS else 6  # one vector for each person
    lengths = generator.integers(1, most, int(generator.integers(1, 5)))
    one = [block(generator, features, length, dtype) for length in lengths]
    other = [values.copy() for values in one]
    place = int(generator.integers(len(one)))
    volumes = slice(None) if unit == "subject" else slice(0, 1)
    other[place][:, volumes] = block(generator, features, lengths[place], dtype)[:, volumes]
    assert moved(plan, unit, bound, query, one, other) <= 1 + TOLERANCE


@pytest.mark.parametrize("name", sorted(ATTACKS))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_change_of_an_honest_question_moves_a_statistic_further(name, seed):
    attack, generator = ATTACKS[name], np.random.default_rng(seed)
    question = attack.start
    with np.errstate(all="ignore"):
        for _ in range(int(generator.integers(1, 6))):
            question = mutated(question, attack, generator)
        ratio = attack.ratio(question)
    assert ratio is None or ratio <= 1 + TOLERANCE


def constant(*values, volumes=1):
    return np.tile(np.array(values, dtype=np.float32)[:, None], (1, volumes))


TURN = {"unmixing": np.eye(2), "whitening": np.eye(2), "bias": np.zeros(2)}
FLAT = {"unmixing": np.diag([1.0, 0.0]), "whitening": np.eye(2)}  # no cone: sees one of two
VIEWS = {"centre": np.zeros(3), "norms": np.ones(2), "factors": np.ones(2), "constant": 0.6}
VIEWS["constants"] = 1
VIEW = {**VIEWS, "view": 1, "basis": np.array([[1.0], [0.0]])}
TOPIC = {"starts": np.zeros(3), "size": 3}
REACHING = {  # two units as far apart as the clip allows, the arguments, and a bound
    "mean_squares": ((3, 4), (-3, -4), {}, 1.0),
    "mean_volume": ((3, 4), (-3, -4), {}, 1.0),
    "second_moment": ((9, 0), (0, 9), {}, 1.0),
    "variances": ((3, 0), (0, 3), {"basis": np.eye(2)}, 1.0),
    "maps": ((0.1, 1), (0.1, -1), FLAT, 0.01),
    "power": ((0.1, 1), (0.1, -1), {"basis": np.array([[1.0], [0.0]])}, 0.01),
    "rotation": ((3, 1), (1, 3), TURN, 0.1),
    "infomax": ((0.1, 0), (-0.1, 0), TURN, 0.01),
    "fixed_point": ((0.77, 0.77), (0.77, -0.77), TURN, 0.3),
    "stacked_location": ((0, 0.03, 0), (0, -0.03, 0), VIEWS, 0.03),
    # Orthogonal with the constant: vectors at an angle whose cosine is minus 0.36.
    "stacked_moment": ((0, 1, 0), (0, -0.36, 0.93295), VIEWS, 1.36),
    "view_moment": ((0, 1, 0), (0, 0, 1), VIEW, 1.0),
    "view_product": ((0, 0.1, 0.9), (0, 0.1, -0.9), VIEW, 0.01),
    "coordinate_mean": ((1, 1, 0), (-1, -1, 0), {}, 0.9),
    "coordinate_moment": ((1, 1, 0), (-1, 3 / 7, np.sqrt(40) / 7), {}, 0.9),
    "mean_embedding": ((1, 0, 0), (0, 0, 0), {"frequencies": np.pi * np.eye(3)[:, :1]}, 1.0),
    "mixture_second": (
        *((3, 0, 1), (0, 2, 0)),
        {"reach": 1.0, "constant": 0.01, "constants": 1},
        1.0,
    ),
    "mixture_third": (
        *((3, 0, 1), (-3, 0, -1)),
        {"reach": 9.0, "whitening": np.eye(3), "offsets": np.full((1, 3), 0.01)},
        1.0,
    ),
    "topic_second": ((1, 0, 0), (0, 1, 0), TOPIC, 1.0),
    "topic_cube": ((1, 0, 0), (0, 1, 0), TOPIC, 1.0),
    "topic_third": (
        *((1, 0, 0), (0, 1, 0)),
        {"starts": np.zeros(3), "whitening": np.array([[1.0], [-1.0], [0.0]])},
        1.0,
    ),
    "network_gradient": (
        *((0, 0, 1), (0, 0, -1)),
        {"target": 2, "units": np.ones(1), "parameters": np.zeros(3), "held_out": 0.0}
        | {"constants": 0},
        0.4,
    ),
    "network_accuracy": (
        *((0, 0, 1), (0, 0, -1)),
        {"target": 2, "units": np.ones(1), "parameters": -np.ones(3), "held_out": 1.0}
        | {"constants": 0},
        0.4,
    ),
    "regression_influence": (
        *((9, 0, 1), (0, 9, 1)),
        {"target": 2, "reach": 9.0, "intercept": 0.0, "weight": 1.0, "constants": 0}
        | {"influence": np.eye(2), "residual": np.array([0.0, 0.0, 1.0])},
        0.9,
    ),
    "regression_moment": (
        *((3, 4, 1), (-4, 3, 0)),
        {"target": 2, "reach": 1.0, "intercept": 0.0, "weight": 0.1, "constants": 0},
        0.9,
    ),
}


@pytest.mark.parametrize(("name", "unit"), PAIRS)
def test_some_replacement_comes_close(name, unit):
    first, second, arguments, norm = REACHING[name]
    bound, query = bound_of(name, norm), Query("stage", name, arguments)
    others = [constant(*[0.5, 0.25, 0.1][: len(first)])] * 3
    one, other = ([constant(*values), *others] for values in (first, second))
    ratios = [moved(plan, unit, bound, query, one, other) for plan in PLANS[name]]
    assert 0.95 <= max(ratios) <= 1 + 1e-6


@pytest.mark.parametrize("name", ["rotation", "fixed_point"])
def test_some_replacement_comes_close_with_the_volatility_score(name):
    first, second = {
        "rotation": (constant(3, 1, volumes=5), constant(1, 3, volumes=5)),
        "fixed_point": (constant(1, 1, volumes=5), constant(1, -1, volumes=5)),
    }[name]
    plan = next(each for each in PLANS[name] if each.score == "volatility")
    query = Query("stage", name, TURN)
    assert moved(plan, "subject", Bound(0.1), query, [first], [second]) >= 0.95


@pytest.mark.parametrize(
    "name", [each for each, attack in ATTACKS.items() if attack.start.bound.cone]
)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_two_units_of_what_is_planned_as_a_cone_never_point_apart(name, seed):
    # √2·B holds only then; look at the contributions, not at the formula.
    attack, generator = ATTACKS[name], np.random.default_rng(seed)
    question, dtype = attack.start, attack.start.blocks[0].dtype
    features = len(question.blocks[0])
    with np.errstate(all="ignore"):
        one, other = (
            attack.local(
                attack.plan,
                attack.site_of([block(generator, features, 1, dtype)]),
                question.query,
                question.bound,
            )
            for _ in range(2)
        )
    assert one @ other >= -1e-12 * question.bound.norm**2


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_released_second_moment_is_in_the_cone(seed):
    generator = np.random.default_rng(seed)
    values = block(generator, 4, 3, np.float32)
    for unit in ("subject", "timepoint"):
        packed = LOCAL["second_moment"](
            None, ArrayData([values], unit), Query("pca", "second_moment"), Bound(1.0, cone=True)
        )
        assert np.linalg.eigvalsh(unpack_symmetric(packed)).min() >= -1e-12


@pytest.mark.parametrize(("name", "unit"), PAIRS)
@pytest.mark.parametrize("scale", [1e30, 1e300])
def test_the_centre_learns_nothing_from_an_overflow(name, unit, scale):
    # An error, or one person's data missing, would be a number that nobody added noise to.
    table = np.array([[1.0, -2.0, 0.5], [0.5, 1.5, -1.0], [1e30, 1.0, 1.0]], dtype=np.float32)
    people = list(table.T[:, :, None]) if name in OF_VECTORS else [table]
    query = hostile_question(name, np.random.default_rng(0), 3)
    arguments = {
        key: value
        if isinstance(value, int | str) or key in ("units", "starts")
        else scale * (value + 1.0)
        for key, value in query.arguments.items()
    }
    asked = site_of(people, unit), Query("stage", name, arguments), bound_of(name, 1.0)
    for plan in PLANS[name]:
        with np.errstate(all="ignore"):
            statistic = LOCAL[name](plan, *asked)
        Lattice(2.0**-20, 32).encode(statistic, 1.0)
