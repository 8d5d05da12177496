"""Clipping: never longer than the bound, never touched below it, whatever float32 does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from consortium.privacy.clipping import (
    add_clipped_mean,
    clip_columns,
    clip_products,
    clip_vector,
    column_norms,
    sum_clipped_products,
    vector_norm,
)

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
    clipped, sizes = clip_columns(matrix, bound), norms(matrix)
    short, long = sizes < bound * (1 - 1e-12), sizes > bound
    assert np.array_equal(clipped[:, short], matrix[:, short])
    assert norms(clipped)[long] == pytest.approx(bound)
    directions = np.sum(clipped[:, long] * matrix[:, long], axis=0) / (bound * sizes[long])
    assert directions == pytest.approx(1.0)


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


SCALES = st.sampled_from(
    [0.0, 5e-324, 1e-310, 1e-300, 1e-170, 1e-155, 1e-80, 1.0, 1e80, 1e155, 1e170, 1e300, 1.7e308]
)
WRONG = st.sampled_from([np.nan, np.inf, -np.inf])


@st.composite
def scaled(draw, columns=5):
    """A matrix whose rows and columns have scales of their own."""
    seed, count = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 4))
    generator = np.random.default_rng(seed)
    by_row, by_column = (np.array([draw(SCALES) for _ in range(size)]) for size in (count, columns))
    values = generator.uniform(-1, 1, (count, columns))
    with np.errstate(all="ignore"):
        values = np.clip(values * by_row[:, None] * by_column, -1.7e308, 1.7e308)
    return np.nan_to_num(values)


def exact(columns):
    """Norms in numbers of 15 bits of exponent."""
    return np.linalg.norm(columns.astype(np.longdouble), axis=0)


WIDE_BOUNDS = st.sampled_from([1e-300, 1e-170, 1e-80, 1e-10, 0.3, 1.0, 1e80, 1e170, 1e300])
assert np.finfo(np.longdouble).maxexp > 2**13, "the tests need more exponent than a float64 has"


@given(scaled())
def test_a_norm_has_any_scale(matrix):
    expected = exact(matrix)
    expected[expected > np.finfo(np.float64).max] = np.inf
    assert np.allclose(column_norms(matrix), expected.astype(float), rtol=1e-12, atol=5e-324)
    whole = np.linalg.norm(exact(matrix))
    assert np.allclose(vector_norm(matrix), float(whole), rtol=1e-12, atol=5e-324)


@given(scaled(), WIDE_BOUNDS)
def test_columns_of_any_scale_keep_to_a_bound_of_any_scale(matrix, bound):
    clipped, sizes = exact(clip_columns(matrix, bound)), exact(matrix)
    assert np.all(clipped <= bound * (1 + 1e-12))
    assert np.allclose((clipped / bound).astype(float), np.minimum(sizes / bound, 1).astype(float))
    assert exact(clip_vector(matrix, bound).reshape(-1, 1))[0] <= bound * (1 + 1e-12)


@given(scaled(), scaled(), scaled(), WIDE_BOUNDS)
def test_products_of_any_scale_keep_to_a_bound_of_any_scale(first, second, third, bound):
    factors = (first, second, third)
    sizes = np.prod([exact(factor) for factor in factors], axis=0)
    (clipped,) = clip_products([factors], bound)
    found = np.prod([exact(factor) for factor in clipped], axis=0)
    assert np.all(found <= bound * (1 + 1e-12))
    expected = np.minimum(sizes / np.longdouble(bound), 1).astype(float)
    assert np.allclose((found / bound).astype(float), expected, rtol=1e-9, atol=1e-12)
    pairs = (first, second), (second, third)
    parts = [[exact(f) for f in pair] for pair in clip_products(pairs, bound)]
    together = np.sqrt(sum(np.square(one * other) for one, other in parts))
    assert np.all(together <= bound * (1 + 1e-12))
    total = sum_clipped_products(first[:, :1], second[:, :1], bound)
    assert np.linalg.norm(exact(total)) <= bound * (1 + 1e-9)


@given(scaled(), scaled(), WRONG, st.integers(0, 4))
def test_a_column_that_is_not_finite_counts_as_zero_and_alone(left, right, wrong, place):
    damaged = left.copy()
    damaged[0, place] = wrong
    others = np.arange(5) != place
    assert not clip_columns(damaged, 1.0)[:, place].any()
    assert np.array_equal(clip_columns(damaged, 1.0)[:, others], clip_columns(left[:, others], 1.0))
    ((u, v),) = clip_products([(damaged, right)], 1.0)
    assert not np.outer(u[:, place], v[:, place]).any()
    assert np.isfinite(u @ v.T).all()
    assert column_norms(damaged)[place] == np.inf == vector_norm(damaged)
    assert not clip_vector(damaged, 1.0).any()


@given(scaled(), scaled(), WIDE_BOUNDS, st.sampled_from([0, 1]))
def test_a_product_with_a_factor_of_zero_is_zero_however_large_the_other(left, right, bound, which):
    right[:] = 1.7e308
    zero = left.copy()
    zero[:] = 0.0
    pair = (zero, right) if which else (right, zero)
    (vanished, (u, v)) = clip_products([pair, (left, left)], bound)
    assert np.isfinite(vanished[0]).all()
    assert np.isfinite(vanished[1]).all()
    assert not np.any(vanished[0] @ vanished[1].T)
    assert np.isfinite(u @ v.T).all()


def test_a_norm_that_allows_nothing_leaves_nothing():
    for norm in (0.0, -1.0, np.nan):
        assert not clip_columns(np.ones((2, 2)), norm).any()


@given(scaled(), WIDE_BOUNDS)
def test_what_is_added_keeps_to_its_bound(product, bound):
    total = np.zeros(product.shape)
    add_clipped_mean(total, product, 3, bound)
    size = np.linalg.norm(exact(total))
    assert size <= bound * (1 + 1e-12)
    expected = min(np.linalg.norm(exact(product)) / 3 / bound, 1)
    assert float(size / bound) == pytest.approx(float(expected), abs=1e-12)
