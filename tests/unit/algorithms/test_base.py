"""The contract: its examples are true, and its sizes add up."""

import doctest

import pytest

from consortium.algorithms import base
from consortium.algorithms.base import Shape, units_of
from consortium.errors import StudyError


def test_the_examples_of_the_contract_are_true():
    outcome = doctest.testmod(base)
    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_units_are_persons_or_volumes():
    assert units_of("subject", [3, 4]) == 2
    assert units_of("timepoint", [3, 4]) == 7
    for unit, units in (("subject", (2, 1)), ("timepoint", (30, 20))):
        shape = Shape(5, (2, 1), (30, 20), unit)
        assert shape.units == units
        assert shape.mean_length == pytest.approx(50 / 3)


def test_a_view_that_is_not_there_or_has_more_entries_is_refused():
    shape = Shape(4, (2,), (2,), "subject", views=(("x", 3), ("y", 1)))
    with pytest.raises(StudyError, match=r"x, y.*'z'"):
        shape.view_slice("z", "analysis.view")
    with pytest.raises(StudyError, match=r"analysis\.target.* 3 .*Name another"):
        shape.single_entry("x", "analysis.target", "name another")
