"""Models of fewer columns from a finished run: those of least squares, counted together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.algorithms.base import Table
from consortium.coordinator.contrast import interval
from consortium.coordinator.refit import Refit, fit_again
from consortium.errors import OutputError, StudyError
from consortium.report.coefficients import read_released, released_coefficients
from consortium.report.tables import plain_table, write_tables
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study
from tests.support.cases import sites_of
from tests.unit.algorithms.test_glm import study_of, wards_and_regions
from tests.unit.coordinator.test_contrast import Run

VIEWS = (("who", 5), ("brain", 3))
SITES = (50,) * 4
TABLE = wards_and_regions()
FORMULA = "diagnosis * age + I(age**2) + ward"
# Values of the columns as the study's coefficients count them.
AGE = 3.0 * TABLE[0]
SIGN = TABLE[4]
COLUMNS = {
    "diagnosis": SIGN / 2,
    "age": AGE,
    "diagnosis:age": SIGN * AGE,
    "I(age**2)": AGE**2,
    **{f"ward={level}": TABLE[1 + place] for place, level in enumerate("abc")},
}
UNIT = 1.5 / 0.6  # standard deviations of an outcome in one unit of the view


def expected(names: list[str], columns: dict[str, Any] = COLUMNS) -> dict[str, Any]:
    """Return least squares with a constant for each site, of all outcomes."""
    site = np.repeat(np.arange(4), 50)[None] == np.arange(4)[:, None]
    design = np.vstack([*(columns[name] for name in names), site]).astype(np.float64)
    found = np.linalg.lstsq(design.T, TABLE[5:].T, rcond=None)[0]
    return dict(zip(names, UNIT * found, strict=False))


def as_rows(table: Table) -> list[dict[str, Any]]:
    plain = plain_table(table)
    return [dict(zip(plain.columns, row, strict=True)) for row in plain.rows]


def run_of(folder: Path, scheme: str = "none", seed: int = 0, **analysis: Any) -> Any:
    study = study_of(scheme, contrasts="all", **{"formula": FORMULA, **analysis})
    result = Simulation(study, sites_of(TABLE, VIEWS, SITES), seed).run()
    write_tables(folder, Run(study, result))  # type: ignore[no-untyped-call]
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "run"
    run_of(out)
    return out


@pytest.fixture(scope="module")
def noisy_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    out = tmp_path_factory.mktemp("out") / "run"
    return out, run_of(out, "cape", anyway=True)


@pytest.fixture(scope="module")
def noisy(noisy_run: tuple[Path, Any]) -> Path:
    return noisy_run[0]


TABLES = ("coefficients", "coefficients-errors")
WARDS = Refit(formula="ward + dx")
TERMS = {
    "diagnosis": ["diagnosis"],
    "age": ["age"],
    "diagnosis:age": ["diagnosis:age"],
    "I(age**2)": ["I(age**2)"],
    "ward": ["ward=b", "ward=c"],
}


@given(
    kept=st.lists(st.sampled_from(["diagnosis", "age", "ward"]), min_size=1, unique=True),
    product=st.booleans(),
    square=st.booleans(),
)
def test_a_model_of_fewer_columns_is_that_of_least_squares(
    folder: Path, kept: list[str], product: bool, square: bool
) -> None:
    if product and {"diagnosis", "age"} <= set(kept):
        kept = [*kept, "diagnosis:age"]
    if square and "age" in kept:
        kept = [*kept, "I(age**2)"]
    found = fit_again(read_released(folder), Refit(formula=" + ".join(kept)))
    right = expected([name for term in kept for name in TERMS[term]])
    names = [name.replace("diagnosis=patient", "diagnosis") for name, _ in found.labels]
    assert names == TERMS[kept[0]]
    for name, each in zip(names, found.estimates, strict=True):
        assert each.effects == pytest.approx(right[name], abs=1e-8)


@pytest.mark.parametrize(
    ("asked", "labels", "columns"),
    [
        ({"merge": ("ward=b+c",)}, ["ward=b+c"], ["bc"]),
        ({"merge": ("ward=a+c",)}, ["ward=b"], ["ward=b"]),
        ({"reference": ("ward=b",)}, ["ward=a", "ward=c"], ["ward=a", "ward=c"]),
        (
            {"reference": ("ward=b",), "merge": ("ward=b+a",)},
            ["ward=c"],
            ["ward=c"],
        ),
    ],
)
def test_levels_that_are_merged_or_compared_with_another_are_those_of_least_squares(
    folder: Path, asked: Any, labels: list[str], columns: list[str]
) -> None:
    found = fit_again(read_released(folder), Refit(formula="ward + age + diagnosis", **asked))
    known = COLUMNS | {"bc": COLUMNS["ward=b"] + COLUMNS["ward=c"]}
    right = expected([*columns, "age", "diagnosis"], known)
    assert [name for name, _ in found.labels] == labels
    for name, each in zip(columns, found.estimates, strict=True):
        assert each.effects == pytest.approx(right[name], abs=1e-8)


def test_the_whole_model_is_the_run_s_own(noisy_run: tuple[Path, Any]) -> None:
    released = read_released(noisy_run[0])
    own = noisy_run[1].arrays
    found = fit_again(released, Refit(formula=FORMULA)).estimates[0]
    assert found.effects == pytest.approx(own["effect"], rel=1e-9)
    assert found.errors == pytest.approx(own["error"], rel=1e-6)
    assert found.p == pytest.approx(own["p"], rel=1e-5)


@pytest.mark.parametrize("formula", [FORMULA, "diagnosis", "age + ward", "diagnosis + ward"])
def test_errors_contain_those_of_the_columns_second_moment(noisy: Path, formula: str) -> None:
    """Solve the normal equations with errors in the second moment, many times."""
    released = read_released(noisy)
    assert released.inverse_moment is not None
    assert released.moment_noise is not None
    small = replace(released, moment_noise=1e-4 * released.moment_noise)
    exact = replace(released, moment_noise=1e-12 * released.moment_noise)
    asked = Refit(formula=formula)
    after, before = (fit_again(each, asked).estimates[0].errors ** 2 for each in (small, exact))
    kept = [p for p, e in enumerate(released.entries) if e.name.split("=")[0] in terms_of(formula)]
    moment = np.linalg.inv(released.inverse_moment)
    sums = (released.values @ moment)[:, kept]
    generator, draws = np.random.default_rng(0), []
    for _ in range(4000):
        errors = np.sqrt(small.moment_noise) * generator.standard_normal(moment.shape)
        drawn = moment + np.triu(errors) + np.triu(errors, 1).T
        draws.append(np.linalg.solve(drawn[np.ix_(kept, kept)], sums.T))
    first = [released.entries[p].name.split("=")[0] for p in kept].index(terms_of(formula)[0])
    assert after - before == pytest.approx(np.var(draws, axis=0)[first], rel=0.1)


def terms_of(formula: str) -> list[str]:
    return formula.replace("diagnosis * age", "diagnosis + age + diagnosis:age").split(" + ")


LEVELS = """
study: wards
sites: [north, east, south, west]
features:
  - {name: brain, source: table, columns: {"r[1-8]": {low: -10, high: 10}}}
  - name: who
    source: table
    columns: {dx: {levels: [control, patient]}, ward: {levels: [a, b, c, d, e]}}
