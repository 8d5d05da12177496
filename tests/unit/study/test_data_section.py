"""Rules for whom a study takes: what is in, what is out, and what is no rule."""

import re

import pytest
from pydantic import ValidationError

from consortium.study.data_section import DataSection, PersonRule


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        ({"levels": ["control"]}, ["control"], ["patient", "Control", "n/a", ""]),
        ({"low": 18, "high": 65}, ["18", "65", " 40.5 "], ["17.999", "66", "n/a", "", "nan"]),
        ({"low": 18}, ["18", "1e9"], ["17", "inf", "old"]),
        ({"high": 65}, ["65", "-3"], ["65.1", "-inf"]),
        ({"low": 81, "high": 81}, ["81"], ["80", "82"]),
    ],
)
def test_a_value_is_taken_by_levels_or_by_limits_included(rule, inside, outside) -> None:
    parsed = PersonRule(**rule)
    assert all(parsed.takes(value) for value in inside)
    assert not any(parsed.takes(value) for value in outside)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"persons": {"age": {}}}, "give either 'levels', or 'low' or 'high' or both"),
        ({"persons": {"age": {"levels": ["a"], "low": 1}}}, "give either 'levels'"),
        ({"persons": {"age": {"low": 65, "high": 18}}}, "low 65 is above high 18"),
        ({"persons": {"dx": {"levels": ["a", "a"]}}}, "a level appears twice"),
        ({"persons": {"../x": {"low": 1}}}, "is not a name of a column"),
        ({"session": "../up"}, "should match pattern"),
        ({"run": -1}, "greater than or equal to 0"),
        ({"entities": {"desc": "x"}}, "'desc' has its own field. Write 'data: {description: …}'"),
        ({"entities": {"part": "phase"}}, "'part' can't be chosen by a study"),
        ({"entities": {"Res": "2"}}, "should match pattern"),
        ({"space": "A+5", "entities": {"cohort": "6"}}, "'cohort' is given by space"),
        ({"space": "A+5+6"}, "should match pattern"),
        ({"runs": "last"}, "Input should be 'all' or 'first'"),
    ],
)
def test_what_is_no_rule_is_said(data, said) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        DataSection.model_validate(data)


NAMED = {"description": "denoised", "entities": {"res": "2"}}


def test_any_recording_has_any_description_and_entity() -> None:
    assert DataSection.model_validate(NAMED).of_any_recording == DataSection()


def test_a_study_chooses_if_a_count_tells_more_than_how_many_there_are() -> None:
    assert not DataSection(runs="first", task="nback").chooses
    rules = {"persons": {"age": {"low": 1}}}
    for field in (rules, {"session": "a"}, {"run": 0}, {"echo": 1}, NAMED):
        assert DataSection.model_validate(field).chooses
