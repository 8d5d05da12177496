"""Intervals of what passed a threshold."""

import math

import numpy as np
import pytest

from consortium.algorithms.pca.kernels.selective_interval import selective_interval


@pytest.mark.parametrize("truth", [-1.0, 0.0, 1.5, 2.5, 6.0])
def test_of_those_told_nineteen_of_twenty_hold_the_truth(truth: float) -> None:
    drawn = truth + np.random.default_rng(7).standard_normal(200_000)
    told = drawn[drawn > 2.0][:2000]
    ends = [selective_interval(float(value), 1.0, 2.0) for value in told]
    held = np.mean([low <= truth <= high for low, high in ends])
    assert abs(held - 0.95) < 4 * math.sqrt(0.95 * 0.05 / len(told))
    usual = np.mean(np.abs(told - truth) <= 1.96)
    assert usual < 0.93 or truth > 2.0


def test_far_beyond_the_threshold_it_is_the_usual_one() -> None:
    low, high = selective_interval(30.0, 2.0, 5.0)
    assert (low, high) == pytest.approx((30 - 1.96 * 2, 30 + 1.96 * 2), abs=1e-3)


def test_at_the_threshold_nothing_is_known_from_below() -> None:
    assert selective_interval(2.0, 1.0, 2.0)[0] == -math.inf
    assert selective_interval(2.0 + 1e-6, 1.0, 2.0)[0] == -math.inf
