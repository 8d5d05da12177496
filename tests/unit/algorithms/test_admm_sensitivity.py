"""Attempts to move a site's answer in ADMM further than its sensitivity says.

The attacker replaces one person by anything, says anything as the centre, and as the neighbours.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Extent, NeighbourAnswers, Query
from consortium.simulation.array_data import ArrayData

ADMM = REGISTRY["admm"]
STATISTICS = ADMM.statistics


def planned(name, persons, views, **analysis):
    """A plan of sites of so many persons, with a query of a statistic and the bound it keeps."""
    persons = tuple(persons)
    shape = Extent(sum(size for _, size in views), views=views).shape(persons, persons, "subject")
    plan = ADMM(ADMM.Parameters(target="y", **analysis), shape)
    (stage,) = (each for each in plan.releases if each.statistic == name)
    return plan, stage


def moved(plan, stage, query, one, other):
    """Distance between the answers of neighbours over the allowed one."""
    with np.errstate(all="ignore"):
        before, after = (
            STATISTICS[query.statistic](plan, site_of(plan, table), query, stage.bound)
            for table in (one, other)
        )
    assert max(np.linalg.norm(each) for each in (before, after)) <= stage.bound.norm * (1 + 1e-9)
    return np.linalg.norm(after - before) / stage.bound.sensitivity(plan.shape.units[0])


def site_of(plan, table):
    """A site whose participants are the columns of a table, or none."""
    return ArrayData([person[:, None] for person in table.T], views=plan.shape.views)


def hostile(name, generator, features):
    """A study that can be solved, and what it asks of its first site."""
    sites, bound = int(generator.integers(2, 5)), float(10.0 ** generator.uniform(-1.5, 1.5))
    persons = generator.integers(1, [6, *[30] * (sites - 1)])
    first = int(generator.integers(features))
    views = tuple((n, k) for n, k in (("x", first), ("y", 1), ("z", features - 1 - first)) if k)
    plan, stage = planned(
        *(name, persons, views),
        bound=bound,
        constant=float(generator.integers(2) * generator.uniform(0.1, 1)),
        radius=float(10.0 ** generator.uniform(-1.5, 1.5)),
        trust=float(10.0 ** generator.uniform(-1.5, 0.3)),
        penalty=float(10.0 ** generator.uniform(-3.5, 1.0)),
        regularization=float(bound**2 * generator.integers(2) * 10.0 ** generator.uniform(-3, 1)),
        graph=str(generator.choice(["ring", "path", "star", "complete"])),
        site_constants=bool(generator.integers(2)),
        rounds=5,
        broadcasts=4,
    )
    scale = 10.0 ** generator.choice([-4.0, 0.0, 1.0, 3.0, 12.0, 300.0])
    rounds = int(generator.integers(0, 4))
    answers = scale * plan.radius * generator.standard_normal((rounds, sites, plan.entries))
    held = 10.0 ** generator.choice([0.0, 6.0, 300.0]) * generator.standard_normal(4)
    return plan, stage, Query(stage.stage, name, {"held": held}, NeighbourAnswers(0, answers))


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
    features = int(generator.integers(2, 6))
    plan, stage, query = hostile(name, generator, features)
    persons, limit = plan.shape.units[0], plan.parameters.bound
    one = np.stack([person(generator, features, limit) for _ in range(persons)], axis=1)
    other = one.copy()
    other[:, generator.integers(persons)] = person(generator, features, limit)
    assert moved(plan, stage, query, one, other) <= 1 + 1e-9


@pytest.mark.parametrize("name", sorted(STATISTICS))
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_nobody_who_is_added_moves_an_answer_further_than_its_sensitivity(name, seed):
    generator = np.random.default_rng(seed)
    features = int(generator.integers(2, 6))
    plan, stage, query = hostile(name, generator, features)
    # More or fewer than the nominal participants, or none but the one who is added.
    persons = int(generator.integers(1, 2 * plan.shape.units[0] + 1))
    limit = plan.parameters.bound
    one = np.stack([person(generator, features, limit) for _ in range(persons)], axis=1)
    assert moved(plan, stage, query, one, one[:, 1:]) <= 1 + 1e-9


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_losses_are_divided_by_nominal_participants(name):
    table = np.random.default_rng(1).uniform(-1, 1, (3, 4))

    def answer(nominal, there, planned=None):
        plan, stage, query = near(name, [0.3, -0.2], nominal)
        query.neighbour_answers.answers[0, 1, 0] = 0.5
        plan = plan if planned is None else plan.dividing_by((planned, planned))
        return STATISTICS[name](plan, site_of(plan, there), query, stage.bound)

    right = answer(4, table)
    assert answer(8, np.hstack([table, table])) == pytest.approx(right, rel=1e-3)
    assert answer(8, table, planned=4) == pytest.approx(right, rel=1e-3)
    assert answer(8, table) != pytest.approx(right, rel=1e-2)
    # A site with nobody is drawn to its neighbours, and its answer is one that others may have.
    assert np.isfinite(answer(4, table[:, :0])).all()


def near(name, model, persons=4, **analysis):
    """A site whose neighbour and itself last said one model, of cost Λ/2 ‖θ - model‖² and loss."""
    views = (("x", len(model)), ("y", 1))
    said = {"constant": 0, "rounds": 2, "broadcasts": 1, **analysis}
    plan, stage = planned(name, (persons,) * 2, views, **said)
    answers = np.array([[model, model]])
    query = Query(stage.stage, name, {"held": np.zeros(1)}, NeighbourAnswers(0, answers))
    return plan, stage, query


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_some_replacement_comes_close(name):
    # Two persons whom the model tells wrong for sure, and whose vectors all but oppose each other.
    said = {"penalty": 1.0, "radius": 300.0, "trust": 0.1 / 300.0}
    plan, stage, query = near(name, [-200.0, 0.0], **said)
    if name == "admm_gain":  # a neighbour that pulls along the persons' difference
        query.neighbour_answers.answers[0, 1, 1] = 1.0
    one = np.zeros((3, 4))
    one[:, 0] = 0.2, 0.96**0.5, 1.0
    other = one.copy()
    other[1, 0] *= -1
    assert 0.95 <= moved(plan, stage, query, one, other) <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_rounding_far_from_zero_does_not_carry_a_gain_beyond_its_sensitivity(seed):
    # Margins of 10¹⁰ at θ_i, whose last digit is more than a person may change within the distance.
    generator = np.random.default_rng(seed)
    far, count = generator.standard_normal(3), 3_000
    model = 1e10 * far / np.linalg.norm(far)
    said = {"penalty": 1.001e-5, "radius": 1.0, "trust": 1e-4}
    plan, stage, query = near("admm_gain", model, count, **said)
    one = generator.standard_normal((4, count))
    one[:3] /= np.linalg.norm(one[:3], axis=0)
    for changed in range(6):
        other = one.copy()
        other[3, changed] *= -1
        assert moved(plan, stage, query, one, other) <= 1 + 1e-9
