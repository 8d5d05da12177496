"""The expected bias of clipped means, compared with simulated columns."""

import math

import numpy as np
import pytest

from benchmarks.describe import skewed, with_zeros
from consortium.algorithms.describe.kernels.clipping_bias import (
    choose_margin,
    mean_bias,
    square_bias,
    usual_lost,
)


@pytest.mark.parametrize("draw", [skewed, with_zeros])
@pytest.mark.parametrize(("numbers", "margin"), [(2, 1.0), (8, 0.5), (8, 2.0), (20, 1.0)])
def test_biases_of_skewed_columns_are_about_as_large_as_assumed(draw, numbers, margin):
    table = draw((numbers, 100_000), np.random.default_rng(0))
    factors = np.minimum(1.0, (math.sqrt(numbers) + margin) / np.linalg.norm(table, axis=0))
    lost = 1 - float(factors.mean())
    clipped = factors * table[0]
    apart = (table[0] - table[0].mean()) / table[0].std()
    mean = float(clipped.mean()) / (1 - lost)
    square = float(np.square(clipped).mean()) / (1 - lost) ** 2 - mean**2
    assumed = mean_bias(lost, numbers, float(np.mean(apart**3)))
    assert abs(mean - table[0].mean()) / table[0].std() < 1.3 * assumed
    assumed = square_bias(lost, numbers, float(np.mean(apart**4)))
    assert abs(square / table[0].var() - 1) < 2 * assumed


def test_the_usual_loss_is_that_of_columns_of_which_one_is_skewed():
    for margin in (0.5, 1.0, 2.0):
        table = with_zeros((8, 100_000), np.random.default_rng(1))
        lost = 1 - np.minimum(1.0, (math.sqrt(8) + margin) / np.linalg.norm(table, axis=0)).mean()
        assert 0.4 < lost / usual_lost(margin) < 2.5


def test_less_noise_allows_a_larger_margin():
    margins = [choose_margin(8, noise) for noise in (0.1, 0.01, 0.001)]
    assert margins == sorted(margins)
    assert margins[0] < margins[-1]
