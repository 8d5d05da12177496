"""The jointly trained network: it learns what a line can't tell, with noise and without."""

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binom, binomtest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Release
from consortium.algorithms.network.centre import NeuralNetwork
from consortium.algorithms.network.kernels.classifier import predict
from consortium.algorithms.network.result import measured_accuracy
from consortium.algorithms.network.site import who_trains
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound
from consortium.simulation.simulation import Simulation
from consortium.study.plan import make_plan
from tests.support.cases import drive, make_feature_sites, make_feature_study, shape_of, sites_of

NETWORK = REGISTRY["network"]
COUNTS = (700, 400, 600, 300)
LONG = pytest.mark.long


def rings(classes, seed=0, count=2000):
    """Persons told by their distance from the middle; no line tells them."""
    generator = np.random.default_rng(seed)
    kinds = generator.integers(max(classes, 2), size=count)
    angle = generator.uniform(0, 2 * np.pi, count)
    radius = (0.2 + 0.7 * kinds / (max(classes, 2) - 1)) + 0.05 * generator.standard_normal(count)
    x = np.clip(radius * np.stack([np.cos(angle), np.sin(angle)]), -1, 1)
    labels = 2.0 * kinds[None] - 1 if classes == 1 else np.eye(classes)[:, kinds]
    # The target stands between two views, so that it must be cut out in the right place.
    return np.vstack([x[:1], labels, x[1:]]), (("a", 1), ("kind", classes), ("b", 1)), kinds


def accuracy(result, table, classes, kinds):
    sizes = [int(n) for n in result.arrays["units"]]
    inputs = np.vstack([table[:1], table[1 + classes :]])
    found = predict(result.arrays["parameters"], sizes, inputs)
    told = (found[0] > 0.5).astype(int) if classes == 1 else found.argmax(axis=0)
    return np.mean(told == kinds)


@pytest.mark.parametrize(
    ("scheme", "classes"),
    [("none", 3), ("cape", 1), *(pytest.param(*c, marks=LONG) for c in (("none", 1), ("cape", 3)))],
)
def test_what_no_line_can_tell_is_learnt(scheme, classes):
    table, views, _ = rings(classes)
    analysis = {"target": "kind", "hidden": [12, 8], "rounds": 100, "bound": 0.5}
    study = make_feature_study("network", views, analysis, scheme=scheme, epsilon=20.0)
    result = Simulation(study, sites_of(table, views, COUNTS), 0).run()
    fresh, _, new = rings(classes, seed=1)
    assert accuracy(result, fresh, classes, new) > (0.95 if scheme == "none" else 0.85)
    assert result.arrays["first_layer"].shape == (len(table), 12)
    assert not result.arrays["first_layer"][1 : 1 + classes].any()
    # A line, as the falsifier: it can't tell them.
    line = study.analysis.model_copy(update={"hidden": ()})
    _, _, straight = drive(NETWORK, line, sites_of(table, views, COUNTS))
    assert accuracy(straight, fresh, classes, new) < 0.75


def test_without_hidden_layers_it_is_logistic_regression():
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(2)
    x = generator.uniform(-1, 1, (3, 3000))
    chance = 1 / (1 + np.exp(-(0.3 + np.array([2.0, -1.0, 0.5]) @ x)))
    y = np.where(generator.random(3000) < chance, 1.0, -1.0)
    views = (("x", 3), ("y", 1))
    parameters = NETWORK.Parameters(
        target="y",
        hidden=(),
        rounds=120,
        bound=100.0,
        learning_rate=4.0,
        averaged=0.01,
        held_out=0.0,
    )
    sites = sites_of(np.vstack([x, y]), views, (3000,))
    _, _, result = drive(NETWORK, parameters, sites)
    expected = linear_model.LogisticRegression(C=1e9).fit(x.T, y)
    both = [expected.intercept_[0], *expected.coef_[0]]
    assert result.arrays["parameters"] == pytest.approx(both, abs=1e-3)


def test_the_table_tells_signal_from_noise():
    table, views, _ = rings(1)
    study = make_feature_study("network", views, {"target": "kind", "rounds": 5})
    result = Simulation(study, sites_of(table, views, COUNTS), 0).run()
    rows = result.tables["gradients"].rows
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5]
    assert all(row[1] > 0 for row in rows)
    assert result.numbers["gradient_noise"] > 0


def first_step(deviation):
    """Length of the first step along a gradient whose noise has this deviation."""
    shape = shape_of(make_feature_sites((("x", 4), ("y", 1))))
    parameters = NETWORK.Parameters(
        target="y", hidden=(), bound=0.5, learning_rate=3.0, site_constants=False
    )
    steps = NETWORK(parameters, shape).run()
    start = next(steps).arguments["parameters"]
    moved = steps.send(Release(np.ones(5), deviation)).arguments["parameters"]
    return np.linalg.norm(moved - start) / np.sqrt(5)


