"""What is wrong with a file that a person wrote, in words that are not a library's."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import Field

from consortium.base.frozen_model import FrozenModel, field_texts
from consortium.base.model_file import read_model
from consortium.errors import ConfigurationError, StudyError
from consortium.study.reader import parse_study

STUDY = Path(__file__).parents[3] / "configs" / "glm.yaml"


def refusal(place: str, value: Any) -> str:
    """What is said of the example study with a field changed."""
    study = copy.deepcopy(yaml.safe_load(STUDY.read_text(encoding="utf-8")))
    inner, (*path, last) = study, place.split("/")
    for part in path:
        inner = inner[int(part) if part.isdigit() else part]
    inner[int(last) if last.isdigit() else last] = value
    with pytest.raises(StudyError) as refused:
        parse_study(yaml.safe_dump(study))
    return str(refused.value)


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ("sites", "north", "sites must be a list of 1 to 1024 entries, got 'north'."),
        ("sites", [], "sites must be a list of 1 to 1024 entries, got a list of 0."),
        ("sites", ["north", 3], "(text in quotes, if it looks like a number), got 3."),
        ("privacy", [1], "privacy must be a mapping of 'name: value', got a list of 1."),
        ("features/0", 3, "features.0 must be a mapping of 'name: value', got 3."),
        (
            "privacy/epsilon",
            "much",
            "privacy.epsilon must be a number above 0 and at most 100, got 'm",
        ),
        ("privacy/epsilon", -1, "epsilon must be a number above 0 and at most 100, got -1."),
        (
            "privacy/colluding_sites",
            1.5,
            "colluding_sites must be an integer of 0 or more, got 1.5.",
        ),
        ("analysis/groups/north", 5, "analysis.groups.north must be a list, got 5."),
        ("analysis/anyway", "maybe", "analysis.anyway must be true or false, got 'maybe'."),
        ("analysis/basis", "wave", "basis must be 'entries' or 'smooth', got 'wave'."),
        ("analysis/norms/location", float("inf"), "must be a finite number from -1e+12 to 1e+12,"),
        ("features/0/source", "tables", "source 'tables' is not known. Choose one of 'table',"),
    ],
)
def test_a_wrong_value_is_refused_with_what_to_give_instead(place, value, told):
    said = refusal(place, value)
    assert told in said
    assert "Input should" not in said
    assert "tuple" not in said


def test_of_a_field_that_may_be_of_several_kinds_all_are_told_or_the_one_that_was_meant():
    kinds = refusal("analysis/norms/deviation", "x")
    assert "analysis.norms.deviation must be a number from 1e-12 to 1e+12, a list or null," in kinds
    assert "deviation.1 must be a number" in refusal("analysis/norms/deviation", [1, "x"])
    assert "must be a number from 1e-12 to 1e+12, a list or null, got 0." in refusal(
        "analysis/norms/deviation", 0
    )


class Settings(FrozenModel):
    """Of a party."""

    hours: tuple[int, ...] = ()


def test_settings_of_a_party_are_refused_in_the_same_words(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("hours: 9", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r": hours must be a list, got 9\.$"):
        read_model(path, Settings)


class _Described(FrozenModel):
    """Fields of three kinds."""

    first: int = 1
    """What stands
    below it."""
    second: int = Field(default=2, alias="other", description="What it says itself.")
    third: int = 3


def test_a_field_is_described_by_itself_or_by_what_stands_below_it():
    assert field_texts(_Described) == {
        "first": "What stands below it.",
        "other": "What it says itself.",
        "third": "",
    }
    properties = _Described.model_json_schema()["properties"]
    assert properties["first"]["description"] == "What stands below it."
    assert "description" not in properties["third"]


def test_a_model_without_its_code_is_described_by_its_fields_alone():
    places = {"FrozenModel": FrozenModel, "Field": Field, "__name__": "nowhere"}
    exec('class Made(FrozenModel):\n    x: int = 1\n    "below"\n', places)
    assert field_texts(places["Made"]) == {"x": ""}
