"""`glm` with an open cohort's table: the same effects, smaller errors, and clear refusals."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import (
    AGE_SCALE,
    least_squares,
    make_open_trial,
    make_trial,
    noise_of,
    open_table_of,
    run_trial,
)
from benchmarks.glm_units import CELLS, make_rows, units_trial
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.kernels.known_correlation import KnownCorrelation
from consortium.algorithms.glm.kernels.outcome_correlation import EqualCorrelation
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.open_cohort import OpenTable
from consortium.errors import StudyError
from consortium.views.table import TableView

SLOPE = {"contrasts": {"age": "age1"}, "groups": {}}


def cohort_of(persons=200, entries=12, seed=5, **more):
    """Other participants than the hospitals', of the same sites' kind."""
    return make_people(persons, entries, 4, np.random.default_rng((seed, 3)), **more)


def people_of(persons=300, entries=12, seed=1):
    return make_people(persons, entries, 4, np.random.default_rng(seed))


def false_cohort(kind):
    cohort = cohort_of()
    if kind == "others":
        return replace(cohort, outcomes=cohort.outcomes[::-1] * 3 + 2)
    return replace(cohort, covariates=-cohort.covariates, group=~cohort.group)


# -- effects -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["own", "others", "reversed"])
@pytest.mark.parametrize("asked", [{}, SLOPE, {"contrasts": "all"}], ids=["group", "slope", "all"])
def test_without_noise_effects_are_those_of_pooled_data_whatever_the_table_says(kind, asked):
    people = people_of()
    cohort = cohort_of() if kind == "own" else false_cohort(kind)
    trial = make_open_trial(people, cohort, averages={"some": ["brain1", "brain2"]}, **asked)
    plan = Glm(trial.parameters, trial.shape)
    found = run_trial(trial, 0.0, np.random.default_rng(0), plan=plan)
    design = people.design()
    order = [1, 0, *range(2, len(design))] if asked == SLOPE else [*range(len(design))]
    unit = AGE_SCALE * plan.parameters.covariates["age1"].deviation if asked == SLOPE else 1.0
    pooled = unit * least_squares(design[order], people.outcomes)[0]
    deviation = found.arrays["deviation"]
    assert found.arrays["effect"] * deviation == pytest.approx(pooled, abs=1e-8)
    mean = (pooled / deviation)[:2].mean()
    assert found.arrays["average_effect"] == pytest.approx([mean], abs=1e-8)
    if asked.get("contrasts") == "all":
        table = found.tables["coefficients"]
        own = [row[table.columns.index("age1")] for row in table.rows]
        ages = least_squares(design[[1, 0, *range(2, len(design))]], people.outcomes)[0]
        scale = AGE_SCALE * plan.parameters.covariates["age1"].deviation
        assert own * deviation == pytest.approx(scale * ages, abs=1e-8)


def test_families_with_an_open_cohort_have_the_effects_that_they_have_without():
    rows = make_rows(CELLS["families, ICC .3"], 4, 80, np.random.default_rng(2))
    trial = units_trial(rows)
    names = [f"brain{n}" for n in range(1, len(rows.outcomes) + 1)]
    found = []
    for table in (None, table_of_rows(rows, trial, names)):
        given = trial.parameters.model_dump(exclude={"norms", "explained"}, exclude_unset=True)
        given |= {"open": "cohort.tsv"} if table else {"norms": {"deviation": 1.0}}
        shape = replace(trial.shape, open_cohort=table)
        asked = replace(trial, parameters=GlmParameters.model_validate(given), shape=shape)
        own = run_trial(asked, 0.0, np.random.default_rng(0)).arrays
        found.append(own["effect"] * own["deviation"])
    assert found[1] == pytest.approx(found[0], abs=1e-8)


def table_of_rows(rows, trial, names):
    values = np.random.default_rng(8).standard_normal((60, len(names)))
    group = np.random.default_rng(9).choice([-1.0, 1.0], 60)
    values += 2.0 * group[:, None]
    label = trial.parameters.contrasted
    cells = np.column_stack([values, group])
    return OpenTable((*names, label), tuple(tuple(map(repr, r)) for r in cells.tolist()), "")


def test_missing_outcomes_have_the_effects_of_participants_who_have_them():
    people = people_of(400)
    missing = np.random.default_rng(4).random(people.outcomes.shape) < 0.1
    people = replace(people, outcomes=np.where(missing, np.nan, people.outcomes))
    found = []
    for trial in (make_trial(people), make_open_trial(people, cohort_of())):
        given = trial.parameters.model_dump(exclude_unset=True)
        gaps = [view.model_copy(update={"gaps": 0.5}) for view in views(-9.0, 9.0)[:1]]
        context = {"features": [*gaps, *views(-9.0, 9.0)[1:]]}
        given["formula"] = "dx1 + age1 + icv1"
        table = broken(
            lambda columns: columns.update(
                dx1=["yes" if float(cell) > 0 else "no" for cell in columns["dx1"]]
            )
        )
        shape = replace(trial.shape, open_cohort=table)
        given["covariates"] = {"age1": {"mean": 0, "deviation": 0.1}}
        given["covariates"]["icv1"] = {"mean": 0, "deviation": 0.1}
        if "norms" in given:
            given["norms"] = {"deviation": 1.0}
        asked = GlmParameters.model_validate(given, context=context)
        result = run_trial(
            replace(trial, parameters=asked, shape=shape), 0.0, np.random.default_rng(0)
        )
        found.append(result.arrays["effect"] * result.arrays["deviation"])
    assert found[1] == pytest.approx(found[0], abs=0.06)


def halves_of(people):
    """Participants of the first four sites, and of the others, with the same true effects."""
    found = []
    for here in (people.site < 4, people.site >= 4):
        columns = {"outcomes": people.outcomes[:, here], "covariates": people.covariates[:, here]}
        site = people.site[here] - people.site[here].min()
        found.append(replace(people, group=people.group[here], site=site, **columns))
    return found


def found_error(result, unit):
    """Mean standard error in the outcomes' own unit, withheld or not."""
    return result.numbers["mean_error"] * np.mean(unit)


