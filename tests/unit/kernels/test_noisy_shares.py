"""Shares of the participants who have each voxel: right at edges, undisturbed by noise."""

import numpy as np
import pytest

from consortium.kernels.noisy_shares import EstimatedShares, estimate_shares

EDGE = 16
PLACES = 3.0 * np.indices((EDGE,) * 3).reshape(3, -1).T
PARTS = ((slice(0, len(PLACES)), PLACES),)
SLAB = PLACES[:, 2] >= 3.0 * (EDGE - 3)


def noisy(truth: np.ndarray, noise: float, seed: int = 0) -> EstimatedShares:
    errors = noise * np.random.default_rng(seed).standard_normal(len(truth))
    return estimate_shares(truth + errors, noise, PARTS)


def test_without_noise_shares_are_exact():
    truth = np.random.default_rng(0).random(len(PLACES))
    assert np.array_equal(noisy(truth, 0.0).values, truth)


@pytest.mark.parametrize(("noise", "off"), [(0.1, 0.02), (0.3, 0.1), (0.7, 0.18)])
def test_a_thin_slab_is_found_in_noise_that_is_larger_than_what_it_lacks(noise, off):
    """Three voxels thick; an average over cubes of that size has noise of a fifth."""
    truth = np.where(SLAB, 0.5, 1.0)
    found = [noisy(truth, noise, seed).values for seed in range(5)]
    assert np.mean([each[SLAB].mean() for each in found]) == pytest.approx(0.5, abs=off)
    assert np.mean([each[~SLAB].mean() for each in found]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("noise", [0.1, 0.7, 3.0])
def test_complete_data_are_left_alone(noise):
    errors = [noisy(np.ones(len(PLACES)), noise, seed).values - 1 for seed in range(5)]
    assert np.sqrt(np.mean(np.square(errors))) < 0.05 * max(noise, 0.2)


def test_what_less_than_half_have_is_withheld_and_what_half_have_is_not():
    for share, withheld in ((0.2, 1.0), (0.5, 0.0)):
        found = noisy(np.where(SLAB, share, 1.0), 0.1).withheld
        assert found[SLAB].mean() == pytest.approx(withheld, abs=0.05)
        assert found[~SLAB].mean() < 0.01
    exact = EstimatedShares(np.array([0.499, 0.5, 0.5 - 1e-9]), np.zeros(3))
    assert exact.withheld.tolist() == [True, False, False]


def test_places_on_a_line_or_all_alike_are_no_trouble():
    shares = np.random.default_rng(0).random(30)
    for places in (np.zeros((30, 3)), np.outer(np.arange(30.0), [1.0, 0.0, 0.0])):
        found = estimate_shares(shares, 0.1, ((slice(0, 30), places),))
        assert np.isfinite(found.values).all()
