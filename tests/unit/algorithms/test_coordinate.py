"""Levels by view: they are kept, exactly, and the results are those of the plain statistics."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmarks.uneven import averaged
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Release, Shape
from consortium.algorithms.coordinate import centre
from consortium.algorithms.linear import HOPELESS
from consortium.errors import StudyError
from consortium.privacy import lattice
from consortium.privacy.bayesian import bayesian_level
from consortium.privacy.gdp import delta_of, mu_of
from consortium.simulation.simulation import Simulation
from consortium.study import masking
from consortium.study.plan import make_plan
from tests.support.cases import drive, make_feature_sites, make_feature_study, shape_of, sites_of

COORDINATE = REGISTRY["coordinate"]
VIEWS = (("genes", 2), ("y", 1), ("scan", 4))
COUNTS = (300, 500, 700, 500)
PROMISE = {"epsilon": 8.0, "delta": 1e-5}


def people(seed, count=2000):
    """Coefficients, and persons whose third entry is what the others explain."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (6, count))
    w = generator.uniform(-1, 1, 6)
    w *= 0.4 / np.linalg.norm(w)
    y = np.clip(0.3 + w @ x + 0.05 * generator.standard_normal(count), -1, 1)
    return w, np.insert(x, 2, y, axis=0)


def solve(table, *, mu=None, generator=None, **analysis):
    """The result for a table at one place, with Gaussian noise of loss μ."""
    site = sites_of(table, VIEWS, (table.shape[1],))
    parameters = COORDINATE.Parameters.model_validate({**PROMISE, **analysis})
    (release,) = COORDINATE(parameters, shape_of(site)).planned()
    run = COORDINATE(parameters, shape_of(site)).run()
    values = COORDINATE.statistics[next(run).statistic](None, site[0], Query("", ""), release.bound)
    deviation = 0.0
    if mu is not None:
        deviation = release.bound.sensitivity(table.shape[1]) / (mu * math.sqrt(release.share))
        values = values + deviation * generator.standard_normal(values.shape)
    with pytest.raises(StopIteration) as stop:
        run.send(Release(values, deviation))
    return stop.value.value


@pytest.mark.parametrize("levels", [{}, {"genes": 0.2, "y": 1.0}])
def test_without_noise_the_mean_is_the_mean(levels):
    _, table = people(0)
    assert solve(table, levels=levels).arrays["mean"][:, 0] == pytest.approx(table.mean(axis=1))


@pytest.mark.parametrize("levels", [{}, {"genes": 0.2, "y": 1.0}])
def test_without_noise_it_is_least_squares(levels):
    _, table = people(1)
    x, y = np.delete(table, 2, axis=0), table[2]
    expected, *_ = np.linalg.lstsq(np.vstack([x, np.ones(x.shape[1])]).T, y, rcond=None)
    result = solve(table, levels=levels, target="y")
    found = np.delete(result.arrays["coefficients"][:, 0], 2)
    assert found == pytest.approx(expected[:-1], abs=1e-8)
    assert result.arrays["intercept"] == pytest.approx(expected[-1:], abs=1e-8)


def part_losses(study, shape):
    """Exact μ of every view alone, rounding included, against the worst coalition."""
    plan = make_plan(study, shape)
    (stage,) = plan.stages
    mechanism, bound = stage.mechanism, stage.release.bound
    whole = bound.sensitivity(max(shape.units)) * max(mechanism.weights)
    rounding = mechanism.lattice.rounding(mechanism.entries)
    single = study.analysis.protects == "entry"
    for index in range(len(bound.parts)):
        share = bound.part_spread(index, single=single) / bound.spread
        yield plan.mu * (share * whole + rounding) / (whole + rounding)


LEVELS = st.dictionaries(st.sampled_from(["genes", "y", "scan"]), st.floats(0.05, 8.0), max_size=3)