def test_an_open_cohort_makes_errors_smaller_and_intervals_hold():
    squares, covered, second, told = [], [], [], []
    for seed in range(30):
        people, cohort = halves_of(make_people(800, 12, 8, np.random.default_rng((seed, 11))))
        for name, trial in (
            ("none", make_trial(people, norms={})),
            ("open", make_open_trial(people, cohort)),
        ):
            result = run_trial(trial, noise_of(2, 4), np.random.default_rng(seed))
            own, unit = result.arrays, result.arrays["deviation"]
            squares.append((name, np.square(found_error(result, unit))))
        truth = people.truth / unit
        covered.append(np.mean((own["low"] <= truth) & (truth <= own["high"])))
        second.append(np.mean(np.square(own["with_open"] - truth)))
        told.append(np.mean(np.square(own["with_open_error"])))
    error = {n: np.sqrt(np.mean([v for m, v in squares if m == n])) for n in ("none", "open")}
    assert error["open"] < 0.95 * error["none"]
    assert 0.935 < np.mean(covered) < 0.995
    assert 0.85 < np.sqrt(np.mean(told) / np.mean(second)) < 1.4
    assert np.mean(second) < 0.5 * np.mean([v for m, v in squares if m == "open"])


# -- the plan ------------------------------------------------------------------------------


def test_a_cohort_of_four_participants_for_each_outcome_gives_a_matrix_of_correlations():
    people = people_of()
    few, many = (
        Glm(trial.parameters, trial.shape).outcome_correlation
        for trial in (make_open_trial(people, cohort_of(n)) for n in (40, 60))
    )
    assert isinstance(few, EqualCorrelation)
    assert isinstance(many, KnownCorrelation)


def test_columns_that_a_study_states_stay_and_others_are_the_open_cohorts():
    people = people_of()
    trial = make_open_trial(people, cohort_of(), covariates={"age1": {"mean": 0, "deviation": 1}})
    plan = Glm(trial.parameters, trial.shape)
    assert plan.parameters.covariates["age1"].deviation == 1
    own = cohort_of().covariates[1] / AGE_SCALE
    assert plan.parameters.covariates["icv1"].mean == pytest.approx(own.mean())


# -- the results ---------------------------------------------------------------------------


def test_the_table_says_which_columns_are_not_of_the_hospitals_alone():
    trial = make_open_trial(people_of(), cohort_of())
    found = run_trial(trial, noise_of(4, 4), np.random.default_rng(0))
    table = found.tables["contrast-patients"]
    assert table.columns[-3:] == ("open", "with_open", "with_open_error")
    assert "not only of the hospitals" in table.caption
    assert "cohort.tsv" in found.captions.meaning
    assert "200 participants of an open cohort at 4 sites" in found.captions.methods
    between = found.arrays["with_open"] - found.arrays["open"]
    whole = found.arrays["effect"] - found.arrays["open"]
    assert np.all(between * whole >= 0)
    assert np.all(np.abs(between) <= np.abs(whole))


def test_outcomes_far_from_the_open_cohorts_are_reported():
    people = people_of()
    far = people.outcomes.copy()
    far[3] += 6 * people.deviation[3]
    trial = make_open_trial(replace(people, outcomes=far), cohort_of())
    found = run_trial(trial, noise_of(8, 4), np.random.default_rng(0))
    assert "('brain4' is one) are more than 3 standard deviations" in found.captions.headline
    assert "open cohort's mean" in found.captions.headline


def test_an_open_cohort_whose_slopes_contradict_the_hospitals_withholds_effects():
    people, cohort = people_of(600), cohort_of(400)
    steep = 0.9 * people.covariates[0]
    people = replace(people, outcomes=people.outcomes + steep)
    states = []
    for sign in (1, -1):
        own = replace(cohort, outcomes=cohort.outcomes + sign * 0.9 * cohort.covariates[0])
        found = run_trial(
            make_open_trial(people, own, **SLOPE), noise_of(20, 4), np.random.default_rng(0)
        )
        table = found.tables["contrast-age"]
        states.append([row[table.columns.index("state")] for row in table.rows])
    assert not any("open slopes" in state for state in states[0])
    assert any("open slopes" in state for state in states[1])


