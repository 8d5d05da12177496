"""Findings that may stay untold, and sets of maps."""

import math

import numpy as np
import pytest

from consortium.algorithms.findings import Finding, ImageSet


def test_what_is_not_told_holds_no_number():
    for finding in (
        Finding(0.3, 0.1, 0.5, "withheld"),
        Finding(math.nan, 0.1, 0.5),
        Finding(math.inf, 0.1, 0.5, "not found"),
        Finding(),
    ):
        assert not finding.reported
        assert finding.state == "withheld"
        assert not finding.bounded
        assert all(math.isnan(x) for x in (finding.value, finding.low, finding.high))
        assert finding == Finding()


def test_what_is_not_found_keeps_its_number_and_interval():
    finding = Finding(0.1, -0.1, 0.3, "not found")
    assert finding.reported
    assert finding.bounded
    assert finding.value == 0.1
    assert not Finding(0.1).bounded


def maps(**changes):
    values = np.array([[1.0, -4.0], [3.0, 0.5]])
    given = {"values": values, "caption": "t-values.", "labels": ("a", "b")} | changes
    return ImageSet(**given)


def test_only_values_that_reach_the_threshold_are_coloured():
    np.testing.assert_array_equal(maps(threshold=2.0).coloured(), [[0, -4], [3, 0]])
    each = np.array([[0.5], [9.0]])
    np.testing.assert_array_equal(maps(threshold=each).coloured(), [[1, -4], [0, 0]])


def test_every_map_is_found_unless_it_is_said_not_to_be():
    assert maps().is_found(1)
    assert [maps(found=(True, False)).is_found(k) for k in range(2)] == [True, False]


@pytest.mark.parametrize(
    "wrong",
    [{"labels": ("a",)}, {"found": (True,)}, {"accuracy": (Finding(),)}, {"values": np.ones(2)}],
)
def test_lists_that_do_not_fit_the_maps_are_refused(wrong):
    with pytest.raises(ValueError, match=r"label|maps"):
        maps(**wrong)