def test_steps_shrink_as_noise_grows():
    assert first_step(0.0) == pytest.approx(3.0)
    # Five numbers' noise of norm 0.5, as long as the bound: the root of 1 + 4.
    assert first_step(0.5 / np.sqrt(5)) == pytest.approx(3.0 / np.sqrt(5))


def test_the_budget_is_spread_evenly_over_the_rounds():
    shape = shape_of(make_feature_sites((("x", 4), ("y", 1))))
    planned, once = NETWORK(
        NETWORK.Parameters(
            target="y", hidden=(3,), rounds=7, bound=0.25, judging=0.25, site_constants=False
        ),
        shape,
    ).planned()
    assert (planned.rounds, planned.entries, planned.share) == (7, 19, 0.75)
    assert planned.bound == Bound(0.25)
    assert (once.rounds, once.entries, once.share) == (1, 3, 0.25)
    (alone,) = NETWORK(
        NETWORK.Parameters(target="y", hidden=(3,), rounds=7, held_out=0.0), shape
    ).planned()
    assert alone.share == 1.0


def test_the_accuracy_that_is_told_is_that_on_other_persons():
    table, views, _ = rings(1)
    analysis = {"target": "kind", "hidden": [12, 8], "rounds": 100, "bound": 0.5}
    study = make_feature_study("network", views, analysis, epsilon=20.0)
    result = Simulation(study, sites_of(table, views, COUNTS), 0).run()
    told, above = (row[1] for row in result.tables["accuracy"].rows)
    fresh, _, new = rings(1, seed=1)
    assert told.low <= accuracy(result, fresh, 1, new) <= told.high
    assert told.high - told.low < 0.2
    assert above.state == "found"
    table[1] = np.random.default_rng(0).permutation(table[1])
    result = Simulation(study, sites_of(table, views, COUNTS), 0).run()
    assert result.tables["accuracy"].rows[1][1].state == "not found"
    assert not result.captions.found


def test_noise_that_drowns_the_accuracy_leaves_none():
    table, views, _ = rings(1, count=40)
    study = make_feature_study("network", views, {"target": "kind", "rounds": 2}, epsilon=0.1)
    result = Simulation(study, sites_of(table, views, (10,) * 4), 0).run()
    assert not any(row[1].reported for row in result.tables["accuracy"].rows)
    assert "Nothing can be reported" in result.captions.headline


def test_who_trains_depends_on_the_own_vector_alone():
    table, _, _ = rings(1, count=500)
    trains = who_trains(table, 0.2)
    assert 0.7 < trains.mean() < 0.9
    order = np.random.default_rng(0).permutation(500)
    assert np.array_equal(who_trains(table[:, order], 0.2), trains[order])
    table[:, 7] = 0.5  # somebody else
    assert np.array_equal(np.delete(who_trains(table, 0.2), 7), np.delete(trains, 7))


@pytest.mark.parametrize(
    ("analysis", "views", "message"),
    [
        ({"target": "z"}, (("x", 4), ("y", 1)), "field 'analysis.target'.*'z'"),
        ({"target": "y"}, (("y", 3),), "field 'features'"),
        ({"target": "y", "hidden": (4, 0)}, (("x", 4), ("y", 1)), "field 'analysis.hidden'.*got 0"),
        ({"target": "y", "hidden": (9**8,)}, (("x", 4), ("y", 1)), "field 'analysis.hidden'"),
    ],
)
def test_networks_that_can_t_be_are_refused(analysis, views, message):
    with pytest.raises(StudyError, match=message):
        NETWORK(NETWORK.Parameters(**analysis), shape_of(make_feature_sites(views))).planned()


@pytest.mark.parametrize("wrong", [{"momentum": 1.0}, {"averaged": 0.0}, {"hidden": [1] * 9}])
def test_parameters_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        NETWORK.Parameters.model_validate({"target": "y", **wrong})


def unequal_sites(seed=0):
    """Four sites that differ in scanner and in how many are ill; within them nothing is told."""
    generator = np.random.default_rng(seed)
    tables = []
    for count, level, ill in zip(
        COUNTS, (-0.6, -0.2, 0.2, 0.6), (0.1, 0.35, 0.65, 0.9), strict=True
    ):
        x = np.clip(level + 0.1 * generator.standard_normal((2, count)), -1, 1)
        tables.append(np.vstack([x, np.where(generator.random(count) < ill, 1.0, -1.0)]))
    return np.hstack(tables), (("x", 2), ("y", 1))


