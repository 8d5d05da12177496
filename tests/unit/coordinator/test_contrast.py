"""Contrasts after the fact: what a run of its own would have told, from the tables of another."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api
from scipy.stats import t as student

from consortium.base.atomic import write_text
from consortium.coordinator.contrast import compare_coefficients, joint, worked_out
from consortium.errors import OutputError, StudyError
from consortium.report.coefficients import read_released
from consortium.report.tables import write_tables
from consortium.simulation.simulation import Simulation
from tests.support.cases import sites_of
from tests.support.command_line import enter
from tests.unit.algorithms.test_glm import least_squares, study_of, wards_and_regions

VIEWS = (("who", 5), ("brain", 3))
TABLE = wards_and_regions()


class Run:
    """As much of a finished study as its tables need."""

    def __init__(self, study, result):
        self.study, self.result = study, result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    study = study_of(contrasts="all")
    result = Simulation(study, sites_of(TABLE, VIEWS, (50,) * 4), 0).run()
    out = tmp_path_factory.mktemp("out")
    write_tables(out, Run(study, result))
    return out


@pytest.mark.parametrize(
    ("expression", "column"), [("ward=c - ward=b", 3), ("c - b", 3), ("- b + 1.0 * c", 3)]
)
def test_levels_are_compared_as_a_study_of_its_own_would(folder, expression, column):
    sites = (np.repeat(np.arange(4), 50)[None] == np.arange(4)[:, None]).astype(float)
    # Against the second level: the columns of the first and the third.
    design = np.vstack([TABLE[column], TABLE[1], TABLE[4] > 0, TABLE[0], sites])
    expected = 1.5 * least_squares(design, TABLE[5:])[0] / 0.6
    found = compare_coefficients(read_released(folder), expression)
    assert [row[2] for row in found.rows] == pytest.approx(expected, abs=1e-3)


def noisy_run(folder, **analysis):
    study = study_of("cape", contrasts="all", anyway=True, **analysis)
    result = Simulation(study, sites_of(TABLE, VIEWS, (50,) * 4), 0).run()
    write_tables(folder, Run(study, result))
    return result.arrays


def test_the_runs_own_contrast_has_the_test_and_the_interval_that_the_run_told(tmp_path):
    arrays = noisy_run(tmp_path)
    found = np.array(
        [row[2:] for row in compare_coefficients(read_released(tmp_path), "diagnosis").rows]
    )
    for column, name in enumerate(("effect", "error", "t", "p", "q", "low", "high")):
        assert found[:, column] == pytest.approx(arrays[name], rel=1e-4), name


def test_tests_know_how_few_persons_the_errors_were_found_from(folder):
    row = compare_coefficients(read_released(folder), "diagnosis").rows[1]
    # Two hundred persons leave 83 degrees of freedom: a normal test would say less.
    assert row[5] == pytest.approx(2 * student.sf(abs(row[4]), 200 / 2.4), rel=1e-6)


def test_patients_less_controls_is_the_contrast_itself_with_its_error(folder):
    released = read_released(folder)
    one, other = (
        compare_coefficients(released, text) for text in ("patient - control", "2 * diagnosis")
    )
    assert [2 * row[2] for row in one.rows] == pytest.approx([row[2] for row in other.rows])
    assert [2 * row[3] for row in one.rows] == pytest.approx([row[3] for row in other.rows])
    assert all(row[7] < row[2] < row[8] for row in one.rows)


def test_a_joint_test_of_one_combination_is_its_t_test(folder):
    released = read_released(folder)
    (one, both) = (compare_coefficients(released, "b - c"), joint(released, ["b - c"]))
    assert [row[2] for row in both.rows] == pytest.approx([row[4] ** 2 for row in one.rows])
    for row, own in zip(both.rows, one.rows, strict=True):
        assert row[5:] == pytest.approx(own[5:7])


@pytest.mark.parametrize("noisy", [False, True])
def test_a_joint_test_does_not_depend_on_how_levels_are_compared(folder, tmp_path, noisy):
    if noisy:
        noisy_run(tmp_path)
    released = read_released(tmp_path if noisy else folder)
    asked = (["ward"], ["ward=b", "ward=c"], ["c - b", "2 * ward=b"])
    one, *others = ([row[2:] for row in worked_out(released, each).rows] for each in asked)
    assert [row[1] for row in one] == [2.0] * 3
    for each in others:
        assert np.array(each) == pytest.approx(np.array(one), rel=1e-6)


def test_a_joint_test_is_that_of_least_squares_but_for_the_variance_of_the_outcome(folder):
    sites = (np.repeat(np.arange(4), 50)[None] == np.arange(4)[:, None]).astype(float)
    design = np.vstack([TABLE[4] > 0, TABLE[0], TABLE[2:4], sites]).T.astype(float)
    matrix = np.eye(len(design.T))[2:4]
    fits = [statsmodels.api.OLS(y, design).fit() for y in TABLE[5:]]
    single = [row[4] for row in compare_coefficients(read_released(folder), "ward=c").rows]
    # Variances are those within sites, covariates' part among them.
    ratio = np.array(single) / [fit.tvalues[3] for fit in fits]
    expected = ratio**2 * [fit.f_test(matrix).fvalue for fit in fits]
    found = [row[2] for row in joint(read_released(folder), ["ward"]).rows]
    assert found == pytest.approx(expected, rel=0.01)


def test_what_says_the_same_twice_is_no_joint_test(folder):
    with pytest.raises(StudyError, match="only 1 of 2 are"):
        joint(read_released(folder), ["b - c", "c - b"])


def test_the_command_prints_the_table(folder):
    said = enter("consortium", "contrast", folder, "patient - control", "--json")
    assert said.code == 0
    assert "effect on every outcome" in said.out
    assert "region2" in enter("consortium", "contrast", folder, "ward=b - ward=c").out
    told = enter("consortium", "contrast", folder, "ward", "--json").out
    assert "ward=b, ward=c: whether any is apart from 0" in told


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("patients - controls", r"one of .*ward=b.*got 'patients'"),
        ("patient-control", "got 'patient-control'"),
        ("control", "is zero"),
        ("patient - patient", "is zero"),
        ("patient / control", "spaces around"),
        ("", "is zero"),
    ],
)
def test_what_is_no_contrast_is_refused_with_a_sentence(folder, expression, message):
    with pytest.raises(StudyError, match=message):
        compare_coefficients(read_released(folder), expression)


def test_a_folder_without_coefficients_says_what_is_needed(tmp_path):
    with pytest.raises(OutputError, match="contrasts: all"):
        read_released(tmp_path)


def test_damaged_tables_are_refused(folder, tmp_path):
    for path in (folder / "tables").glob("*.tsv"):
        text = path.read_text(encoding="utf-8").replace("0.", "x")
        write_text(tmp_path / "tables" / path.name, text)
    with pytest.raises(OutputError, match="damaged"):
        read_released(tmp_path)


@pytest.mark.parametrize("told", ["inf", "nan", "0", "-1"])
def test_tables_with_numbers_that_no_run_tells_are_damaged(folder, tmp_path, told):
    for path in (folder / "tables").glob("*.tsv"):
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        for name in {"chance", "freedom"}.intersection(lines[0]):
            lines[1][lines[0].index(name)] = told
        text = "\n".join("\t".join(line) for line in lines)
        write_text(tmp_path / "tables" / path.name, text + "\n")
    with pytest.raises(OutputError, match="damaged"):
        read_released(tmp_path)


@pytest.mark.parametrize(
    "asked",
    [
        ["0.000000001 * ward=b", "999999999 * ward=c"],
        ["ward=b - ward=c", "1.00001 * ward=b - ward=c"],
    ],
)
def test_a_joint_test_does_not_depend_on_factors(folder, asked):
    released = read_released(folder)
    one, other = ([row[2:] for row in joint(released, each).rows] for each in (["ward"], asked))
    assert np.array(other) == pytest.approx(np.array(one), rel=1e-6)


def test_combinations_without_any_error_are_no_test(folder):
    released = read_released(folder)
    same, none = np.ones_like(released.chance), np.zeros_like(released.noise)
    alike = replace(released, chance=same, noise=none, moment_noise=none)
    for work in (compare_coefficients, lambda r, text: joint(r, [text, "diagnosis"])):
        with pytest.raises(StudyError, match=r"no standard error for 'region1' of view 'brain'"):
            work(alike, "b - c")
    with pytest.raises(StudyError, match="is not a sum of columns"):
        compare_coefficients(released, f"{'9' * 400} * ward=b")


def test_withheld_outcomes_are_in_no_contrast(folder, tmp_path):
    shutil.copytree(folder / "tables", tmp_path / "tables")
    (path,) = (tmp_path / "tables").glob("desc-*glmcoefficients_results.tsv")
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    lines[2][2:] = ["n/a"] * len(lines[2][2:])
    write_text(path, "\n".join("\t".join(line) for line in lines) + "\n")
    entries = [row[1] for row in compare_coefficients(read_released(tmp_path), "diagnosis").rows]
    assert entries == ["region1", "region3"]


def test_tables_without_lines_are_refused(folder, tmp_path):
    for path in (folder / "tables").glob("*.tsv"):
        head = path.read_text(encoding="utf-8").partition("\n")[0]
        write_text(tmp_path / "tables" / path.name, head + "\n")
    with pytest.raises(OutputError, match="has no lines"):
        read_released(tmp_path)


def renamed(folder, out, old, new):
    """The tables of a run whose level was called otherwise."""
    shutil.copytree(folder / "tables", out / "tables")
    (path,) = (out / "tables").glob("desc-*glmcoefficientserrors_results.tsv")
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    named = [
        [new if cell == old and place in (1, 2) else cell for place, cell in enumerate(line)]
        for line in lines
    ]
    path.write_text("\n".join(map("\t".join, named)) + "\n", encoding="utf-8")
    return read_released(out)


@pytest.mark.parametrize("name", ["diagnosis", "diagnosis=patient"])
def test_a_level_that_is_called_as_a_coefficient_is_never_taken_for_it(folder, tmp_path, name):
    honest, released = read_released(folder), renamed(folder, tmp_path, "a", name)
    for text in (f"c - {name}", f"0.5 * {name} - c"):
        with pytest.raises(StudyError, match=f"Write 'ward={name}' for the level"):
            compare_coefficients(released, text)
    expected = compare_coefficients(honest, "c - a").rows
    assert compare_coefficients(released, f"c - ward={name}").rows == expected
    alone = [compare_coefficients(each, name).rows for each in (honest, released)]
    assert alone[0] == alone[1]