@settings(max_examples=25, deadline=None)
@given(
    levels=LEVELS,
    protects=st.sampled_from(["view", "entry"]),
    randomize=st.sampled_from(["mean", "record"]),
    target=st.sampled_from([None, "y"]),
    scheme=st.sampled_from(["cape", "local"]),
)
def test_every_level_is_kept_with_rounding_and_against_a_coalition(
    levels, protects, randomize, target, scheme
):
    analysis = {"levels": levels, "protects": protects, "randomize": randomize, "target": target}
    study = make_feature_study("coordinate", VIEWS, analysis, scheme=scheme)
    shape = shape_of(make_feature_sites(VIEWS, persons=COUNTS))
    for mu, (view, _) in zip(part_losses(study, shape), VIEWS, strict=True):
        level = levels.get(view, PROMISE["epsilon"])
        assert delta_of(mu, level) <= PROMISE["delta"] * (1 + 1e-6)
    assert make_plan(study, shape).epsilon <= PROMISE["epsilon"] * (1 + 1e-9)


def test_a_level_is_used_up_where_nothing_else_binds():
    study = make_feature_study("coordinate", VIEWS, {"levels": {"genes": 0.5}})
    genes, *_ = part_losses(study, shape_of(make_feature_sites(VIEWS, persons=COUNTS)))
    assert genes == pytest.approx(mu_of(0.5, 1e-5), rel=0.02)  # room for the grid


@pytest.mark.parametrize("part", [1e-12, 1e-6, 0.5, 0.999])
def test_the_norm_of_a_tiny_part_is_not_lost_to_rounding(part):
    norm = centre._largest_norm(part, squares=True)
    assert 2 * norm * math.sqrt(1 - norm**2) == pytest.approx(part, rel=1e-14)


def test_the_margins_are_those_of_the_grid_and_of_the_graph():
    assert centre.MOST_ROUNDING >= lattice._MOST_ROUNDING
    assert centre.MOST_OF_DELTA >= masking.MOST_OF_DELTA


@pytest.mark.parametrize("target", [None, "y"])
def test_an_observer_finds_no_more_than_the_level_says_and_would_with_one_weight_for_all(target):
    # The falsifier: the best test of two persons who differ in one view alone.
    table = np.zeros((7, 4))
    table[:, 0] = np.sign(np.arange(7) - 3.2)
    other = table.copy()
    other[:2, 0] *= -1
    mu = mu_of(8.0, 1e-5)

    def loss(levels):
        parameters = COORDINATE.Parameters(**PROMISE, levels=levels, target=target)
        one, two = (sites_of(t, VIEWS, (4,))[0] for t in (table, other))
        (release,) = COORDINATE(parameters, shape_of([one])).planned()
        local, asked = COORDINATE.statistics[release.statistic], Query("", "")
        distance = np.linalg.norm(
            local(None, one, asked, release.bound) - local(None, two, asked, release.bound)
        )
        return distance / release.bound.sensitivity(4) * mu * math.sqrt(release.share)

    allowed = mu_of(0.5, 1e-5)
    assert 0.97 * allowed < loss({"genes": 0.5}) <= allowed
    assert loss({}) > 3 * allowed


def test_the_noise_of_every_entry_is_what_the_result_says():
    study = make_feature_study("coordinate", VIEWS, {"levels": {"genes": 0.5}, "confidence": 0.9})
    _, table = people(2)
    truth, found = table.mean(axis=1), []
    for seed in range(60):
        result = Simulation(study, sites_of(table, VIEWS, COUNTS), seed).run()
        found.append(result.arrays["mean"][:, 0])
        deviations = result.arrays["noise"][:, 0]
    assert np.std(found, axis=0) == pytest.approx(deviations, rel=0.3)
    assert np.mean(found, axis=0) == pytest.approx(truth, abs=0.6 * deviations.max())
    assert deviations[0] > 3 * deviations[3]  # genes over scan
    rows = result.tables["means"].rows
    assert [row[:2] for row in rows[:3]] == [("genes", "genes1"), ("genes", "genes2"), ("y", "y1")]
    assert "90 %" in result.tables["means"].caption


