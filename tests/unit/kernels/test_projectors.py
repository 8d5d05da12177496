"""Persons' projectors: of norm √K at most whatever their scale, and nobody else's business."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.kernels.projectors import leading_directions, reduce_series


def projector(block, count, basis=None, global_signal="keep"):
    directions = leading_directions(reduce_series(block, basis, global_signal), count)
    return directions @ directions.T


@pytest.mark.parametrize("size", [1e-44, 3.7e-20, 1.0, 8.0, 3e38])
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("basis", [True, False])
def test_a_series_comes_near_one_at_any_scale(size, single, basis):
    kind = np.float32 if single else np.float64
    block = np.array([[size, -size / 2], [0.0, size / 4]], dtype=kind)
    reduced = reduce_series(block, np.eye(2, dtype=kind) if basis else None, "keep")
    assert reduced.dtype == np.float64
    assert 0.5 <= np.abs(reduced).max() <= 1.0


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 8),
    volumes=st.integers(1, 9),
    count=st.integers(1, 6),
    low=st.integers(-300, 0),
    high=st.integers(0, 300),
)
def test_a_projector_keeps_its_norm_at_any_scale(seed, rows, volumes, count, low, high):
    generator = np.random.default_rng(seed)
    block = generator.standard_normal((rows, volumes))
    block *= 10.0 ** generator.uniform(low, high, (rows, 1))
    found = projector(block, count)
    assert np.linalg.norm(found) <= np.sqrt(count) * (1 + 1e-12)
    assert found @ found == pytest.approx(found, abs=1e-12)


def test_it_is_what_a_singular_value_decomposition_gives():
    generator = np.random.default_rng(0)
    for shape in ((7, 30), (30, 7)):
        block = generator.standard_normal(shape)
        left = np.linalg.svd(block)[0][:, :3]
        assert projector(block, 3) == pytest.approx(left @ left.T, abs=1e-10)


def test_scale_gain_and_length_drop_out():
    block = np.random.default_rng(1).standard_normal((6, 20))
    expected = projector(block, 2)
    for same in (block * 1e-200, block * -1e200, np.hstack([block, block])):
        assert projector(same, 2) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_person_whose_numbers_are_not_finite_counts_as_zero(wrong):
    block = np.ones((4, 5))
    block[2, 3] = wrong
    assert not projector(block, 2).any()
    assert not projector(np.zeros((4, 5)), 2).any()


def test_fewer_directions_give_a_smaller_norm():
    block = np.outer(np.arange(1.0, 5.0), np.arange(1.0, 9.0))
    assert np.linalg.norm(projector(block, 3)) == pytest.approx(1.0)


def test_a_basis_is_applied_before_and_the_global_signal_taken_out():
    generator = np.random.default_rng(2)
    basis, _ = np.linalg.qr(generator.standard_normal((9, 4)))
    block = generator.standard_normal((9, 40))
    assert projector(block, 2, basis) == pytest.approx(projector(basis.T @ block, 2), abs=1e-12)
    course = generator.standard_normal(40)
    shared = block + 30.0 * course  # the same in all rows
    mean = shared.mean(axis=0)
    without = shared - np.outer(shared @ mean, mean) / (mean @ mean)
    found = projector(shared, 2, basis, "remove")
    assert found == pytest.approx(projector(basis.T @ without, 2), abs=1e-9)
    assert not np.allclose(found, projector(shared, 2, basis), atol=0.1)


def test_it_keeps_to_single_precision_where_the_data_do():
    block = np.random.default_rng(3).standard_normal((5, 30)).astype(np.float32)
    assert reduce_series(block, np.eye(5, dtype=np.float32), "keep").dtype == np.float64
    assert projector(block, 2) == pytest.approx(projector(block.astype(float), 2), abs=1e-5)
