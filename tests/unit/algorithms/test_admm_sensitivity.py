"""Attempts to move a site's answer in ADMM further than its sensitivity says.

The attacker replaces one person by anything, chooses the arguments as the centre, and says anything
as the neighbours.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms import REGISTRY
from consortium.algorithms.admm.plan import gain_influence, model_influence
from consortium.algorithms.base import NeighbourAnswers, Query
from consortium.errors import ProtocolError
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData

STATISTICS = REGISTRY["admm"].statistics


def answer(name, table, query, bound):
    site = ArrayData([person[:, None] for person in table.T])
    with np.errstate(all="ignore"):
        return STATISTICS[name](None, site, query, bound)


def moved(name, bound, query, one, other):
    """Distance between the answers of neighbours over the allowed one."""
    before, after = (answer(name, table, query, bound) for table in (one, other))
    return np.linalg.norm(after - before) / bound.sensitivity(one.shape[1])


def hostile(generator, features):
    """A query, and the bound that fits it exactly."""
    sites, rounds = int(generator.integers(2, 5)), int(generator.integers(0, 4))
    reach, trust, radius = 10.0 ** generator.uniform(-1.5, 1.5, 3)
    constant = float(reach * generator.integers(2) * generator.uniform(0.1, 2))
    length = float(np.hypot(reach, constant))
    weights = 10.0 ** generator.uniform(-1, 1, sites)
    beside = int(generator.integers(1, 4))
    edges = [(0, int(generator.integers(1, sites))) for _ in range(beside)]
    penalty = float(length**2 * 10.0 ** generator.uniform(-4, 1.5) * weights[0])
    regularization = float(length**2 * generator.integers(2) * 10.0 ** generator.uniform(-3, 1))
    curvature = regularization + 2 * penalty / weights[0] * beside
    scale = 10.0 ** generator.choice([-4.0, 0.0, 1.0, 3.0, 12.0, 300.0])
    entries = features - 1 + (constant > 0)
    answers = scale * radius * generator.standard_normal((rounds, sites, entries))
    arguments = {
        "target": int(generator.integers(features)),
        "reach": float(reach),
        "constant": constant,
        "agreed": int(generator.integers(entries + 1)),
        "penalty": penalty,
        "regularization": regularization,
        "weights": weights,
        "edges": np.array(edges, dtype=np.float64),
        "held": 10.0 ** generator.choice([0.0, 6.0, 300.0]) * generator.standard_normal(4),
        "trust": float(trust),
    }
    bounds = {
        "admm_model": Bound(radius, influence=model_influence(length, curvature, radius)),
        "admm_gain": Bound(2 * length * trust, influence=gain_influence(length, trust)),
    }
    return arguments, NeighbourAnswers(0, answers), bounds


def person(generator, features, limit):
    """Harmless, hostile, or as far out as the clip allows."""
    size = limit * 10.0 ** generator.choice([-4.0, -1.0, 0.0, 1.0, 12.0, 300.0])
    values = size * generator.standard_normal(features)
    kind = generator.integers(5)
    if kind == 0:
        values[:] = 0
    elif kind == 1:
        values = np.sign(values)
    elif kind == 2:
        values[generator.integers(features)] = generator.choice([np.nan, np.inf, -np.inf])
    return values


@pytest.mark.parametrize("name", sorted(STATISTICS))
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_replacement_moves_an_answer_further_than_its_sensitivity(name, seed):
    generator = np.random.default_rng(seed)
    features, persons = int(generator.integers(2, 6)), int(generator.integers(1, 6))
    arguments, heard, bounds = hostile(generator, features)
    limit = arguments["reach"]
    query, bound = Query("stage", name, arguments, heard), bounds[name]
    one = np.stack([person(generator, features, limit) for _ in range(persons)], axis=1)
    other = one.copy()
    other[:, generator.integers(persons)] = person(generator, features, limit)
    try:
        told = answer(name, one, query, bound)
    except ProtocolError:  # what can't be solved is refused, whoever is there
        with pytest.raises(ProtocolError):
            answer(name, other, query, bound)
        return
    assert moved(name, bound, query, one, other) <= 1 + 1e-9
    assert np.linalg.norm(told) <= bound.norm * (1 + 1e-9)


def near(model, **changed):
    """A site whose neighbour and itself last said one model, of cost Λ/2 ‖θ - model‖² and loss."""
    arguments = {
        "target": 2,
        "reach": 1.0,
        "constant": 0.0,
        "agreed": 2,
        "penalty": 0.5,
        "regularization": 0.0,
        "weights": np.ones(2),
        "edges": np.array([[0.0, 1.0]]),
        "held": np.zeros(1),
        "trust": 0.1,
        **changed,
    }
    return arguments, np.array([[model, model]])


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_some_replacement_comes_close(name):
    # Two persons whom the model tells wrong for sure, and whose vectors all but oppose each other.
    arguments, answers = near([-200.0, 0.0])
    if name == "admm_gain":  # a neighbour that pulls along the persons' difference
        answers[0, 1, 1] = 1.0
    bounds = {
        "admm_model": Bound(300.0, influence=model_influence(1.0, 1.0, 300.0)),
        "admm_gain": Bound(0.2, influence=gain_influence(1.0, 0.1)),
    }
    one = np.zeros((3, 4))
    one[:, 0] = 0.2, 0.96**0.5, 1.0
    other = one.copy()
    other[1, 0] *= -1
    query = Query("stage", name, arguments, NeighbourAnswers(0, answers))
    assert 0.95 <= moved(name, bounds[name], query, one, other) <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_rounding_far_from_zero_does_not_carry_a_gain_beyond_its_sensitivity(seed):
    # Margins of 10¹⁰ at θ_i, whose last digit is more than a person may change within the distance.
    generator = np.random.default_rng(seed)
    curvature, trust, count = 1e-5, 1e-4, 3_000
    far = generator.standard_normal(3)
    arguments, answers = near(1e10 * far / np.linalg.norm(far), penalty=curvature / 2, trust=trust)
    arguments["target"] = 3
    bound = Bound(2 * trust, influence=gain_influence(1.0, trust))
    one = generator.standard_normal((4, count))
    one[:3] /= np.linalg.norm(one[:3], axis=0)
    query = Query("stage", "admm_gain", arguments, NeighbourAnswers(0, answers))
    for changed in range(6):
        other = one.copy()
        other[3, changed] *= -1
        assert moved("admm_gain", bound, query, one, other) <= 1 + 1e-9


@pytest.mark.parametrize(
    "changed",
    [
        {"penalty": 0.499},
        {"reach": 1.001},
        {"constant": 0.1},
        {"weights": np.array([1.01, 0.99])},
        {"trust": 0.1001},
    ],
)
def test_a_query_that_would_let_a_person_count_more_is_refused(changed):
    entries = 2 + ("constant" in changed)
    arguments, _ = near([0.0, 0.0], **changed)
    name = "admm_gain" if "trust" in changed else "admm_model"
    bounds = {
        "admm_model": Bound(9.0, influence=model_influence(1.0, 1.0, 9.0)),
        "admm_gain": Bound(0.2, influence=gain_influence(1.0, 0.1)),
    }
    query = Query("stage", name, arguments, NeighbourAnswers(0, np.zeros((0, 2, entries))))
    with pytest.raises(ProtocolError, match="further than planned"):
        answer(name, np.ones((3, 4)), query, bounds[name])


@pytest.mark.parametrize(
    "changed",
    [
        {"edges": np.array([[0.0, 2.0]])},
        {"edges": np.array([[0.0, 0.5]])},
        {"edges": np.zeros((0, 2))},
        {"edges": np.zeros((1, 3))},
        {"weights": np.ones(3)},
        {"weights": np.zeros(2)},
        {"weights": -np.ones(2)},
        {"held": np.zeros(0)},
        {"agreed": 3},
        {"penalty": 1e9},
        {"reach": 0.0},
        {"reach": 1e-200, "penalty": 1e-200},
        {"penalty": 1e3, "reach": 1e4},
        {"penalty": 1e300, "reach": 1e300},
    ],
)
def test_arguments_that_make_no_problem_are_refused(changed):
    arguments, answers = near([0.0, 0.0], **changed)
    query = Query("stage", "admm_model", arguments, NeighbourAnswers(0, answers))
    with pytest.raises(ProtocolError, match="discard"):
        answer("admm_model", np.ones((3, 4)), query, Bound(300.0, influence=1e9))


def test_a_step_too_short_to_compute_with_is_refused():
    arguments, answers = near([0.0, 0.0], trust=5e-324)
    query = Query("stage", "admm_gain", arguments, NeighbourAnswers(0, answers))
    with pytest.raises(ProtocolError, match="'trust' is too small"):
        answer("admm_gain", np.ones((3, 4)), query, Bound(0.2, influence=1e9))


def test_without_the_neighbours_there_is_no_answer():
    arguments, answers = near([0.0, 0.0])
    for heard in (
        None,
        NeighbourAnswers(2, answers),
        NeighbourAnswers(0, answers[0]),
        NeighbourAnswers(0, answers[:, :, :1]),
    ):
        with pytest.raises(ProtocolError, match="discard"):
            answer("admm_model", np.ones((3, 4)), Query("s", "admm_model", arguments, heard), None)
