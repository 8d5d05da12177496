"""capeFM regression: coefficients are found, and their intervals keep their promise."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import t

from benchmarks.uneven import labelled, regressed
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Shape
from consortium.algorithms.linear import HOPELESS, REMEDY, TOGETHER
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound
from consortium.simulation.simulation import Simulation
from tests.support.cases import drive, drive_noisy, make_feature_study, shape_of, sites_of

REGRESSION = REGISTRY["regression"]
SIZE = 6
VIEWS = (("age", 2), ("y", 1), ("image", SIZE - 2))
COUNTS = (300, 500, 700, 500)


def people(seed, *, model="linear", noise=0.05, count=2000):
    """Coefficients and a table of persons whose third entry is what the others explain."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (SIZE, count))
    w = generator.uniform(-1, 1, SIZE)
    w *= (2.0 if model == "logistic" else 0.4) / np.linalg.norm(w)
    s = 0.3 + w @ x
    if model == "logistic":
        y = np.where(generator.random(count) < 1 / (1 + np.exp(-s)), 1.0, -1.0)
    else:
        y = np.clip(s + noise * generator.standard_normal(count), -1, 1)
    return w, np.insert(x, 2, y, axis=0)


def fit(table, *, mu=None, generator=None, **analysis):
    """The result for a table at one place, with Gaussian noise of loss μ."""
    site = sites_of(table, VIEWS, (table.shape[1],))
    values = {"target": "y", "bound": SIZE**0.5, **analysis}
    parameters = REGRESSION.Parameters.model_validate(values)

    def level(stage):
        return stage.bound.sensitivity(table.shape[1]) / (mu * stage.share**0.5) if mu else 0.0

    return drive_noisy(REGRESSION, parameters, site, shape_of(site), level, generator=generator)


def explaining(result, key="coefficients"):
    return np.delete(result.arrays[key][:, 0], 2)


def test_without_noise_it_is_least_squares():
    _, table = people(0)
    x, y = np.delete(table, 2, axis=0), table[2]
    design = np.vstack([x, np.ones(x.shape[1])])
    expected, *_ = np.linalg.lstsq(design.T, y, rcond=None)
    result = fit(table)
    assert explaining(result) == pytest.approx(expected[:-1], abs=1e-9)
    assert result.arrays["intercept"] == pytest.approx(expected[-1:], abs=1e-9)
    residual = y - expected @ design
    # White's intervals, from the residuals themselves.
    freedom = len(y) - SIZE - 1
    influence = np.linalg.solve(design @ design.T, design * residual)[:-1]
    errors = np.sqrt(np.square(influence).sum(axis=1))
    half = (explaining(result, "high") - explaining(result, "low")) / 2
    assert half == pytest.approx(t.ppf(0.975, freedom) * errors, rel=2e-3)
    share = result.tables["fit"].rows[0][1]
    assert share.value == pytest.approx(1 - residual.var() / y.var(), abs=1e-3)
    assert result.arrays["coefficients"][2] == 0


def test_with_a_constant_for_every_site_it_is_least_squares_with_their_columns():
    _, table = people(12)
    table[2] = np.clip(table[2] + np.repeat([0.2, -0.1, 0.0, 0.1], COUNTS), -1, 1)
    x, y = np.delete(table, 2, axis=0), table[2]
    design = np.vstack([x, np.repeat(np.eye(4), COUNTS, axis=1)])
    expected, *_ = np.linalg.lstsq(design.T, y, rcond=None)
    parameters = REGRESSION.Parameters(target="y", bound=SIZE**0.5)
    result = drive(REGRESSION, parameters, sites_of(table, VIEWS, COUNTS))[2]
    assert explaining(result) == pytest.approx(expected[:SIZE], abs=1e-9)
    assert result.arrays["intercept"] == pytest.approx(expected[SIZE:], abs=1e-9)
    together = parameters.model_copy(update={"site_constants": False})
    other = drive(REGRESSION, together, sites_of(table, VIEWS, COUNTS))[2]
    assert np.abs(explaining(other) - expected[:SIZE]).max() > 1e-3


