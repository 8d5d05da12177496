"""Symmetric tensors: coordinates, moments, and a decomposition that is found again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms.tensor.kernels.tensor import (
    contract_tensor,
    cubic_size,
    mean_cube,
    mean_mixed_cube,
    orthogonal_components,
    pack_cubic,
    unpack_cubic,
)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_packing_keeps_the_norm_and_is_undone(size, seed):
    packed = np.random.default_rng(seed).standard_normal(cubic_size(size))
    tensor = unpack_cubic(packed, size)
    assert np.linalg.norm(tensor) == pytest.approx(np.linalg.norm(packed))
    assert pack_cubic(tensor) == pytest.approx(packed)
    for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0)):
        assert np.array_equal(tensor, tensor.transpose(order))


@pytest.mark.parametrize("norm", [0.2, 100.0])
def test_the_mean_cube_is_that_of_persons_one_by_one(norm):
    columns = np.random.default_rng(0).standard_normal((4, 9))
    expected = np.zeros((4, 4, 4))
    for v in columns.T:
        cube = np.einsum("i,j,k->ijk", v, v, v)
        expected += cube * min(1.0, norm / np.linalg.norm(cube)) / 9
    assert unpack_cubic(mean_cube(columns, norm), 4) == pytest.approx(expected)


@pytest.mark.parametrize("norm", [0.2, 100.0])
def test_the_mixed_cube_is_the_symmetric_part_of_persons_one_by_one(norm):
    words = np.random.default_rng(1).standard_normal((3, 4, 9))
    expected = np.zeros((4, 4, 4))
    for u, v, w in words.transpose(2, 0, 1):
        cube = np.einsum("i,j,k->ijk", u, v, w)
        cube *= min(1.0, norm / np.linalg.norm(cube))
        for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            expected += cube.transpose(order) / 6 / 9
    assert unpack_cubic(mean_mixed_cube(*words, norm), 4) == pytest.approx(expected)


def test_more_persons_than_a_chunk():
    columns = np.random.default_rng(2).standard_normal((3, 5000))
    expected = np.einsum("in,jn,kn->ijk", columns, columns, columns) / 5000
    assert unpack_cubic(mean_cube(columns, 1e9), 3) == pytest.approx(expected)


def test_what_overflows_counts_as_nobody():
    columns = np.random.default_rng(3).standard_normal((3, 4))
    spoilt = columns.copy()
    spoilt[:, 0] = [1e200, np.inf, np.nan]
    columns[:, 0] = 0
    assert mean_cube(spoilt, 1.0) == pytest.approx(mean_cube(columns, 1.0))
    found = mean_mixed_cube(spoilt, columns, columns, 1.0)
    assert found == pytest.approx(mean_mixed_cube(columns, columns, columns, 1.0))


def test_contraction():
    generator = np.random.default_rng(4)
    tensor, vectors = generator.standard_normal((3, 3, 3)), generator.standard_normal((3, 2))
    expected = np.einsum("ijk,jl,kl->il", tensor, vectors, vectors)
    assert contract_tensor(tensor, vectors) == pytest.approx(expected)


def decompose(noise, seed, size=6):
    generator = np.random.default_rng(seed)
    truth = np.linalg.qr(generator.standard_normal((size, size)))[0]
    strengths = generator.uniform(1.5, 4, size)
    tensor = np.einsum("l,il,jl,kl->ijk", strengths, truth, truth, truth)
    tensor += noise * unpack_cubic(generator.standard_normal(cubic_size(size)), size)
    found = orthogonal_components(tensor, restarts=20, iterations=30, generator=generator)
    return truth, found


@pytest.mark.parametrize("seed", range(5))
def test_an_orthogonal_tensor_is_decomposed(seed):
    truth, found = decompose(0.0, seed)
    alike = found.T @ truth
    # Each found direction is a true one with its sign, and each true one is found once.
    assert sorted(alike.argmax(axis=1)) == list(range(6))
    assert alike.max(axis=1) == pytest.approx(np.ones(6), abs=1e-9)
    assert found.T @ found == pytest.approx(np.eye(6), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_noise_turns_the_components_by_no_more_than_its_size(seed):
    truth, found = decompose(0.05, seed)
    assert (found.T @ truth).max(axis=1).min() > 0.97


def test_noise_without_a_tensor_leads_nowhere():
    truth, found = decompose(100.0, 0)
    assert (found.T @ truth).max(axis=1).min() < 0.9
    assert found.T @ found == pytest.approx(np.eye(6), abs=1e-9)


def test_a_tensor_of_zeros_is_no_trouble():
    generator = np.random.default_rng(0)
    found = orthogonal_components(
        np.zeros((3, 3, 3)), restarts=4, iterations=5, generator=generator
    )
    assert np.isfinite(found).all()