# -- refusals ------------------------------------------------------------------------------


def broken(change):
    """The table of a cohort after a change of its columns, by name."""
    table = open_table_of(cohort_of())
    columns = dict(zip(table.names, map(list, zip(*table.cells, strict=True)), strict=True))
    change(columns)
    return OpenTable(tuple(columns), tuple(zip(*columns.values(), strict=True)), "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.pop("brain3"), "a column for each of 12 outcomes, and lacks 'brain3'"),
        (lambda c: c["brain3"].__setitem__(4, "thick"), "line 6, column 'brain3'.*got 'thick'"),
        (lambda c: c["brain3"].__setitem__(4, "1e300"), "must be a number from -1e\\+12"),
        (lambda c: c["age1"].__setitem__(0, "inf"), "line 2, column 'age1'"),
        (lambda c: c.update(brain3=["2.5"] * 200), "outcome 'brain3' must vary"),
        (lambda c: c.update(brain3=["n/a"] * 200), "outcome 'brain3' must vary"),
        (lambda c: c.update(brain3=["n/a"] * 180 + ["1", "2"] * 10), "20 of 200 have"),
    ],
)
def test_a_table_that_can_not_be_used_is_refused_with_the_reason(change, said):
    trial = make_open_trial(people_of(), cohort_of())
    with pytest.raises(StudyError, match=said):
        Glm(trial.parameters, replace(trial.shape, open_cohort=broken(change)))


def test_a_row_that_lacks_a_value_is_left_out_and_a_column_that_is_missing_has_no_slope():
    def change(columns):
        columns["brain2"][7] = "n/a"
        columns["age1"][8] = ""
        del columns["dx1"]

    trial = make_open_trial(people_of(), cohort_of())
    plan = Glm(trial.parameters, replace(trial.shape, open_cohort=broken(change)))
    assert (plan.open.persons, plan.open.left_out) == (198, 2)
    assert plan.open.fit.varied.tolist() == [False, True, True, True]
    assert not plan.open.knows_contrast


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"norms": {"deviation": 1.0}}, "norms: is taken from the open cohort"),
        ({"explained": 0.3}, "explained: is taken from the open cohort"),
        ({"basis": "smooth", "smoothness": 8}, "basis: smooth"),
        ({"open": "directions.npz"}, "a table of participants"),
    ],
)
def test_what_the_table_gives_is_not_stated_in_the_study(more, said):
    given = {"outcomes": "brain", "formula": "dx1", "contrasts": {"a": "dx1"}, "shares": 0.5}
    with pytest.raises(ValueError, match=said):
        GlmParameters.model_validate({**given, "open": "cohort.tsv", **more})


def views(low, high):
    return [
        TableView.model_validate({"name": name, "source": "table", "columns": columns})
        for name, columns in (
            ("brain", {"brain[1-12]": {"low": low, "high": high}}),
            ("dx", {"dx1": {"levels": ["no", "yes"]}}),
            ("age", {"age1": {"low": -1.0, "high": 1.0}}),
            ("icv", {"icv1": {"low": -1.0, "high": 1.0}}),
            ("sex", {"sex1": {"levels": ["F", "M"]}}),
        )
    ]


def with_views(low=-9.0, high=9.0, change=lambda columns: None):
    """The plan of a study with named levels and limits."""
    trial = make_open_trial(people_of(), cohort_of())
    given = trial.parameters.model_dump(exclude_unset=True)

    def named(columns):
        columns["dx1"] = ["yes" if float(cell) > 0 else "no" for cell in columns["dx1"]]
        columns["sex1"] = ["M" if float(cell) > 0 else "F" for cell in columns["sex1"]]
        change(columns)

    shape = replace(trial.shape, open_cohort=broken(named))
    context = {"features": views(low, high)}
    return Glm(GlmParameters.model_validate(given, context=context), shape)


def test_levels_and_limits_are_the_studys():
    plain = make_open_trial(people_of(), cohort_of())
    same = Glm(plain.parameters, plain.shape).open.fit
    assert with_views().open.fit.slopes * 9.0 == pytest.approx(same.slopes, rel=0.02, abs=0.02)
    with pytest.raises(StudyError, match="column 'brain1': most values must be from 100 to 200"):
        with_views(100.0, 200.0)
    with pytest.raises(StudyError, match=r"study's levels \(F, M\), got 'male'"):
        with_views(change=lambda columns: columns["sex1"].__setitem__(0, "male"))


def test_a_site_is_told_which_outcomes_do_not_fit_the_open_cohort():
    people = people_of()
    far = people.outcomes.copy()
    far[3] += 60
    trial = make_open_trial(replace(people, outcomes=far), cohort_of())
    notes = Glm(trial.parameters, trial.shape).compare(0, trial.sites[0])
    assert any("'brain4'" in note and "location in the open cohort" in note for note in notes)
