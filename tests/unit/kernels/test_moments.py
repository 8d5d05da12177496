"""Second moments: against plain NumPy, and coordinates that keep every norm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.kernels.moments import (
    add_person_moment,
    add_second_moment,
    add_volume_moments,
    pack_symmetric,
    packed_size,
    unpack_symmetric,
)
from consortium.privacy.clipping import clip_columns, clip_moment

SIZES = st.integers(1, 7)
SEEDS = st.integers(0, 2**32 - 1)


def random_block(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@given(SIZES, SIZES, SEEDS, st.floats(0, 10), st.booleans())
def test_the_upper_triangle_is_that_of_the_product(features, volumes, seed, scale, single):
    block = random_block(seed, features, volumes).astype(np.float32 if single else np.float64)
    before = np.asfortranarray(random_block(seed + 1, features, features))
    expected = before + scale * block.astype(np.float64) @ block.astype(np.float64).T
    after = add_second_moment(before.copy(order="F"), block, scale)
    assert np.triu(after) == pytest.approx(np.triu(expected))


def test_the_sum_is_in_place():
    total = np.zeros((3, 3), order="F")
    assert add_second_moment(total, np.ones((3, 2)), 1.0) is total
    assert total[0, 2] == 2.0


@given(SIZES, SEEDS)
def test_packing_is_undone_and_keeps_inner_products(features, seed):
    one, other = (m + m.T for m in random_block(seed, 2, features, features))
    packed = pack_symmetric(one)
    assert len(packed) == packed_size(features)
    assert unpack_symmetric(packed) == pytest.approx(one)
    assert pack_symmetric(unpack_symmetric(packed)) == pytest.approx(packed)
    assert packed @ pack_symmetric(other) == pytest.approx(np.sum(one * other))


def test_packed_noise_has_half_the_energy_off_the_diagonal():
    noise = np.random.default_rng(0).standard_normal((4000, packed_size(3)))
    matrices = np.array([unpack_symmetric(row) for row in noise])
    assert matrices[:, 0, 1].var() == pytest.approx(0.5, rel=0.1)
    assert matrices[:, 1, 1].var() == pytest.approx(1.0, rel=0.1)


@given(SIZES, SIZES, SEEDS, st.floats(1e-3, 10), st.sampled_from([1e-18, 1.0, 1e15]))
def test_a_subject_is_scaled_to_its_bound(features, volumes, seed, bound, size):
    block = (size * random_block(seed, features, volumes)).astype(np.float32)
    moment = block.astype(np.float64) @ block.T.astype(np.float64) / volumes
    whole = np.linalg.norm(moment)
    rows, scale, _ = clip_moment(block, bound)
    clipped = np.linalg.norm(scale * rows @ rows.T)
    assert clipped == pytest.approx(min(whole, bound), rel=1e-9)
    assert clipped <= bound * (1 + 1e-9)


def test_an_empty_or_broken_subject_counts_as_nothing():
    for value in (0.0, np.nan, np.inf):
        rows, scale, _ = clip_moment(np.full((3, 5), value), 1.0)
        assert scale == 0.0
        assert not rows.any()


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-170, 1e-80, 1e80, 1e170, 1e300])
def test_a_subject_of_any_size_is_clipped_to_its_bound(size):
    block = size * np.array([[1.0, 0.0, -1.0], [0.0, 1e-170, 0.0]])
    exact = min(2.0 / 3 * size * size, 0.7)
    rows, scale, _ = clip_moment(block, 0.7)
    moment = (scale * rows @ rows.T).astype(np.longdouble)
    found = float(np.sqrt(np.square(moment).sum()))
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-320)
    assert found <= 0.7 * (1 + 1e-9)


@given(SIZES, SIZES, SEEDS, st.floats(1e-3, 10))
def test_a_volume_and_its_moment_are_clipped(features, volumes, seed, bound):
    block = random_block(seed, features, volumes)
    for column, clipped in zip(block.T, clip_columns(block, np.sqrt(bound)).T, strict=True):
        moment = np.linalg.norm(np.outer(clipped, clipped))
        assert moment == pytest.approx(min(bound, np.linalg.norm(np.outer(column, column))))


BLOCKS = st.tuples(SIZES, SIZES, SEEDS, st.floats(1e-3, 10), st.booleans(), st.sampled_from("CF"))


def moments_of(block, bound, unit):
    """Sum of clipped moments by plain NumPy."""
    wide = block.astype(np.float64)
    parts = (
        [wide @ wide.T / wide.shape[1]] if unit == "subject" else [np.outer(x, x) for x in wide.T]
    )
    return sum(part * min(1.0, bound / np.linalg.norm(part)) for part in parts)


@given(BLOCKS)
def test_clipped_moments_are_added_whatever_the_layout_and_type(case):
    features, volumes, seed, bound, single, order = case
    block = random_block(seed, features, volumes)
    block = block.astype(np.float32 if single else np.float64, order=order)
    for unit, add in (("subject", add_person_moment), ("timepoint", add_volume_moments)):
        total = np.eye(features, order="F")
        assert add(total, block, bound) is total
        expected = np.eye(features) + moments_of(block, bound, unit)
        assert np.triu(total) == pytest.approx(np.triu(expected), rel=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_last_bits_do_not_depend_on_how_a_block_lies_in_memory(order):
    block = random_block(3, 40, 700).astype(np.float32)  # more volumes than are widened at a time
    for add in (add_person_moment, add_volume_moments):
        for volumes in (30, 700):
            one, other = (np.zeros((40, 40), order="F") for _ in range(2))
            add(one, block[:, :volumes], 0.7)
            add(other, np.array(block[:, :volumes], order=order), 0.7)
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-170, 1e-80, 1e80, 1e170, 1e300])
def test_volumes_of_any_size_keep_to_their_bound_beside_ordinary_ones(size):
    block = np.ones((3, 300))
    block[:, 7] = size
    block[:, 9] = np.nan
    total = np.triu(add_volume_moments(np.zeros((3, 3), order="F"), block, 0.5))
    ordinary = 298 * np.full((3, 3), 0.5 / 3)
    extreme = np.full((3, 3), min(size * size, 0.5 / 3))
    assert total == pytest.approx(np.triu(ordinary + extreme), rel=1e-9)
