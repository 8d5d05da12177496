"""Descriptions of columns by group: against NumPy, and how often their intervals hold."""

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks import describe as trials
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Release
from consortium.algorithms.findings import Finding
from consortium.errors import StudyError
from consortium.python.result import data_frame
from consortium.report.tables import plain_table
from consortium.simulation.simulation import Simulation
from consortium.study.spec import Study
from consortium.views.column import Column
from site_agent.data.tsv import encode_cell
from tests.support.cases import make_feature_sites, shape_of, sites_of

DESCRIBE = REGISTRY["describe"]
COUNTS = (90, 60, 30, 120)
PERSONS = sum(COUNTS)
VIEWS = (("who", 2), ("x", 3))
COLUMNS = {"age": {"low": 18, "high": 90}, "score": {"low": 0, "high": 30}}


def study_of(analysis, *, scheme="none", gaps=0.0, more=None, who=None, epsilon=8.0):
    """Return a study of ages and scores, with a sex and a group of two levels."""
    who = who or {"dx": {"levels": ["no", "yes"]}, "sex": {"levels": ["F", "M"]}}
    return Study.model_validate(
        {
            "study": "small",
            "sites": ["north", "east", "south", "west"],
            "features": [
                {"name": "who", "source": "table", "columns": who},
                {
                    "name": "x",
                    "source": "table",
                    "gaps": gaps,
                    "columns": more or {**COLUMNS, "time": {"low": 0, "high": 10}},
                },
            ],
            "privacy": {
                "unit": "subject",
                "epsilon": epsilon,
                "delta": 1e-5,
                "colluding_sites": 1,
                "scheme": scheme,
                "boost": "exact",
            },
            "algorithm": "describe",
            "analysis": analysis,
        }
    )


def people(seed=0, *, missing=0.0):
    """Return participants' vectors: group and sex, age, score and time from -1 to 1."""
    generator = np.random.default_rng(seed)
    table = np.empty((5, PERSONS), dtype=np.float32)
    table[:2] = np.where(generator.random((2, PERSONS)) < 0.4, 1, -1)
    table[2:] = np.clip(0.4 * generator.standard_normal((3, PERSONS)) + 0.2 * table[0], -1, 1)
    table[2:][generator.random((3, PERSONS)) < missing] = np.nan
    return table


def cells_of(result, statistic, entry, table="table1"):
    """Return the findings of a row: of both groups and of all."""
    (row,) = (r for r in result.tables[table].rows if r[1:3] == (entry, statistic))
    return row[3:]


def told(analysis, table, **more):
    return Simulation(study_of(analysis, **more), sites_of(table, VIEWS, COUNTS), 0).run()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_without_noise_numbers_are_those_of_numpy(missing):
    table = people(missing=missing)
    result = told({"groups": "dx", "bins": {"age": 36}}, table, gaps=0.5 if missing else 0.0)
    ages = 18 + 36 * (table[2].astype(np.float64) + 1)
    for place, own in enumerate((table[0] < 0, table[0] > 0, np.full(PERSONS, True))):
        values = ages[own]
        cell = {name: cells_of(result, name, "age")[place] for name in ("mean", "median")}
        spread = cells_of(result, "standard deviation", "age")[place]
        assert cell["mean"].value == pytest.approx(np.nanmean(values), abs=1e-6)
        assert spread.value == pytest.approx(np.nanstd(values), abs=1e-6)
        seen = values[~np.isnan(values)]
        half = (cell["mean"].high - cell["mean"].low) / 2
        assert half == pytest.approx(1.959964 * seen.std() / len(seen) ** 0.5, rel=1e-3)
        truth = np.quantile(seen, 0.5, method="inverted_cdf")
        assert cell["median"].low <= truth <= cell["median"].high
        assert abs(cell["median"].value - truth) <= 2  # a bin
        if missing:
            lacking = cells_of(result, "missing", "age")[place]
            assert lacking.value == pytest.approx(np.isnan(values).sum())
        men = cells_of(result, "participants with M", "sex")[place]
        assert men.value == pytest.approx((table[1][own] > 0).sum())
        share = cells_of(result, "share with M", "sex")[place]
        assert share.value == pytest.approx((table[1][own] > 0).mean())
    counts = [row[1].value for row in result.tables["groups"].rows]
    assert counts == pytest.approx([(table[0] < 0).sum(), (table[0] > 0).sum(), PERSONS])