def test_a_site_that_did_not_answer_has_no_constant():
    _, table = people(13)
    parameters = REGRESSION.Parameters(target="y", bound=SIZE**0.5)
    sites = sites_of(table, VIEWS, COUNTS)
    present = (0, 2, 3)
    found = drive_noisy(REGRESSION, parameters, sites, shape_of(sites), present=present)
    kept = np.repeat([True, False, True, True], COUNTS)
    alone = drive(
        REGRESSION, parameters, sites_of(table[:, kept], VIEWS, [COUNTS[s] for s in present])
    )[2]
    assert explaining(found) == pytest.approx(explaining(alone), abs=1e-9)
    assert explaining(found, "low") == pytest.approx(explaining(alone, "low"), abs=1e-9)
    assert found.arrays["intercept"].shape == (3,)


def test_without_an_intercept_the_line_goes_through_zero():
    _, table = people(1)
    expected, *_ = np.linalg.lstsq(np.delete(table, 2, axis=0).T, table[2], rcond=None)
    result = fit(table, intercept=False)
    assert explaining(result) == pytest.approx(expected, abs=1e-9)
    assert result.arrays["intercept"].shape == (0,)
    assert "constants" not in result.tables


def test_a_polynomial_cost_is_minimized():
    _, table = people(2)
    cost = ((0.0, 0.0, 0.0), (0.2, -0.6), (0.9,))
    result = fit(table, model="polynomial", cost=cost)
    x, y = np.delete(table, 2, axis=0), table[2]
    s = explaining(result) @ x + result.arrays["intercept"]
    slope = 0.2 - 0.6 * y + 2 * 0.9 * s
    assert slope.mean() == pytest.approx(0, abs=1e-9)
    assert (x * slope).mean(axis=1) == pytest.approx(np.zeros(SIZE), abs=1e-9)
    squared = fit(table, model="polynomial", cost=((0, 0, 1), (0, -2), (1,)))
    assert explaining(squared) == pytest.approx(explaining(fit(table)), abs=1e-12)


def test_logistic_coefficients_are_found_where_the_taylor_polynomial_fails():
    truth, table = people(3, model="logistic", count=40_000)
    found = explaining(fit(table, model="logistic"))
    taylor = explaining(fit(table, model="logistic", approximation="taylor"))
    assert np.linalg.norm(found - truth) < 0.06 * np.linalg.norm(truth)
    assert np.linalg.norm(taylor - truth) > 2 * np.linalg.norm(found - truth)


@pytest.mark.parametrize(("part", "effect"), [(0.5, 1.0), (0.5, 2.0), (0.1, 1.0)])
def test_logistic_intervals_hold_the_coefficient_of_a_column_of_two_levels(effect, part):
    """The Gaussian formula alone reports 1.17 for 1 and 8 for 2, without noise."""
    found = [labelled(8000, part, (effect,), None, seed) for seed in range(6)]
    own = [each[0] for each in found]
    assert sum(each.low <= effect <= each.high for each in own) >= 5
    assert np.mean([each.value for each in own]) == pytest.approx(effect, abs=0.1)
    assert np.mean([each.high - each.low for each in own]) < 0.3 + 0.25 * effect
    assert sum(each[1].low <= 1.0 <= each[1].high for each in found) >= 4


def test_two_columns_of_levels_that_explain_much_leave_no_logistic_coefficient():
    assert not any(each.reported for each in labelled(8000, 0.5, (1.0, 1.0), None, 0))
    assert all(each.bounded for each in labelled(8000, 0.5, (1.0, 0.1), None, 0))


def test_labels_that_a_level_separates_have_no_coefficient():
    first, *_ = labelled(2000, 0.5, (8.0,), None, 0)
    assert not first.reported


def test_logistic_as_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    _, table = people(4, model="logistic", count=5000)
    expected = linear_model.LogisticRegression(C=1e9).fit(np.delete(table, 2, axis=0).T, table[2])
    result = fit(table, model="logistic")
    assert explaining(result) == pytest.approx(expected.coef_[0], abs=0.08)


