"""Bins of a score hold equal parts of both classes, also where the score has several groups."""

import numpy as np
import pytest
from scipy.special import expit

from consortium.algorithms.regression.kernels.score_bins import ScoreGroups, score_bins


@pytest.mark.parametrize("centre", [0.0, -4.0])
def test_bins_hold_equal_parts_of_the_mean_of_both_classes(centre):
    rng = np.random.default_rng(0)
    groups = ScoreGroups(np.array([0.3, 0.7]), np.array([centre, centre + 1.0]), 0.8)
    edges, means = score_bins(groups, 8)
    scores = rng.normal(centre + (rng.random(400_000) < 0.7), 0.8)
    labels = rng.random(len(scores)) < expit(scores)
    places = np.searchsorted(edges, scores)
    parts = [np.bincount(places[labels == each], minlength=8) for each in (True, False)]
    assert sum(each / each.sum() for each in parts) / 2 == pytest.approx(
        np.full(8, 1 / 8), abs=0.02
    )
    real = [scores[places == k].mean() for k in range(8)]
    assert means == pytest.approx(real, abs=0.05)


def test_a_column_of_two_levels_has_bins_on_both_sides():
    groups = ScoreGroups(np.ones(1), np.zeros(1), 2.0).split(1.99, np.full(1, 0.5))
    assert groups.centres.tolist() == [-1.99, 1.99]
    assert groups.deviation == pytest.approx((4 - 1.99**2) ** 0.5)
    edges, _ = score_bins(groups, 8)
    assert np.sum(np.abs(edges + 1.99) < 0.5) == 3
    assert np.sum(np.abs(edges - 1.99) < 0.5) == 3


def test_equal_scores_have_bins():
    edges, means = score_bins(ScoreGroups(np.ones(1), np.full(1, 0.4), 0.0), 8)
    assert np.isfinite(edges).all()
    assert means == pytest.approx(np.full(8, 0.4))
