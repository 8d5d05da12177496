"""Numbers and sentences for people."""

import math
from collections.abc import Callable
from datetime import datetime

import pytest

from consortium.base.formatting import (
    begun,
    count,
    moment,
    number,
    percent,
    power_of_ten,
    said_together,
)


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (number, 0.0, "0"),
        (number, 0.12345, "0.123"),
        (number, 999.4, "999"),
        (number, 999.6, "1,000"),
        (number, 5743.0, "5,740"),
        (number, -5743.0, "-5,740"),
        (number, 2e6, "2e+06"),
        (number, math.inf, "infinite"),
        (power_of_ten, 1e-5, "10⁻⁵"),
        (power_of_ten, 2e-5, "2·10⁻⁵"),
        (power_of_ten, 1.25e-10, "1.25·10⁻¹⁰"),
        (percent, 0.5, "50 %"),
        (percent, 0.9994, "99.9 %"),
        (percent, 0.99999, "more than 99.9 %"),
        (percent, 1.0, "100 %"),
    ],
)
def test_numbers(write: Callable[[float], str], value: float, written: str) -> None:
    assert write(value) == written


@pytest.mark.parametrize(
    ("many", "counted"), [(0, "0 sites"), (1, "1 site"), (2, "2 sites"), (1204, "1,204 sites")]
)
def test_a_noun_has_its_plural(many: int, counted: str) -> None:
    assert count(many, "site") == counted


def test_a_moment_names_its_time_zone() -> None:
    at = 1_700_000_000.0
    assert datetime.fromisoformat(moment(at)).timestamp() == at


def test_sites_of_one_sentence_are_named_together() -> None:
    said = {"a": "a is away.", "b": "b has left.", "c": "c is away."}
    assert said_together(said) == ["a, c: each is away.", "b has left."]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("add --yes", "Add --yes"),
        ("Add --yes", "Add --yes"),
        ("name the file of MRI scans", "Name the file of MRI scans"),
        ("élargir", "Élargir"),
        ("'cohort' is unknown", "'cohort' is unknown"),
        ("x", "X"),
        ("", ""),
    ],
)
def test_only_the_first_letter_of_a_begun_sentence_changes(text: str, sentence: str) -> None:
    assert begun(text) == sentence
