"""Clipping: never longer than the bound, never touched below it, whatever float32 does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from consortium.kernels.clipping import clip_columns, clip_vector, column_scales

VALUES = st.floats(-(2.0**99), 2.0**99, width=32)
BOUNDS = st.floats(1e-3, 1e3)
MATRICES = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=VALUES)
)


def norms(matrix):
    return np.linalg.norm(matrix.astype(np.longdouble), axis=0).astype(float)


@given(MATRICES, BOUNDS)
def test_no_column_is_longer_than_the_bound(matrix, bound):
    assert norms(clip_columns(matrix, bound)).max() <= bound * (1 + 1e-12)


@given(MATRICES, BOUNDS)
def test_short_columns_are_untouched_and_long_ones_keep_their_direction(matrix, bound):
    scales, sizes = column_scales(matrix, bound), norms(matrix)
    assert np.all(scales[sizes < bound * (1 - 1e-12)] == 1.0)
    assert np.all((scales > 0) & (scales <= 1))
    long = sizes > bound
    assert norms(clip_columns(matrix, bound))[long] == pytest.approx(bound)


@given(MATRICES, BOUNDS)
def test_a_vector_is_clipped_as_a_whole(vector, bound):
    clipped = clip_vector(vector, bound)
    assert clipped.shape == vector.shape
    size = np.linalg.norm(vector.astype(np.longdouble))
    assert np.linalg.norm(clipped.astype(np.longdouble)) <= bound * (1 + 1e-6)
    if size < bound * (1 - 1e-6):
        assert np.array_equal(clipped, vector)


def test_many_small_squares_are_not_lost_beside_a_large_one():
    # In float32 every square is lost beside the first; together they are 1.4 % of it.
    matrix = np.full((500_000, 2), 1.7e-4, dtype=np.float32)
    matrix[0] = 1.0
    naive = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    assert naive[0] == 1.0 < norms(matrix)[0] - 0.005
    assert norms(clip_columns(matrix, 1.0)).max() <= 1 + 1e-9
    assert norms(clip_vector(matrix, 1.0).reshape(-1, 1))[0] <= 1 + 1e-6


def test_zeros_and_huge_values_stay_numbers():
    assert not clip_columns(np.zeros((3, 2)), 1.0).any()
    assert not clip_vector(np.zeros(3), 1.0).any()
    with np.errstate(over="ignore"):
        assert np.isfinite(clip_columns(np.full((3, 2), 1e300), 1.0)).all()
        assert np.isfinite(clip_vector(np.full(3, 1e300), 1.0)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_does_not_look_like_one_afterwards(wrong):
    # The mechanism refuses it later; a silent zero or one would not be noticed.
    with np.errstate(invalid="ignore"):
        assert np.isnan(clip_vector(np.array([1.0, wrong]), 1.0)).any()
        assert np.isnan(clip_columns(np.array([[1.0], [wrong]]), 1.0)).any()
