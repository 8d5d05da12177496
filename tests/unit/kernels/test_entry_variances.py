"""Variances of entries, from noisy means of entries and squares."""

import numpy as np
import pytest

from consortium.kernels.entry_variances import positive_mean


def test_a_variance_that_noise_made_negative_is_told_as_a_small_one():
    told = positive_mean(np.array([-5.0, 0.0, 8.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert told == pytest.approx([0.187, 0.798, 8.0, 2.0], abs=1e-3)