def test_randomizing_every_person_takes_the_root_of_twice_their_number_more():
    noise = {}
    for randomize in ("mean", "record"):
        analysis = {"levels": {"genes": 0.5}, "randomize": randomize}
        study = make_feature_study("coordinate", VIEWS, analysis, scheme="local")
        _, table = people(3)
        result = Simulation(study, sites_of(table, VIEWS, (500,) * 4), 0).run()
        noise[randomize] = result.arrays["noise"][:, 0]
    # Noise for twice as many as the nominal 500, each randomized alone.
    assert noise["record"] / noise["mean"] == pytest.approx(np.full(7, math.sqrt(1000)), rel=0.01)


def test_answers_of_sites_of_different_sizes_are_put_together():
    study = make_feature_study("coordinate", VIEWS, {"randomize": "record"})
    _, table = people(4)
    found = [
        Simulation(study, sites_of(table, VIEWS, COUNTS), seed).run().arrays for seed in range(40)
    ]
    plain = [each["mean"][:, 0] for each in found]
    assert np.abs(np.mean(plain, axis=0) - table.mean(axis=1)).max() < 0.2
    study = make_feature_study("coordinate", VIEWS, {"randomize": "record"}, scheme="none")
    exact = Simulation(study, sites_of(table, VIEWS, COUNTS), 0).run().arrays["mean"][:, 0]
    assert exact == pytest.approx(table.mean(axis=1), abs=1e-3)


def coefficients(result):
    return [row[-1] for row in result.tables["coefficients"].rows]


def test_intervals_of_coefficients_hold_the_truth_where_the_data_say_something():
    generator, inside = np.random.default_rng(5), []
    for seed in range(40):
        truth, table = people(seed + 100)
        result = solve(table, mu=8.0, generator=generator, levels={"genes": 1.0}, target="y")
        told = zip(truth, coefficients(result), strict=True)
        inside += [each.low <= w <= each.high for w, each in told if each.reported]
    assert len(inside) > 100
    assert 0.92 <= np.mean(inside) <= 0.99


def test_a_view_that_is_mostly_noise_leaves_nothing_told():
    # As the others' coefficients depend on it.
    generator, told = np.random.default_rng(6), []
    for seed in range(10):
        _, table = people(seed + 300)
        analysis = {"levels": {"genes": 0.1}, "epsilon": 4.0, "target": "y"}
        result = solve(table, mu=1.0, generator=generator, **analysis)
        told += [each.reported for each in coefficients(result)]
    assert np.mean(told) < 0.1


def test_intervals_of_means_hold_the_mean_of_people_like_the_persons():
    generator, inside, short = np.random.default_rng(7), [], []
    for seed in range(30):
        _, table = people(seed + 400, count=300)
        truth = np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0])
        result = solve(table, mu=8.0, generator=generator)
        told = [row[-1] for row in result.tables["means"].rows]
        inside += [each.low <= w <= each.high for w, each in zip(truth, told, strict=True)]
        off = np.abs(result.arrays["mean"][:, 0] - truth)
        short += list(off <= 1.96 * result.arrays["noise"][:, 0])
    assert np.mean(inside) >= 0.92
    assert np.mean(short) < 0.7  # noise alone, as the falsifier


def test_intervals_of_a_column_of_two_levels_hold():
    inside, widths, errors = [], [], []
    for seed in range(60):
        found, truth = averaged(400, 6, 0.0, 8.0, seed, "coordinate")
        inside += [each.low <= true <= each.high for each, true in zip(found, truth, strict=True)]
        widths.append((found[0].high - found[0].low) / 3.92)
        errors.append(found[0].value - truth[0])
    assert 0.92 <= np.mean(inside) <= 0.99
    assert 0.8 < np.mean(widths) / np.std(errors) < 1.25  # with a variance of 1/6: 0.5