@pytest.mark.parametrize("mu", [0.3, 1.0, 10.0, None])
def test_intervals_hold_the_truth_as_often_as_they_say(mu):
    generator = np.random.default_rng(5)
    inside = []
    for seed in range(60):
        truth, table = people(seed + 100)
        result = fit(table, mu=mu, generator=generator)
        told = [row[-1] for row in result.tables["coefficients"].rows]
        assert all(each.reported for each in told)
        inside += [each.low <= w <= each.high for w, each in zip(truth, told, strict=True)]
    assert 0.92 <= np.mean(inside) <= 0.99


def test_intervals_without_the_noise_of_privacy_would_fail():
    # The falsifier of the test above: with intervals of chance alone, few hold the truth.
    generator = np.random.default_rng(6)
    inside = []
    for seed in range(20):
        truth, table = people(seed + 200)
        noisy, plain = fit(table, mu=0.5, generator=generator), fit(table)
        width = (explaining(plain, "high") - explaining(plain, "low")) / 2
        inside += list(np.abs(explaining(noisy) - truth) < width)
    assert np.mean(inside) < 0.5


@pytest.mark.parametrize("mu", [1e-4, 0.01])
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_what_drowns_in_noise_is_not_told(mu, model):
    generator = np.random.default_rng(7)
    _, table = people(8, model=model)
    result = fit(table, mu=mu, generator=generator, model=model)
    assert all(np.isfinite(array).all() for array in result.arrays.values())
    assert not explaining(result).any()
    for name in ("coefficients", "fit", "constants"):
        assert not any(row[-1].reported for row in result.tables[name].rows), name
    assert "Nothing can be reported" in result.captions.headline
    assert not result.captions.found


def test_columns_that_say_the_same_are_not_told_apart():
    _, table = people(11)
    table[3] = table[4]
    told = [row[-1].reported for row in fit(table).tables["coefficients"].rows]
    assert told == [True, True, False, False, True, True]
    noisy = fit(table, mu=1.0, generator=np.random.default_rng(0))
    assert not any(row[-1].reported for row in noisy.tables["coefficients"].rows)


def test_the_headline_says_what_was_found_and_else_what_would_have_been():
    _, table = people(14)
    assert fit(table).captions.headline == "6 of 6 entries explain y."
    table[2] = np.random.default_rng(15).uniform(-1, 1, table.shape[1])
    said = fit(table).captions.headline
    assert said.startswith("No entry was found to explain y; at this ε")
    least = float(said.split("below ")[1].split()[0])
    assert 0.03 < least < 0.2  # 2.64 standard errors of 1/√2000


def test_a_whole_private_study_finds_the_coefficients():
    truth, table_ = people(10, count=sum(COUNTS))
    study = make_feature_study("regression", VIEWS, {"target": "y", "bound": SIZE**0.5})
    result = Simulation(study, sites_of(table_, VIEWS, COUNTS), 0).run()
    assert np.linalg.norm(explaining(result) - truth) < 0.3 * np.linalg.norm(truth)
    table = result.tables["coefficients"]
    assert [row[:2] for row in table.rows[:3]] == [
        ("age", "age1"),
        ("age", "age2"),
        ("image", "image1"),
    ]
    assert "95 %" in table.caption
    assert REGRESSION(study.analysis, shape_of(sites_of(table_, VIEWS, COUNTS))).remarks()


@pytest.mark.parametrize("weight", [0.1, 0.5, 1.0])
def test_the_targets_square_costs_nothing_more(weight):
    # Two persons as far apart as the sensitivity allows, with one and the same y².
    cosine = weight**2
    x = np.array([[1.0, cosine], [0.0, np.sqrt(1 - cosine**2)]])
    table = np.vstack([x, [1.0, -1.0]])
    site = sites_of(table, (("x", 2), ("y", 1)), (1, 1))
    said = {"target": "y", "bound": 1.0, "intercept": False, "target_weight": weight}
    plan = REGRESSION(REGRESSION.Parameters(**said), shape_of(site))
    query, bound = Query("regression", "regression_moment"), Bound(1 + weight**2, cone=True)
    one, other = (plan.statistics[query.statistic](plan, each, query, bound) for each in site)
    assert one[-1] == pytest.approx(other[-1])  # α² y²
    assert np.linalg.norm(one - other) == pytest.approx(bound.sensitivity(1))


