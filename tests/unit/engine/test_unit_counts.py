"""Numbers of units are estimated from noisy counts, without the nominal numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.engine.unit_counts import UnitCounts

COUNTS = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8)


def test_a_site_that_never_answered_has_its_nominal_number():
    counts = UnitCounts([20.0, 40.0])
    assert counts.estimate.tolist() == [20.0, 40.0]
    assert counts.deviation == 0.0
    counts.add([1], [31.0], 2.0)
    assert counts.estimate.tolist() == [20.0, 31.0]


def test_counts_weigh_by_their_precisions():
    counts = UnitCounts([100.0])
    counts.add([0], [90.0], 1.0)
    counts.add([0], [110.0], 2.0)
    assert counts.estimate[0] == pytest.approx((90 + 110 / 4) / 1.25)
    assert counts.deviation == pytest.approx(np.sqrt(1 / 1.25))


def test_counts_without_noise_are_exact():
    counts = UnitCounts([10.0, 10.0])
    counts.add([0, 1], [7.0, 450.0], 0.0)
    assert counts.estimate == pytest.approx([7.0, 450.0], rel=1e-12)
    assert counts.deviation == 0.0


@given(told=COUNTS, deviation=st.floats(0.1, 100))
def test_estimates_are_positive_and_keep_the_sum(told, deviation):
    counts = UnitCounts([30.0] * len(told))
    counts.add(range(len(told)), told, deviation)
    found = counts.estimate
    assert found.min() >= 1.0
    assert found.sum() == pytest.approx(max(sum(told), len(told)), rel=1e-9)


def test_a_wrong_nominal_number_biases_no_estimate():
    generator = np.random.default_rng(0)
    found = []
    for _ in range(2000):
        counts = UnitCounts([300.0, 300.0])
        counts.add([0, 1], np.array([80.0, 120.0]) + 5 * generator.standard_normal(2), 5.0)
        found.append(counts.estimate)
    assert np.mean(found, axis=0) == pytest.approx([80.0, 120.0], abs=0.5)
