"""The gain index: closed forms, invariances, and an estimate that must look worse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.gain_index import gain_index


@pytest.mark.parametrize("power", [1, 2])
def test_scaled_permutation_is_perfect(power):
    gain = np.diag([2.0, -0.5, 3.0, 1e-8])[[2, 0, 3, 1]]
    assert gain_index(gain, power=power) == 0.0


@pytest.mark.parametrize("power", [1, 2])
def test_equal_entries_are_worst(power):
    signs = np.where(np.random.default_rng(0).random((5, 5)) < 0.5, -1, 1)
    assert gain_index(7.0 * signs, power=power) == pytest.approx(1.0)


def test_two_by_two_closed_form():
    # Every row and column has (1 + t) / 1 - 1 = t: four times t over 2 · 2 · 1.
    gain = np.array([[1.0, 0.3], [-0.3, 1.0]])
    assert gain_index(gain) == pytest.approx(0.3)
    assert gain_index(gain, power=2) == pytest.approx(0.09)


@given(st.integers(2, 7), st.integers(0, 2**32 - 1), st.sampled_from([1, 2]))
def test_range_and_invariance(rank, seed, power):
    generator = np.random.default_rng(seed)
    gain = generator.standard_normal((rank, rank))
    value = gain_index(gain, power=power)
    assert 0.0 <= value <= 1.0
    flipped = -3e200 * gain[generator.permutation(rank)][:, generator.permutation(rank)]
    assert gain_index(flipped, power=power) == pytest.approx(value)


def test_more_leakage_is_worse():
    leak = np.random.default_rng(1).standard_normal((6, 6))
    values = [gain_index(np.eye(6) + size * leak) for size in (0.0, 0.01, 0.05, 0.2)]
    assert values == sorted(values)
    assert values[0] == 0.0
    assert values[1] > 0.0


def test_useless_matrices_are_worst_and_misshapen_ones_refused():
    assert gain_index(np.zeros((3, 3))) == 1.0
    assert gain_index(np.full((3, 3), np.nan)) == 1.0
    collapsed = np.eye(3)
    collapsed[1] = 0
    assert gain_index(collapsed) > 0.3
    for shape in ((2, 3), (1, 1), (4,)):
        with pytest.raises(ValueError, match="square"):
            gain_index(np.ones(shape))
