"""Second moments: against plain NumPy, and coordinates that keep every norm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.kernels.moments import (
    add_second_moment,
    clipped_volumes,
    pack_symmetric,
    packed_size,
    subject_scale,
    unpack_symmetric,
)

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
    scaled = subject_scale(block, bound) * volumes
    assert scaled == pytest.approx(min(1.0, bound / whole), rel=1e-9)
    assert scaled * whole <= bound * (1 + 1e-9)


def test_an_empty_or_broken_subject_counts_as_nothing():
    assert subject_scale(np.zeros((3, 5)), 1.0) == 0.0
    assert subject_scale(np.full((3, 5), np.nan), 1.0) == 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        assert subject_scale(np.full((3, 5), 1e300), 1.0) == 0.0


@given(SIZES, SIZES, SEEDS, st.floats(1e-3, 10))
def test_a_volume_and_its_moment_are_clipped(features, volumes, seed, bound):
    block = random_block(seed, features, volumes)
    for column, clipped in zip(block.T, clipped_volumes(block, bound).T, strict=True):
        moment = np.linalg.norm(np.outer(clipped, clipped))
        assert moment == pytest.approx(min(bound, np.linalg.norm(np.outer(column, column))))