@pytest.mark.parametrize(
    ("analysis", "views", "message"),
    [
        (
            {"target": "z", "bound": 1.0},
            VIEWS,
            "field 'analysis.target'.*age, y, image.*'z'",
        ),
        ({"target": "age", "bound": 1.0}, VIEWS, "has 2 entries. Name a view of one number"),
        ({"target": "y", "bound": 1.0}, (("y", 1),), "field 'features'"),
        ({"target": "y", "bound": 1.0}, (("y", 1), ("x", 3000)), "field 'features'.*got 3001"),
    ],
)
def test_views_that_don_t_fit_are_refused(analysis, views, message):
    table = np.zeros((sum(size for _, size in views), 2))
    shape = shape_of(sites_of(table, views, (2,)))
    with pytest.raises(StudyError, match=message):
        REGRESSION(REGRESSION.Parameters(**analysis), shape).planned()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bound": 0}, "greater than 0"),
        ({"model": "polynomial"}, "Give both or neither"),
        ({"cost": ((0, 0, 1), (0, -2), (1,))}, "Give both or neither"),
        ({"model": "polynomial", "cost": ((0, 0, 1), (0, -2), (0,))}, "positive for a minimum"),
        (
            {"model": "polynomial", "cost": ((0, 0, 1), (1, -2), (1,)), "intercept": False},
            "needs a model with intercept",
        ),
        ({"confidence": 1.0}, "less than 1"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValidationError, match=message):
        REGRESSION.Parameters.model_validate({"target": "y", "bound": 1.0, **wrong})


def test_what_predicts_is_kept_where_nothing_is_told():
    w, table = people(21)
    quiet = fit(table)
    assert explaining(quiet, "predictor") == pytest.approx(explaining(quiet), abs=1e-6)
    loud = fit(table, mu=0.05, generator=np.random.default_rng(22))
    assert not any(row[-1].reported for row in loud.tables["coefficients"].rows)
    predictor = explaining(loud, "predictor")
    assert 0 < np.linalg.norm(predictor) < 2 * np.linalg.norm(w)
    assert not explaining(loud).any()


def test_intervals_of_a_rare_group_hold_where_residuals_differ():
    found = [regressed(2000, 0.15, 3.0, 8.0, seed) for seed in range(30)]
    inside = [each[0].low <= 0 <= each[0].high for each in found]
    assert 0.86 <= np.mean(inside) <= 1.0
    error = np.std([each[0].value for each in found])
    told = np.mean([each[0].high - each[0].low for each in found]) / 3.92
    assert 0.8 < told / error < 1.25  # of one residual variance: 0.63


def test_a_plan_says_that_nothing_would_be_told_and_what_would_help():
    parameters = REGRESSION.Parameters(target="y", bound=8**0.5)
    many = (31,) * 34
    shape = Shape(9, many, many, "subject", views=(("x", 8), ("y", 1)), noise=0.6)
    said = REGRESSION(parameters, shape).remarks()[-1]
    assert said == f"{HOPELESS} {TOGETHER}"
    together = parameters.model_copy(update={"site_constants": False})
    assert not REGRESSION(together, shape).remarks()
    assert REGRESSION(together, replace(shape, noise=5.0)).remarks()[0] == f"{HOPELESS} {REMEDY}"
    assert len(REGRESSION(parameters, replace(shape, noise=0.0)).remarks()) == 1  # sites' means


def test_what_leaves_everything_open_asks_nobody_again():
    _, table = people(8)
    sites = sites_of(table, VIEWS, (table.shape[1],))
    parameters, asked = REGRESSION.Parameters(target="y", bound=SIZE**0.5), []

    def level(stage):
        asked.append(stage.stage)
        return 5.0

    draws = np.random.default_rng(0)
    drive_noisy(REGRESSION, parameters, sites, shape_of(sites), level, generator=draws)
    assert asked == ["regression"]
