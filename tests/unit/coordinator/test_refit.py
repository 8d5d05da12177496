"""Models of fewer columns from a finished run: those of least squares, counted together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.coordinator.refit import Refit, fit_again
from consortium.errors import OutputError, StudyError
from consortium.report.coefficients import read_released
from consortium.report.tables import write_tables
from consortium.simulation.simulation import Simulation
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
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "run"
    run_of(out, "cape", anyway=True)
    return out


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


def test_the_whole_model_is_the_run_s_own(noisy: Path) -> None:
    released = read_released(noisy)
    found = fit_again(released, Refit(formula=FORMULA)).estimates[0]
    assert found.effects == pytest.approx(released.values[:, 0], rel=1e-9)
    chance = released.variances * released.chance[0, 0] + released.noise[0, 0]
    assert found.errors == pytest.approx(np.sqrt(chance), rel=1e-9)


def test_errors_of_a_smaller_model_are_those_of_its_combination(noisy: Path) -> None:
    released = read_released(noisy)
    assert released.design is not None
    dropped = [place for place, each in enumerate(released.entries) if each.name != "diagnosis"]
    matrix = np.eye(len(released.entries))
    inner = released.design[np.ix_(dropped, dropped)]
    matrix[:, dropped] -= released.design[:, dropped] @ np.linalg.inv(inner)
    along = matrix[0]
    found = fit_again(released, Refit(formula="diagnosis")).estimates[0]
    chance = released.variances * (along @ released.chance @ along)
    moved = found.effects - released.values[:, 0]  # taken over from the removed columns
    noise = np.sqrt(np.diag(released.noise).max())
    error = min(0.6 * np.sqrt(noise), 0.2)
    total = chance + along @ released.noise @ along + np.square(error * moved)
    assert found.errors**2 == pytest.approx(total, rel=1e-9)


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
        fit_again(replace(read_released(folder), design=None), Refit(formula="age"))
