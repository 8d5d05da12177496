"""One outlook of a plan: table, sentences and JSON are of the same numbers."""

import math
from pathlib import Path

import pytest

from consortium.base.formatting import number
from consortium.space.study_space import study_space
from consortium.study.outlook import HEADS, Outlook
from consortium.study.plan import make_plan
from consortium.study.reader import read_study

CONFIGS = Path(__file__).parents[3] / "configs"


def outlook(name: str, subjects: int, dropouts: int = 0) -> Outlook:
    study = read_study(CONFIGS / f"{name}.yaml")
    privacy = study.privacy.model_copy(update={"dropouts": dropouts})
    study = study.model_copy(update={"privacy": privacy})
    sizes = (subjects,) * len(study.sites)
    extent = study_space(study, CONFIGS).extent
    return Outlook(make_plan(study, extent.shape(sizes, sizes, study.privacy.unit)))


@pytest.mark.parametrize("name", ["describe", "coordinate", "network"])
def test_table_and_json_tell_the_same_releases(name: str) -> None:
    found = outlook(name, 260)
    stages = found.as_json()["stages"]
    keys = ("stage", "statistic", "rounds", "entries")
    for row, stage in zip(found.rows(), stages, strict=True):
        assert len(row) == len(HEADS)
        assert row[:4] == tuple(str(stage[key]) for key in keys)
        assert row[4:] == (number(stage["bound"]), number(stage["sigma_aggregate"]))


def test_the_price_that_is_told_is_the_plans() -> None:
    found = outlook("describe", 260)
    told = found.as_json()
    assert told["coalition"]["epsilon"] == found.plan.epsilon
    assert f"ε ≤ {number(found.plan.epsilon)} against the centre" in found.price
    assert f"{number(told['outsider']['epsilon'])} against outsiders" in found.price


def test_sentences_begin_with_the_first_number_and_say_what_is_if_few_answer() -> None:
    all_answer, few = outlook("coordinate", 260), outlook("coordinate", 260, dropouts=1)
    assert all_answer.fewest is None
    assert next(all_answer.sentences()) == f"{all_answer.verdict} {all_answer.price}"
    assert number(all_answer.expected[0].value) in all_answer.verdict
    assert few.fewest is not None
    assert f"answer: {few.fewest.verdict}" in list(few.sentences())[1]
    assert few.as_json()["fewest"]["sites"] == list(few.fewest.plan.study.sites)


def test_what_an_analysis_cannot_foretell_is_told_as_noise_over_a_bound() -> None:
    blind = outlook("describe", 260)
    vars(blind)["forecast"] = ()
    told, stage = blind.expected[0], blind.stages[0]
    assert told.name == f"noise in '{stage.stage}' relative to one participant's bound"
    assert told.value == stage.sigma_aggregate / stage.bound
    assert blind.verdict == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.123"),
        (-999.4, "-999"),
        (999.6, "1,000"),
        (-5743.2, "-5,740"),
        (123456.0, "123,000"),
        (999999.0, "1e+06"),
        (3.2e7, "3.2e+07"),
        (1.5e-7, "1.5e-07"),
        (0.0, "0"),
        (math.inf, "infinite"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent_up_to_a_million(value, text):
    assert number(value) == text