def test_counts_in_bins_are_those_of_numpy_for_each_group():
    table = people()
    result = told({"groups": "dx", "columns": ["score"], "bins": 12}, table)
    scores = 15 * (table[3].astype(np.float64) + 1)
    rows = result.tables["bins"].rows
    for place, own in enumerate((table[0] < 0, table[0] > 0)):
        expected = np.histogram(scores[own], 12, (0, 30))[0]
        assert [row[4 + place].value for row in rows] == pytest.approx(expected)


def entries_of(values, low, high):
    """Return the entries that a site stores for a column's values."""
    column = Column(low=low, high=high)
    return np.array([encode_cell(repr(value), column)[0] for value in values], dtype=np.float32)


@pytest.mark.parametrize(("low", "high", "bins"), [(0, 30, 30), (18, 90, 20), (18, 90, 12)])
def test_every_integer_of_a_study_is_in_numpys_bin(low, high, bins):
    values = np.arange(low, high + 1)
    table = np.vstack([np.ones((2, len(values))), entries_of(values.tolist(), low, high)])
    more = {"score": {"low": low, "high": high}}
    study = study_of({"columns": ["score"], "bins": bins}, more=more)
    counts = (len(values) - 3, 1, 1, 1)
    result = Simulation(study, sites_of(table, (("who", 2), ("x", 1)), counts), 0).run()
    expected = np.histogram(values, bins, (low, high))[0]
    assert [row[4].value for row in result.tables["bins"].rows] == pytest.approx(expected)


def plan_over(sites, analysis, noise=1.0):
    return DESCRIBE(DESCRIBE.Parameters(**analysis), shape_of(sites, noise))


def answers(plan, sites, query):
    stage = next(each for each in plan.releases if each.statistic == query.statistic)
    return stage.bound, [
        plan.statistics[query.statistic](plan, site, query, stage.bound) for site in sites
    ]


def test_a_participant_in_other_cells_moves_the_counts_by_all_of_their_sensitivity():
    one, other = np.full((3, 4), -0.9), np.full((3, 4), -0.9)
    other[:, 0] = 0.9
    sites = [sites_of(table, (("x", 2), ("group", 1)), (4,))[0] for table in (one, other)]
    plan = plan_over(sites, {"groups": "group1", "bins": 4, "anyway": True})
    bound, (before, after) = answers(plan, sites, Query("counts", "describe_cells"))
    assert np.linalg.norm(after - before) == pytest.approx(bound.sensitivity(4))


def test_opposite_participants_move_the_moments_by_all_of_their_sensitivity():
    sites = [sites_of(sign * np.ones((2, 1)), (("x", 2),), (1,))[0] for sign in (-1, 1)]
    plan = plan_over(sites, {"bins": 4, "anyway": True})
    heard = {"centres": np.zeros((1, 2)), "scales": np.full(2, 0.01)}
    bound, (before, after) = answers(plan, sites, Query("sums", "describe_sums", heard))
    moved = bound.split(after - before)["moments"]
    assert np.linalg.norm(moved) == pytest.approx(bound.block("moments").spread)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-300, 1e300, np.inf, np.nan])
def test_no_scale_of_a_hostile_centre_exceeds_the_bound(scale):
    sites = [sites_of(np.array([[value], [0.3]]), (("x", 2),), (1,))[0] for value in (1.0, np.nan)]
    plan = plan_over(sites, {"anyway": True})
    heard = {"centres": np.array([[1e300, np.nan]]), "scales": np.full(2, scale)}
    bound, found = answers(plan, sites, Query("sums", "describe_sums", heard))
    for each in found:
        assert np.isfinite(each).all()
        assert np.linalg.norm(each) <= bound.norm * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "participants", "most"), [(1.0, 1000, 0.11), (0.5, 4000, 0.05)]
)
def test_noise_of_means_of_eight_columns_in_two_groups(epsilon, participants, most):
    kind = trials.KINDS["normal"]
    noise, forecast, _ = trials.judged(kind, epsilon, participants, range(25))
    root = float(np.sqrt(np.mean(np.square(noise))))
    assert root <= most
    assert root == pytest.approx(forecast, rel=0.2)


