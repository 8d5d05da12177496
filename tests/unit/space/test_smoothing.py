"""Smoothing of released maps: scipy's Gaussian inside, and noise that is told as it is."""

import numpy as np
import pytest
from scipy import ndimage

from consortium.space.grid import Grid
from consortium.space.smoothing import FWHM_PER_SIGMA, smooth_maps

AFFINE = np.diag([2.0, 2, 4, 1])
BALL = np.linalg.norm(np.indices((17, 17, 9)) - np.array([8, 8, 4])[:, None, None, None], axis=0)
GRID = Grid(BALL < 7.5, AFFINE)


def test_a_constant_stays_and_no_width_changes_nothing():
    ones = np.ones((GRID.features, 2))
    assert smooth_maps(ones, 0.3, GRID, 6.0)[0] == pytest.approx(ones)
    same, noise = smooth_maps(3 * ones, 0.3, GRID, 0.0)
    assert np.array_equal(same, 3 * ones)
    assert np.array_equal(noise, np.full(GRID.features, 0.3))


def test_deep_inside_it_is_the_usual_gaussian():
    whole = Grid(np.ones((25, 25, 15), bool), AFFINE)
    drawn = np.random.default_rng(0).standard_normal(whole.shape)
    found = smooth_maps(drawn[whole.mask][:, None], 1.0, whole, 6.0)[0][:, 0].reshape(whole.shape)
    sigma = 6.0 / FWHM_PER_SIGMA / np.array([2, 2, 4])
    usual = ndimage.gaussian_filter(drawn, sigma, truncate=4)
    inner = (slice(8, -8), slice(8, -8), slice(5, -5))
    assert found[inner] == pytest.approx(usual[inner], abs=0.01)


def test_the_noise_that_is_left_is_told():
    noise = 0.5 * np.random.default_rng(1).standard_normal((GRID.features, 4000))
    smooth, told = smooth_maps(noise, 0.5, GRID, 6.0)
    assert smooth.std(axis=1) == pytest.approx(told, rel=0.08)
    assert told.max() < 0.4
    assert told.max() > 1.2 * told.min()  # the edge averages over fewer voxels