@pytest.mark.parametrize("constants", [True, False])
def test_what_the_site_alone_tells_is_not_found(constants):
    table, views = unequal_sites()
    analysis = {"target": "y", "hidden": [4], "rounds": 60, "site_constants": constants}
    study = make_feature_study("network", views, analysis, epsilon=20.0)
    result = Simulation(study, sites_of(table, views, COUNTS), 0).run()
    told, above = (row[1] for row in result.tables["accuracy"].rows)
    assert told.value > 0.7  # over all sites half are ill
    assert above.state == "not found"
    assert "largest class of their site" in result.captions.headline


def test_the_network_that_is_told_has_the_middle_of_the_sites():
    table, views = unequal_sites()
    analysis = {"target": "y", "hidden": [4], "rounds": 20, "site_constants": True}
    arrays = (
        Simulation(
            make_feature_study("network", views, analysis, scheme="none"),
            sites_of(table, views, COUNTS),
            0,
        )
        .run()
        .arrays
    )
    assert [int(n) for n in arrays["units"]] == [2, 4, 1]
    assert arrays["site_biases"].shape == (4, 4)
    assert np.ptp(arrays["site_biases"], axis=1).max() > 0.1
    middle = arrays["site_biases"] @ (np.array(COUNTS) / sum(COUNTS))
    assert arrays["parameters"][: 4 * 3 : 3] == pytest.approx(middle)


def test_the_plan_tells_the_sites_where_that_costs_little():
    table, views = unequal_sites()
    study = make_feature_study("network", views, {"target": "y"})
    for persons, places in ((COUNTS, 4), ((10,) * 4, 0)):
        shape = make_plan(study, shape_of(sites_of(table[:, : sum(persons)], views, persons))).shape
        assert NeuralNetwork(study.analysis, shape).places == places
        (remark,) = NETWORK(study.analysis, shape).remarks()
        assert ("site is an input of the network" in remark) == (places > 0)
    alone = shape_of(sites_of(table, views, (2000,)))
    assert NeuralNetwork(study.analysis, alone).places == 0
    assert NETWORK(study.analysis, alone).remarks() == ()


def test_the_accuracys_interval_holds_for_few_persons():
    """Forty persons held out, classified by chance: Wilson's interval where there is no noise."""
    parameters, right, persons = NETWORK.Parameters(target="y"), 0.55, 200
    values = np.array([np.sqrt(0.75) * 0.2, 0.2 * (right - 0.5), 0.5])
    told, _ = measured_accuracy(Release(values, 0.0), persons, parameters)
    assert told.value == pytest.approx(right)
    expected = binomtest(22, 40).proportion_ci(method="wilson")
    assert (told.low, told.high) == pytest.approx((expected.low, expected.high))
    noisy, _ = measured_accuracy(Release(values, 0.01), persons, parameters)
    assert noisy.low < told.low < told.high < noisy.high


def test_the_accuracy_counts_who_is_held_out_and_the_largest_class_of_all():
    table, views, _ = rings(1, count=300)
    (site,) = sites_of(table, views, (300,))
    plan = NETWORK(NETWORK.Parameters(target="kind", hidden=(), held_out=0.3), shape_of([site]))
    arguments = {"parameters": np.array([-1.0, 0.0, 0.0])}  # everybody is of the first class
    query = Query("accuracy", "network_accuracy", arguments)
    bound = Bound(np.sqrt(2.0), influence=np.sqrt(2.0))
    told = plan.statistics["network_accuracy"](plan, site, query, bound)
    held = ~who_trains(site.table(), 0.3)
    first = table[1] < 0
    right, largest = (first & held).sum(), max(first.sum(), (~first).sum())
    expected = [np.sqrt(0.75) * held.sum(), right - held.sum() / 2, largest]
    assert told == pytest.approx(np.array(expected) / 300)


@pytest.mark.parametrize(("persons", "mu"), [(200, 1.6), (800, 0.27), (4000, 0.9)])
def test_accuracies_hold_as_often_as_they_say_and_nothing_is_found_where_nothing_is(persons, mu):
    generator, parameters, runs = np.random.default_rng(0), NETWORK.Parameters(target="y"), 300
    deviation = np.sqrt(2.0 / parameters.judging) / (persons * mu)
    held_truth, found = 0, 0
    for _ in range(runs):
        ill, held, right = (generator.random((4, persons // 4)) < p for p in (0.5, 0.2, 0.5))
        largest = np.maximum(ill.sum(axis=1), (~ill).sum(axis=1)).sum()
        count = held.sum()
        exact = np.array([np.sqrt(0.75) * count, (right & held).sum() - count / 2, largest])
        noisy = exact / persons + deviation * generator.standard_normal(3)
        accuracy, above = measured_accuracy(Release(noisy, deviation), persons, parameters)
        held_truth += accuracy.low <= 0.5 <= accuracy.high
        found += above.state == "found"
    assert held_truth >= binom.ppf(1e-3, runs, 0.94)
    assert found <= binom.ppf(1 - 1e-3, runs, 0.025)