def test_a_study_of_four_hundred_is_refused():
    with pytest.raises(StudyError, match=r"analysis\.precision.*at most 0\.15.*is expected"):
        trials.plan_of("normal", 400, 1.0)


def test_counts_without_means_are_refused_if_they_are_mostly_noise():
    shape = shape_of(make_feature_sites(VIEWS, persons=COUNTS), noise=40.0)
    analysis = {"means": False, "columns": ["age", "score"]}
    with pytest.raises(StudyError, match="the noise of a count must be at most"):
        DESCRIBE(study_of(analysis).analysis, shape).planned()
    assert DESCRIBE(study_of({**analysis, "anyway": True}).analysis, shape).planned()


@pytest.mark.parametrize("name", sorted(trials.KINDS))
def test_intervals_hold_as_often_as_stated_on_unkind_columns(name):
    *_, tallies = trials.judged(trials.KINDS[name], 4.0, 1000, range(20))
    means, quantiles = tallies["mean"], tallies["quantile"]
    assert means.reported > 0.9 * (means.reported + means.withheld)
    assert means.covered / means.reported > 0.9
    assert quantiles.covered / quantiles.reported > 0.9
    if tallies["missing"].reported:
        assert tallies["missing"].covered / tallies["missing"].reported > 0.9


def test_what_does_not_fit_is_refused():
    for analysis, message in (
        ({"groups": "age"}, "must name a column with levels"),
        ({"groups": "dx", "shares": {"maybe": 0.5}}, "must name levels of 'dx'"),
        ({"columns": ["height"]}, "height is not a column"),
        ({"survival": {"death": {"time": "sex", "event": "sex"}}}, "a column with limits"),
        ({"survival": {"death": {"time": "time", "event": "age"}}}, "a column of two levels"),
        ({"shares": {"yes": 0.5}}, "requires 'groups'"),
        ({"bins": 1}, "bins"),
        ({"quantiles": [1.0]}, "quantiles"),
    ):
        with pytest.raises(ValidationError, match=message):
            study_of(analysis)


def test_groups_in_a_view_with_gaps_are_refused():
    more = {**COLUMNS, "arm": {"levels": ["a", "b"]}}
    with pytest.raises(ValidationError, match="must be in a view without gaps"):
        study_of({"groups": "arm"}, more=more, gaps=0.5)


def test_a_study_of_a_thousand_columns_is_refused():
    shape = shape_of(make_feature_sites((("x", 1000),)))
    with pytest.raises(StudyError, match="must name 1 to 100 columns, got 1000"):
        DESCRIBE(DESCRIBE.Parameters(), shape).planned()


def test_a_study_of_too_many_cells_is_refused():
    analysis = {"groups": "arm", "bins": 1000, "anyway": True}
    more = {"x[1-60]": {"low": 0, "high": 1}}
    levels = [str(number) for number in range(100)]
    study = study_of(analysis, more=more, who={"arm": {"levels": levels}})
    shape = shape_of(make_feature_sites((("who", 100), ("x", 60))))
    with pytest.raises(StudyError, match=r"at most 5,000,000 cells, got 6,000,000"):
        DESCRIBE(study.analysis, shape).planned()


def test_means_are_withheld_if_their_noise_is_large():
    table = people()
    result = told({"groups": "dx", "anyway": True}, table, scheme="cape", epsilon=0.3)
    cells = [c for row in result.tables["table1"].rows for c in row if isinstance(c, Finding)]
    assert any(not cell.reported for cell in cells)
    assert "withheld as too noisy" in result.captions.headline


def test_without_means_all_of_the_budget_is_for_counts():
    sites = sites_of(people(), VIEWS, COUNTS)
    with_means, without = (
        DESCRIBE(study_of({"means": means}).analysis, shape_of(sites, 1.0)).releases
        for means in (True, False)
    )
    assert [each.share for each in without] == [1.0]
    assert with_means[0].share < 0.5
    result = told({"means": False, "columns": ["age"]}, people())
    assert {row[2] for row in result.tables["table1"].rows} == {
        "quantile 0.25",
        "median",
        "quantile 0.75",
    }


