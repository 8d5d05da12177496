"""ADMM among neighbours: what it agrees on, and what a run without some of its sites does."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.admm.centre import model_influence
from consortium.algorithms.admm.kernels.logistic_in_ball import LogisticCost, minimize_in_ball
from consortium.algorithms.base import Release
from consortium.errors import StudyError
from consortium.simulation.simulation import Simulation
from consortium.study.plan import count_rounds, make_plan
from tests.support.cases import SITES, drive, make_feature_study, shape_of, sites_of

ADMM = REGISTRY["admm"]
VIEWS = (("x", 3), ("y", 1))
COUNTS = (30, 60, 20, 45)
EDGES = [["north", "east"], ["east", "south"], ["south", "west"], ["west", "east"]]


def people(seed=0):
    count = sum(COUNTS)
    generator = np.random.default_rng(seed)
    x = generator.uniform(-0.5, 0.5, (3, count))
    log_odds = np.array([6.0, -4.0, 2.0]) @ x + 0.5
    return np.vstack([x, np.where(generator.logistic(size=count) < log_odds, 1.0, -1.0)])


def pooled(table, parameters):
    """Coefficients and constant of all persons' regression."""
    vectors = np.vstack([table[:3], np.full(table.shape[1], parameters.constant)]) * table[3]
    nothing = np.zeros(table.shape[1])
    cost = LogisticCost(vectors, nothing, parameters.regularization, np.zeros(4), vectors.shape[1])
    found = minimize_in_ball(cost, parameters.radius, np.zeros(4), 1e-12)
    return np.append(found[:3], parameters.constant * found[3])


@pytest.mark.parametrize(
    "graph",
    ["star", "path", *(pytest.param(g, marks=pytest.mark.long) for g in ("ring", "complete"))],
)
def test_without_noise_the_sites_agree_on_the_pooled_regression(graph):
    parameters = ADMM.Parameters(
        target="y",
        graph=graph,
        rounds=300,
        penalty=0.02,
        regularization=0.01,
        averaged=0.01,
        site_constants=False,
    )
    table = people()
    _, _, result = drive(ADMM, parameters, sites_of(table, VIEWS, COUNTS))
    found = np.append(result.arrays["coefficients"][:3, 0], result.arrays["intercept"])
    assert found == pytest.approx(pooled(table, parameters), abs=1e-3)
    assert result.arrays["coefficients"][3, 0] == 0
    assert result.numbers["disagreement"] < 1e-3
    each = np.vstack([result.arrays["site_coefficients"][:3], result.arrays["site_intercepts"]])
    assert each == pytest.approx(np.tile(found[:, None], 4), abs=2e-3)


def test_the_constraint_is_kept():
    parameters = ADMM.Parameters(
        target="y", radius=2.0, rounds=300, penalty=0.05, site_constants=False
    )
    table = people()
    _, _, result = drive(ADMM, parameters, sites_of(table, VIEWS, COUNTS))
    found = np.append(result.arrays["coefficients"][:3, 0], result.arrays["intercept"])
    assert result.numbers["model_norm"] == pytest.approx(2.0, abs=1e-3)
    assert found == pytest.approx(pooled(table, parameters), abs=5e-3)


def unequal_sites():
    """Sites that differ in scanner and in how many are ill; within them only one entry tells."""
    generator = np.random.default_rng(1)
    tables = []
    for level in (-0.5, -0.1, 0.2, 0.5):
        x = np.array([[level], [0.0], [0.0]]) + generator.uniform(-0.3, 0.3, (3, 500))
        odds = 6.0 * level + 5.0 * x[1]
        tables.append(np.vstack([x, np.where(generator.logistic(size=500) < odds, 1.0, -1.0)]))
    return np.hstack(tables)


def test_what_the_sites_differ_in_does_not_bend_the_coefficients():
    table, asked = unequal_sites(), {"target": "y", "rounds": 300, "penalty": 0.02}
    own, one = (
        drive(
            ADMM,
            ADMM.Parameters(**asked, site_constants=constants),
            sites_of(table, VIEWS, (500,) * 4),
        )[2]
        for constants in (True, False)
    )
    # Each site's column of ones in place of the one constant, and nothing that draws it to zero.
    ones = np.kron(np.eye(4), np.ones(500))
    cost = LogisticCost(
        np.vstack([table[:3], ones]) * table[3], np.zeros(2000), 0.0, np.zeros(7), 2000
    )
    expected = minimize_in_ball(cost, 1e3, np.zeros(7), 1e-10)
    assert own.arrays["coefficients"][:3, 0] == pytest.approx(expected[:3], abs=0.02)
    assert own.arrays["site_intercepts"] == pytest.approx(expected[3:], abs=0.02)
    assert own.numbers["disagreement"] < 0.01
    assert "constant of its own" in own.tables["coefficients"].caption
    # The falsifier: with one constant, scanners tell who is ill.
    assert one.arrays["coefficients"][0, 0] > 3.0
    assert abs(own.arrays["coefficients"][0, 0]) < 0.7


def test_where_nothing_is_gained_nothing_is_sent():
    asked = {"target": "y", "rounds": 60, "penalty": 0.2, "regularization": 0.05}
    sites = sites_of(people(), VIEWS, COUNTS)
    _, _, full = drive(ADMM, ADMM.Parameters(**asked), sites)
    parameters = ADMM.Parameters(**asked, broadcasts=59, threshold=3e-3)
    queries, _, result = drive(ADMM, parameters, sites)
    sent = sum(query.stage == "broadcast" for query in queries)
    assert 5 <= sent < 50
    gains = [gain for _, gain in result.tables["gains"].rows]
    assert sent == 1 + sum(gain >= 3e-3 for gain in gains)
    assert queries[-1].arguments["held"].sum() == 59
    apart = result.arrays["coefficients"] - full.arrays["coefficients"]
    assert np.linalg.norm(apart) < 0.1 * np.linalg.norm(full.arrays["coefficients"])


