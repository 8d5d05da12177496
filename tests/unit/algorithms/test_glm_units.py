"""Families and sessions as units of `glm`: a random intercept, in the bounds of single persons."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api
from pydantic import ValidationError

from benchmarks.glm_runs import TableData, run_trial, trial_of
from benchmarks.glm_units import CELLS, Rows, make_rows, one_run, units_trial
from consortium.algorithms.base import Query
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.predictors import group_predictors, slope_predictors
from consortium.privacy.clipping import vector_norm

RANDOM = pytest.mark.parametrize("seed", range(4))
NOISE = 0.3


def random_rows(seed: int, sizes: tuple[int, ...] = (1, 2, 3, 4)) -> Rows:
    """Rows of units of these sizes at three sites, all within their limits."""
    generator = np.random.default_rng(seed)
    units = 90
    unit = np.repeat(np.arange(units), generator.choice(sizes, units))
    site = np.sort(generator.integers(3, size=units))[unit]
    group = (generator.random(len(unit)) < 0.4).astype(np.float64)
    x = generator.uniform(-0.6, 0.6, (2, len(unit))) + 0.2 * (group - 0.5)
    y = generator.normal(0, 0.3, (3, units))[:, unit] + generator.normal(0, 0.4, (3, len(unit)))
    y += generator.normal(0, 0.5, (3, 3))[:, site] + np.outer([0.3, 0.0, -0.2], group) + 0.4 * x[0]
    return Rows(np.clip(y, -3.9, 3.9), group, x, unit, site)


def effects_of(rows: Rows, correlation: float, **analysis: Any) -> np.ndarray:
    units = {"family": "family_id", "most_rows": 4, "correlation": correlation}
    trial = units_trial(rows, 4, norms={"deviation": 1.0}, units=units, **analysis)
    return run_trial(trial, 0.0, np.random.default_rng(0)).arrays["effect"]


def design_of(rows: Rows) -> np.ndarray:
    constants = (rows.site[:, None] == np.unique(rows.site)).astype(float)
    return np.column_stack([rows.group, rows.columns.T, constants])


def coefficients_of_gee(rows: Rows, correlation: float, column: int) -> np.ndarray:
    """Exchangeable equations with this correlation, of which every unit's count as one row's."""
    count = np.bincount(rows.unit)[rows.unit]
    weights = (1 + (count - 1) * correlation) / count
    found = []
    for y in rows.outcomes:
        likeness = statsmodels.api.cov_struct.Exchangeable()
        likeness.dep_params = correlation
        model = statsmodels.api.GEE(
            y, design_of(rows), groups=rows.unit, cov_struct=likeness, weights=weights
        )
        model.update_dep = False
        found.append(model.fit(maxiter=200).params[column])
    return np.array(found)


@RANDOM
@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.8])
def test_effects_are_those_of_generalized_estimating_equations(seed, correlation):
    rows = random_rows(seed)
    expected = coefficients_of_gee(rows, correlation, 0)
    assert effects_of(rows, correlation) == pytest.approx(expected, abs=1e-8)


@RANDOM
def test_slopes_are_those_of_generalized_estimating_equations(seed):
    rows = random_rows(seed)
    found = effects_of(rows, 0.6, contrasts={"age": "z01"}, groups={})
    # A slope is told by a public deviation, of half the distance between limits' middle and end.
    assert found == pytest.approx(0.5 * coefficients_of_gee(rows, 0.6, 1), abs=1e-8)


@RANDOM
def test_units_of_one_size_are_those_of_a_mixed_model(seed):
    rows = random_rows(seed, (3,))
    for number, y in enumerate(rows.outcomes):
        model = statsmodels.api.MixedLM(y, design_of(rows), groups=rows.unit)
        fitted = model.fit(method=["bfgs"])
        between, within = float(fitted.cov_re[0, 0]), float(fitted.scale)
        correlation = between / (between + within)
        found = effects_of(rows, correlation)[number]
        assert found == pytest.approx(fitted.fe_params[0], abs=1e-8)


def test_units_of_one_row_are_participants():
    rows = random_rows(1, (1,))
    alone = trial_of(
        *(rows.outcomes, rows.group > 0, rows.columns, rows.site), norms={"deviation": 1.0}
    )
    expected = run_trial(alone, 0.0, np.random.default_rng(0)).arrays
    units = units_trial(rows, 4, norms={"deviation": 1.0})
    found = run_trial(units, 0.0, np.random.default_rng(0)).arrays
    for name in ("effect", "error", "t", "p"):
        assert found[name] == pytest.approx(expected[name], rel=1e-9)


def test_a_unit_with_many_rows_counts_once():
    """Rows that are there twice change nothing where no correlation within units is assumed."""
    rows = random_rows(2, (1, 2))
    twice = np.sort(np.concatenate([np.arange(len(rows.unit))] * 2))
    double = Rows(
        *(rows.outcomes[:, twice], rows.group[twice], rows.columns[:, twice]),
        *(rows.unit[twice], rows.site[twice]),
    )
    assert effects_of(double, 0.0) == pytest.approx(effects_of(rows, 0.0), abs=1e-10)


@pytest.mark.parametrize("differ", [0.0, 0.5])
@pytest.mark.parametrize("slope", [False, True])
def test_a_unit_weighs_no_more_than_one_row_may(slope, differ):
    rows = make_rows(CELLS["families, ICC .8, stated .5"], 6, 300, np.random.default_rng(3))
    asked: dict[str, Any] = {"contrasts": {"age": "z01"}, "groups": {}} if slope else {}
    units = {"family": "family_id", "most_rows": 5, "correlation": 0.9, "differ": differ}
    trial = units_trial(rows, units=units, **asked)
    plan = Glm(trial.parameters, replace(trial.shape, noise=NOISE))
    query = Query("norms", "", {"proportions": plan.groups.proportions})
    predictors = (slope_predictors if slope else group_predictors)(plan, trial.sites[0], query)
    assert predictors.within is not None
    covariates, parts = predictors.covariates, predictors.within.covariates
    if slope:
        covariates = np.vstack([predictors.contrast, covariates])
        parts = np.concatenate([predictors.within.contrast[None], parts])
    whole = np.square(covariates).sum(axis=0)
    whole = whole + predictors.within.weight * np.square(parts).sum(axis=(0, 1))
    lift = 1.0 if differ == 0 else 2.0 if slope else 3.0
    assert plan.lift == lift
    assert whole.max() <= lift * plan.design.covariate_reach**2 * (1 + 1e-12)
    size = (predictors.within.parts > 0).sum(axis=0)
    several = size > 1
    assert (predictors.within.weight[several] >= (1 - 1e-9) / size[several]).all()
    if not slope:
        own = predictors.contrast**2 + predictors.within.weight * (
            predictors.within.contrast**2
        ).sum(axis=0)
        assert own.max() <= lift * predictors.largest**2 * (1 + 1e-12)


def hostile_unit(generator: np.random.Generator, features: int, rows: int) -> np.ndarray:
    """Rows far out, aligned or opposed, some of them missing."""
    size = generator.choice([0.3, 1.0, 30.0, 1e6])
    table = size * generator.standard_normal((rows, features))
    if generator.random() < 0.4:
        table = np.outer(generator.choice([-1.0, 1.0], rows), table[0])
    table[generator.random(rows) < 0.3] = np.nan
    return table.reshape(-1)


@pytest.mark.parametrize("differ", [0.0, 0.5])
@pytest.mark.parametrize("slope", [False, True])
def test_replacing_a_unit_with_all_its_rows_moves_no_block_further_than_planned(slope, differ):
    generator = np.random.default_rng(11)
    rows = make_rows(CELLS["families, ICC .8, stated .5"], 2, 24, generator)
    asked: dict[str, Any] = {"contrasts": {"age": "z01"}, "groups": {}} if slope else {}
    units = {"family": "family_id", "most_rows": 5, "differ": differ}
    averages = {"half": ["brain[1-5]"], "all": ["brain*"]}
    trial = units_trial(rows, units=units, averages=averages, **asked)
    plan = Glm(trial.parameters, replace(trial.shape, noise=NOISE))
    site, worst = trial.sites[0], dict[str, float]()
    for stage in plan.releases:
        local = Glm.statistics[stage.statistic]
        for _ in range(200):
            query = Query(stage.stage, stage.statistic, wild(stage, generator))
            table = site.table().copy()
            table[:, 0] = hostile_unit(generator, site.features, 5)
            other = table.copy()
            other[:, 0] = hostile_unit(generator, site.features, 5)
            told = [
                local(plan, TableData(each, site.extent.views), query, stage.bound)
                for each in (table, other)
            ]
            move = stage.bound.split((told[0] - told[1]) * table.shape[1])
            for block in stage.bound.blocks:
                ratio = vector_norm(move[block.name]) / block.spread
                worst[block.name] = max(worst.get(block.name, 0.0), ratio)
    assert max(worst.values()) <= 1 + 1e-9, worst
    assert min(worst["effects"], worst["products"]) > 0.9


def wild(stage: Any, generator: np.random.Generator) -> dict[str, Any]:
    """Heard arguments of any size."""
    found: dict[str, Any] = {}
    for name, form in stage.arguments.items():
        size = generator.choice([0.1, 1.0, 100.0])
        drawn = size * generator.standard_normal(form)
        found[name] = np.abs(drawn) if name in ("scales", "spread") else drawn
    return found


@pytest.mark.parametrize(
    ("name", "withheld"),
    [("two off", 1.0), ("half off, deviations x 1/3", 1.0), ("half off", 0.0)],
)
def test_a_slope_whose_column_is_mostly_cut_is_not_judged(name, withheld):
    found = one_run(CELLS[f"age, {name}, ratio 1.5"], 6, 8.0, 0)
    assert found["withheld"] == withheld


def test_a_slope_whose_column_looks_wide_as_rows_of_units_differ_is_judged():
    cell = replace(CELLS["fresh ages, ICC .7"], icc=0.9, stated=0.9)
    assert one_run(cell, 6, 8.0, 0)["withheld"] == 0.0


@pytest.mark.parametrize(
    "name", ["fresh families, ICC .45", "fresh pairs, ICC .5", "fresh ages, ICC .45"]
)
def test_a_forecast_of_units_holds_where_its_numbers_do(name):
    runs = [one_run(CELLS[name], 12, 8.0, number) for number in range(16)]
    error, told = (np.sqrt(np.mean([run[key] for run in runs])) for key in ("square", "forecast"))
    assert 0.85 < told / error < 1.25


def test_room_for_relatives_who_differ_is_worth_a_fifth_of_the_error_and_foretold():
    runs = {
        differ: [one_run(CELLS["families, ICC .6"], 6, 8.0, number, differ) for number in range(8)]
        for differ in (0.0, 0.6)
    }
    mean = {
        differ: {key: np.mean([run[key] for run in each]) for key in each[0]}
        for differ, each in runs.items()
    }
    assert mean[0.6]["square"] < 0.64 * mean[0.0]["square"]
    assert 0.8 < np.sqrt(mean[0.6]["forecast"] / mean[0.6]["square"]) < 1.25


@pytest.mark.parametrize(
    "cell", ["families, ICC .3", "families, ICC .8, stated 0", "age by sessions, ICC .8, stated 0"]
)
@pytest.mark.parametrize("epsilon", [8.0, None])
def test_intervals_hold_whatever_correlation_is_stated(cell, epsilon):
    runs = [one_run(CELLS[cell], 6, epsilon, number) for number in range(20)]
    covered = np.mean([each["covered"] for each in runs])
    assert 0.88 <= covered <= 1
    assert np.mean([each["size"] for each in runs]) <= 0.1
    error = np.sqrt(np.mean([each["square"] for each in runs]))
    assert 0.85 < np.sqrt(np.mean([each["stated"] for each in runs])) / error < 1.4


REFUSED = {
    "no units": ({"units": {"most_rows": 3}}, "give 'family'"),
    "all": ({"units": {"sessions": True}, "contrasts": "all"}, "Name one contrast"),
    "parts": ({"groups": {"a": [1.5, 2.5]}}, "must be integers"),
    "one row": ({"units": {"sessions": True, "most_rows": 1}}, "greater than or equal to 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_units_that_mean_nothing_are_refused(case):
    given, match = REFUSED[case]
    usual = {
        "outcomes": "x",
        "formula": "group1",
        "contrasts": {"patients": "group1"},
        "groups": {"a": [2, 2]},
    }
    with pytest.raises(ValidationError, match=match):
        GlmParameters.model_validate({**usual, **given})