def test_without_noise_standard_errors_are_those_of_the_entries():
    _, table = people(9)
    found = [row[-1] for row in solve(table, levels={"genes": 0.5}).tables["means"].rows]
    half = [(each.high - each.low) / 2 for each in found]
    assert half == pytest.approx(1.959964 * table.std(axis=1) / 2000**0.5, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    entries=st.integers(1, 4),
    radius=st.sampled_from([0.5, 1.0, 1.3, 2.0]),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["view", "entry"]),
)
def test_squares_cost_nothing_for_a_view_or_an_entry_that_changes_alone(
    entries, radius, seed, kind
):
    """Of two participants who differ in a view, or in an entry, the answers differ by its reach."""
    rng, views = np.random.default_rng(seed), (("v", entries), ("w", 2))
    analysis = {"radii": {"v": radius, "w": 0.7}, "protects": kind}
    parameters = COORDINATE.Parameters.model_validate({**PROMISE, **analysis})
    one = rng.choice([-1.0, 1.0, 0.3], entries + 2) * rng.choice([1.0, rng.random()], entries + 2)
    other = one.copy()
    changed = slice(0, entries) if kind == "view" else slice(0, 1)
    other[changed] = rng.choice([-one[changed], rng.uniform(-1, 1, entries)[changed]])
    sites = [sites_of(each[:, None], views, (1,))[0] for each in (one, other)]
    plan = COORDINATE(parameters, shape_of(sites[:1]))
    (release,) = plan.releases
    local = COORDINATE.statistics[release.statistic]
    apart = np.subtract(*(local(plan, site, Query("", ""), release.bound) for site in sites))
    reach = release.bound.part_spread(0, single=kind == "entry")
    assert np.linalg.norm(apart) <= reach * (1 + 1e-12)


def test_an_entry_that_is_turned_around_alone_reaches_what_its_level_allows():
    sites = [sites_of(np.array([[x], [0.0]]), (("v", 1), ("w", 1)), (1,))[0] for x in (1.0, -1.0)]
    plan = COORDINATE(COORDINATE.Parameters.model_validate(PROMISE), shape_of(sites[:1]))
    (release,) = plan.releases
    local = COORDINATE.statistics[release.statistic]
    apart = np.subtract(*(local(plan, site, Query("", ""), release.bound) for site in sites))
    assert np.linalg.norm(apart) == pytest.approx(release.bound.part_spread(0, single=True))


def test_every_site_has_a_constant_unless_the_study_says_otherwise():
    _, table = people(8)
    table[2] = np.clip(table[2] + np.repeat([0.2, -0.1, 0.0, 0.1], COUNTS), -1, 1)
    sites = sites_of(table, VIEWS, COUNTS)
    x, y = np.delete(table, 2, axis=0), table[2]
    for own in (True, False):
        columns = np.repeat(np.eye(4), COUNTS, axis=1) if own else np.ones((1, len(y)))
        expected, *_ = np.linalg.lstsq(np.vstack([x, columns]).T, y, rcond=None)
        analysis = {"target": "y", "site_constants": own, "levels": {"genes": 1.0}}
        parameters = COORDINATE.Parameters.model_validate({**PROMISE, **analysis})
        result = drive(COORDINATE, parameters, sites)[2]
        found = np.delete(result.arrays["coefficients"][:, 0], 2)
        assert found == pytest.approx(expected[:6], abs=1e-8)
        assert result.arrays["intercept"] == pytest.approx(expected[6:], abs=1e-8)
        assert bool(COORDINATE(parameters, shape_of(sites)).remarks()) == own


def test_the_table_tells_levels_and_the_assumption():
    analysis = {"levels": {"genes": 0.5}, "dependence": 0.1}
    study = make_feature_study("coordinate", VIEWS, analysis)
    result = Simulation(study, make_feature_sites(VIEWS), 0).run()
    table = result.tables["levels"]
    assert "Assumption" in table.caption
    assert "at most 0.1" in table.caption
    assert "The assumption is untested" in table.caption
    levels = {row[0]: row[3:] for row in table.rows}
    assert levels["genes"] == (0.5, pytest.approx(bayesian_level(0.5, 8.0, 0.1)))
    assert levels["scan"] == (8.0, pytest.approx(8.0))
    silent = make_feature_study("coordinate", VIEWS, {"levels": {"genes": 0.5}})
    table = Simulation(silent, make_feature_sites(VIEWS), 0).run().tables["levels"]
    assert "Assumption" not in table.caption
    assert len(table.columns) == 4