def test_all_broadcasts_worth_it_are_plain_admm():
    asked = {"target": "y", "rounds": 8, "penalty": 0.2}
    sites = sites_of(people(), VIEWS, COUNTS)
    _, _, plain = drive(ADMM, ADMM.Parameters(**asked | {"rounds": 7}), sites)
    _, _, tested = drive(ADMM, ADMM.Parameters(**asked, broadcasts=7, threshold=0), sites)
    assert tested.arrays["coefficients"] == pytest.approx(plain.arrays["coefficients"], abs=1e-12)


@pytest.mark.parametrize("graph", ["ring", "star"])
def test_every_sites_curvature_is_at_least_the_planned(graph):
    shape = shape_of(sites_of(people(), VIEWS, COUNTS))
    parameters = ADMM.Parameters(target="y", graph=graph, penalty=0.3, regularization=0.1)
    plan = ADMM(parameters, shape)
    (release,) = plan.planned()
    curvatures = plan.curvatures
    length = 1.25**0.5
    assert curvatures.min() == pytest.approx(0.1 + 0.3 * length**2)
    influence = model_influence(length, curvatures.min(), 20.0)
    assert release.bound.influence == pytest.approx(influence)


def test_a_site_that_misses_a_round_keeps_its_model():
    shape = shape_of(sites_of(people(), VIEWS, COUNTS))
    run = ADMM(ADMM.Parameters(target="y", rounds=2, averaged=0.1), shape).run()
    next(run)
    run.send(Release(np.ones((4, 4)), 0.1, (0, 1, 2, 3)))
    with pytest.raises(StopIteration) as stop:
        run.send(Release(3 * np.ones((3, 4)), 0.1, (0, 2, 3)))
    found = stop.value.value.arrays["site_coefficients"]
    assert np.array_equal(found[:3], np.tile([3.0, 1.0, 3.0, 3.0], (3, 1)))


def test_a_private_run_over_named_edges_keeps_its_promise():
    analysis = {"target": "y", "rounds": 5, "edges": EDGES}
    study = make_feature_study("admm", VIEWS, analysis)
    simulation = Simulation(study, sites_of(people(), VIEWS, COUNTS), 0)
    assert simulation.plan.stages[0].release.neighbours == ((1,), (0, 2, 3), (1, 3), (1, 2))
    result = simulation.run()
    assert simulation.plan.epsilon == pytest.approx(8.0, rel=1e-3)
    assert simulation.plan.outsider_mu == simulation.plan.mu  # nobody else's noise helps
    assert result.numbers["model_noise"] > 0


def test_a_run_that_starts_without_a_site_needs_a_connected_graph():
    counts = COUNTS[:3]
    study = make_feature_study("admm", VIEWS, {"target": "y", "edges": EDGES})
    study = study.model_copy(update={"quorum": 3})
    (north, east, south, _), table = SITES, people()[:, : sum(counts)]
    shape = shape_of(sites_of(table, VIEWS, counts))
    with pytest.raises(StudyError, match=r"north, east, south.*west"):
        make_plan(study.started_with((north, east, south)), shape)
    ring = make_feature_study("admm", VIEWS, {"target": "y"}).model_copy(update={"quorum": 3})
    plan = make_plan(ring.started_with((north, east, south)), shape)
    assert plan.stages[0].release.neighbours == ((1, 2), (0, 2), (0, 1))


def test_a_wrong_graph_is_told_when_the_study_is_read():
    with pytest.raises(StudyError, match="from north to west"):
        make_feature_study("admm", VIEWS, {"target": "y", "edges": EDGES[:2]})


def test_the_number_of_rounds_is_known_without_sizes():
    study = make_feature_study("admm", VIEWS, {"target": "y", "rounds": 9, "broadcasts": 4})
    sites = sites_of(people(), VIEWS, COUNTS)
    assert count_rounds(study, sites[0].extent) == 4 + 8
    assert count_rounds(study, sites[0].extent) == make_plan(study, shape_of(sites)).rounds


@pytest.mark.parametrize(
    ("analysis", "words"),
    [
        ({"target": "z"}, "field 'analysis.target'.*'z'"),
        ({"target": "x"}, "has 3 entries"),
        ({"target": "y", "penalty": 1e-7}, "field 'analysis.penalty'"),
        ({"target": "y", "penalty": 1e7}, "field 'analysis.penalty'"),
        ({"target": "y", "bound": 1e200}, "field 'analysis.penalty'"),
        ({"target": "y", "bound": 1e-200}, "field 'analysis.penalty'"),
        ({"target": "y", "broadcasts": 4, "trust": 5e-324}, "field 'analysis.penalty'"),
    ],
)
def test_what_can_not_be_planned_is_told(analysis, words):
    with pytest.raises(StudyError, match=words):
        ADMM(ADMM.Parameters(**analysis), shape_of(sites_of(people(), VIEWS, COUNTS))).planned()


def test_a_noisier_study_takes_shorter_steps():
    shape = shape_of(sites_of(people(), VIEWS, COUNTS))
    parameters = ADMM.Parameters(target="y")
    spreads = [
        ADMM(parameters, replace(shape, noise=noise)).planned()[0].bound.spread
        for noise in (0.0, 0.001, 0.1, 1.0, 1e9)
    ]
    assert spreads[0] == spreads[1] > spreads[2] > spreads[3] > spreads[4] > 0


def test_broadcasts_are_fewer_than_rounds():
    with pytest.raises(ValueError, match="fewer than rounds"):
        ADMM.Parameters(target="y", rounds=5, broadcasts=5)
