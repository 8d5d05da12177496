"""Variances of entries, from noisy means of entries and squares."""

import numpy as np
import pytest

from consortium.kernels.entry_variances import entry_variances, positive_mean


def test_a_variance_that_noise_made_negative_is_told_as_a_small_one():
    told = positive_mean(np.array([-5.0, 0.0, 8.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert told == pytest.approx([0.187, 0.798, 8.0, 2.0], abs=1e-3)


def test_without_noise_variances_are_those_of_the_entries():
    mean, variances = np.array([0.2, 0.85, 0.85, -0.1, 0.0]), np.array([0.96, 0.01, 0.02, 0.3, 0.0])
    found = entry_variances(mean, variances + mean**2, np.zeros(5), 5**0.5)
    assert found == pytest.approx(variances)


def test_an_entry_that_varies_most_keeps_its_variance():
    """Shrinkage takes no more than the deviation of the noise, which is 0.23."""
    rng, level, found = np.random.default_rng(0), np.full(30, 0.03), []
    truth = np.append(0.96, np.full(29, 0.0064))
    for _ in range(300):
        mean = level * rng.standard_normal(30)
        squares = truth + 30**0.5 * 2**0.5 * level * rng.standard_normal(30)
        found.append(entry_variances(mean, squares, level, 30**0.5))
    first, *others = np.mean(found, axis=0)
    assert 0.96 - 0.25 < first < 1.0
    assert 0.0064 < np.mean(others) < 0.15