def test_an_entry_outside_its_limits_or_missing_moves_nothing_else():
    table = np.array([[0.5, np.nan], [7.0, np.inf], [-0.5, -1e30], *[[0.1, 0.2]] * 4])
    rows = [row[-1] for row in solve(np.tile(table, 5)).tables["means"].rows]
    assert [row.reported for row in rows] == [True] * 7
    assert [row.value for row in rows[:3]] == pytest.approx([0.25, 1.0, -0.75])
    assert [row.value for row in rows[3:]] == pytest.approx(np.full(4, 0.15))


@pytest.mark.parametrize(
    ("analysis", "message"),
    [
        ({"levels": {"z": 1.0}}, "field 'analysis.levels': .*'z'"),
        ({"radii": {"z": 1.0}}, "field 'analysis.radii': .*'z'"),
        ({"levels": {"genes": 1e-4}}, "field 'analysis.levels'.*'genes'"),
        ({"target": "scan"}, "has 4 entries. Name a view of one number"),
    ],
)
def test_views_that_don_t_fit_are_refused(analysis, message):
    shape = shape_of(make_feature_sites(VIEWS))
    with pytest.raises(StudyError, match=message):
        COORDINATE(COORDINATE.Parameters(**PROMISE, **analysis), shape).planned()


def test_least_squares_needs_something_that_explains():
    views = (("y", 1),)
    with pytest.raises(StudyError, match="in addition to the target"):
        COORDINATE(
            COORDINATE.Parameters(**PROMISE, target="y"), shape_of(make_feature_sites(views))
        ).planned()


def test_a_plan_without_the_studys_promise_is_refused():
    with pytest.raises(StudyError, match="field 'analysis'"):
        COORDINATE(COORDINATE.Parameters(), shape_of(make_feature_sites(VIEWS))).planned()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"levels": {"genes": 9.0}}, "above the participant's"),
        ({"levels": {"genes": 0.0}}, "greater than 0"),
        ({"epsilon": 7.0}, "must be that of privacy"),
        ({"delta": None}, "must be that of privacy"),
        ({"dependence": 1.5}, "less than or equal to 1"),
        ({"target": "y", "protects": "entry", "radii": {"scan": 1.0}}, "radii"),
        ({"randomize": "some"}, "randomize"),
        ({"radii": {"scan": 1e-7}}, "radii"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValidationError, match=message):
        make_feature_study("coordinate", VIEWS, wrong)


@pytest.mark.parametrize("level", [0.3, 1.0])
def test_more_budget_for_the_others_tells_no_product_worse(level):
    """With the whole budget a view that is held down is hidden in its own products' noise."""
    shape, worst, cost = shape_of(make_feature_sites(VIEWS, persons=COUNTS)), [], []
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        analysis = {"levels": {"genes": level}, "target": "y"}
        study = make_feature_study("coordinate", VIEWS, analysis, epsilon=epsilon)
        plan = make_plan(study, shape)
        mechanism = plan.stages[0].mechanism
        weights = np.array([part.weight for part in mechanism.bound.parts])
        noise = mechanism.noise.aggregate() / np.outer(weights, weights)
        worst.append(np.sqrt(np.square(noise).sum()))
        cost.append(plan.epsilon)
    assert max(worst[1:]) <= 1.05 * min(worst)
    assert cost[-1] < 8.0


def test_with_the_whole_budget_a_view_that_is_held_down_would_be_hidden(monkeypatch):
    monkeypatch.setattr(centre, "_SHARES", (1.0,))
    with pytest.raises(AssertionError):
        test_more_budget_for_the_others_tells_no_product_worse(1.0)


@pytest.mark.parametrize(("persons", "hopeless"), [(100, True), (1_600, False)])
def test_a_plan_states_that_coefficients_would_be_withheld(persons: int, hopeless: bool) -> None:
    views, sizes = (("genes", 6), ("scan", 4), ("y", 1)), (persons,) * 4
    parameters = COORDINATE.Parameters.model_validate(
        {**PROMISE, "target": "y", "levels": {"genes": 1.0}}
    )
    plan = COORDINATE(parameters, Shape(11, sizes, sizes, "subject", views=views, noise=0.6))
    stated = any(remark.startswith(HOPELESS) for remark in plan.remarks())
    (chance,) = [each.value for each in plan.expect() if each.name.startswith("chance")]
    assert stated == hopeless == (chance < 0.5)