def test_a_sites_people_see_columns_at_their_limits_and_constant_ones():
    table = people()
    table[2] = 1.0
    table[3, : PERSONS // 5] = -1.0
    (site, *_) = sites_of(table, VIEWS, (PERSONS,))
    plan = DESCRIBE(study_of({}).analysis, shape_of([site]))
    constant, limits = plan.compare(0, site)
    assert "the same value of 'age'" in constant
    assert "'score' are at or beyond one of its limits, 0 and 30" in limits


def test_a_curve_without_noise_is_that_of_the_product_limit():
    generator = np.random.default_rng(3)
    table = people()
    times = np.ceil(generator.exponential(6.0, PERSONS))  # whole years, at the ends of bins
    ends = generator.integers(1, 15, PERSONS)
    happened = times <= ends
    followed = np.minimum(times, ends).clip(max=10) - 0.5
    table[1] = np.where(happened & (times <= 10), 1.0, -1.0)
    table[4] = np.where((followed > 9.5) | (np.minimum(times, ends) > 10), 1.0, followed / 5 - 1)
    survival = {"death": {"time": "time", "event": "sex", "bins": 10}}
    result = told({"survival": survival, "columns": ["age"]}, table)
    cells = [row[2] for row in result.tables["survival"].rows]
    share = 1.0
    time, event = table[4].astype(np.float64), table[1] > 0
    for year, cell in enumerate(cells):
        inside = (time < 1 - 1e-6) & (np.abs(5 * (time + 1) - year - 0.5) < 0.1)
        at_risk = ((time >= 1 - 1e-6) | (5 * (time + 1) > year)).sum()
        lost, dead = (inside & ~event).sum(), (inside & event).sum()
        share *= 1 - dead / (at_risk - lost / 2)
        assert cell.value == pytest.approx(share)
        assert cell.low <= share <= cell.high


def test_means_are_those_of_the_sites_that_answered_the_second_round():
    """Sites with one group each are lost, which changes the share of the groups."""
    table = people()
    table[0, : COUNTS[0]] = -1.0
    sites = sites_of(table, VIEWS, COUNTS)
    plan = DESCRIBE(study_of({"groups": "dx", "columns": ["age"]}).analysis, shape_of(sites))
    run = plan.run()

    def release_of(query, present):
        _, found = answers(plan, [sites[n] for n in present], query)
        values = np.average(found, axis=0, weights=[COUNTS[n] for n in present])
        return Release(values, 0.0, present, tuple(map(float, COUNTS)))

    second = run.send(release_of(next(run), (0, 1, 2, 3)))
    last = release_of(second, (1, 3))
    with pytest.raises(StopIteration) as stop:
        run.send(last)
    kept = np.repeat([False, True, False, True], COUNTS)
    ages = 18 + 36 * (table[2].astype(np.float64) + 1)
    for place, own in enumerate((table[0] < 0, table[0] > 0)):
        mean = cells_of(stop.value.value, "mean", "age")[place]
        assert mean.value == pytest.approx(ages[own & kept].mean(), abs=1e-6)


def test_a_column_whose_limits_are_far_apart_is_warned_of():
    table = people()
    table[2] = np.clip(table[2], -0.05, 0.05)
    (site, *_) = sites_of(table, VIEWS, (PERSONS,))
    plan = DESCRIBE(study_of({}).analysis, shape_of([site]))
    (warning,) = plan.compare(0, site)
    assert "the values of 'age' here span less than 10 %" in warning


def test_a_tables_columns_in_python_are_numbers():
    result = Simulation(
        study_of({"groups": "dx", "anyway": True}, scheme="cape"),
        sites_of(people(), VIEWS, COUNTS),
        0,
    ).run()
    path = "table1"
    plain = plain_table(result.tables[path])
    frame = data_frame(plain.columns, plain.rows)
    for heading in ("dx=no", "dx=yes", "all"):
        assert {str(frame[f"{heading}{end}"].dtype) for end in ("", " low", " high")} == {"float64"}
