"""What replays say of the truth: in order, in range, and continuous."""

import numpy as np
import pytest

from consortium.algorithms.group_ica.kernels.agreement import expected_range, of_replays


def test_expected_correlations_rise_with_those_of_replays_and_stay_below_one():
    replays = np.linspace(0.0, 1.0, 1001)
    expected = of_replays(replays)
    assert (np.diff(expected) >= 0).all()
    assert np.diff(expected).max() < 0.01
    assert expected[0] == 0.0
    assert expected[-1] < 1.0


def test_a_weak_map_is_better_than_its_replays_and_a_strong_one_worse():
    # Means of real participants' components whose replays correlate by .40 to .45 and so on.
    replayed = np.array([0.425, 0.475, 0.525, 0.625, 0.725, 0.825, 0.925, 0.985])
    true = [0.59, 0.65, 0.72, 0.80, 0.84, 0.88, 0.94, 0.98]
    assert of_replays(replayed) == pytest.approx(true, abs=0.025)


def test_a_range_is_around_its_value_within_zero_and_one():
    values = np.array([0.0, 0.3, 0.9, 1.0])
    low, high = expected_range(values)
    assert ((low >= 0) & (low <= values) & (values <= high + 1e-3) & (high < 1)).all()