privacy: {unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}
algorithm: glm
analysis:
  {outcomes: brain, formula: dx + ward, contrasts: all, shares: 0.5, anyway: true,
   norms: {location: 0, deviation: 1}}
"""


def test_intervals_hold_levels_that_differ_by_more_than_a_deviation() -> None:
    """The error of the columns' second moment is common to all outcomes of a run."""
    shares = np.array([0.4, 0.2, 0.15, 0.15, 0.1])
    levels = np.array([0.0, 1.3, 1.3, -1.3, -1.3])
    sign = np.where(np.arange(8) % 2, 1.0, -1.0)[:, None]
    study, held = parse_study(LEVELS), []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        of_sites = [generator.dirichlet(12 * shares) for _ in range(4)]
        ward = np.concatenate([generator.choice(5, 750, p=each) for each in of_sites])
        group = 2.0 * (generator.random(3000) < 0.5) - 1
        outcomes = sign * levels[ward] + generator.standard_normal((8, 3000))
        table = np.vstack([outcomes / 10, group, ward == np.arange(5)[:, None]])
        sites = sites_of(table, (("brain", 8), ("who", 6)), (750,) * 4)
        found_tables = Simulation(study, sites, seed).run().tables
        tables = [found_tables[name] for name in TABLES]
        released = released_coefficients(*map(as_rows, tables))
        for level, found in zip(levels[1:], fit_again(released, WARDS).estimates, strict=True):
            low, high = interval(found)
            true = sign[:, 0] * level
            held.append(np.mean((low <= true) & (true <= high)))
    assert np.mean(held) > 0.93  # 0.85 without the error of the second moment


def test_some_outcomes_are_chosen_by_patterns(folder: Path) -> None:
    released = read_released(folder)
    for pattern, count in (("region[12]", 2), ("brain.*", 3), ("region3", 1)):
        assert len(fit_again(released, Refit(formula="age", outcomes=(pattern,))).p) == count


@pytest.mark.parametrize(
    "asked",
    [
        {"formula": "diagnosis + sex"},
        {"formula": "diagnosis:age"},
        {"formula": "I(age**2) + age"},
        {"formula": ""},
        {"formula": "diagnosis - age"},
        {"formula": "ward", "merge": ("ward=b+z",)},
        {"formula": "age", "merge": ("ward=b+c",)},
        {"formula": "ward", "merge": ("ward=b+c", "ward=c+a")},
        {"formula": "ward", "merge": ("ward=a+b+c",)},
        {"formula": "ward", "reference": ("ward=b+c",)},
        {"formula": "ward", "reference": ("ward=b", "ward=c")},
        {"formula": "age", "reference": ("age=1",)},
        {"formula": "diagnosis * age", "reference": ("diagnosis=patient",)},
        {"formula": "age", "outcomes": ("region9",)},
    ],
)
def test_what_the_run_can_not_answer_is_refused(folder: Path, asked: Any) -> None:
    with pytest.raises(StudyError, match=r"^--"):
        fit_again(read_released(folder), Refit(**asked))


def test_a_run_without_the_second_moment_is_refused(folder: Path) -> None:
    with pytest.raises(OutputError, match="design"):
        fit_again(replace(read_released(folder), inverse_moment=None), Refit(formula="age"))
