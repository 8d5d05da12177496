"""Block power iteration: against dense NumPy, and what noise alone would look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.power import FALL, RANK, SIGNAL
from consortium.algorithms.pca.kernels.power_plan import expected_energies
from consortium.kernels.power import (
    add_subject_product,
    add_volume_products,
    eigenpairs,
    noise_edge,
    orthonormal,
    start_basis,
)

SIZES, SEEDS = st.integers(1, 7), st.integers(0, 2**32 - 1)
BOUNDS = st.floats(1e-3, 10)


def drawn(seed, features, volumes, size):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((features, volumes)), generator.standard_normal(
        (features, size)
    )


@given(SIZES, SIZES, SIZES, SEEDS, BOUNDS)
def test_a_subject_adds_its_clipped_product(features, volumes, size, seed, bound):
    block, basis = drawn(seed, features, volumes, size)
    product = block @ block.T @ basis / volumes
    total = np.ones((features, size))
    add_subject_product(total, block, basis, bound)
    expected = product * min(1.0, bound / np.linalg.norm(product))
    assert total - 1 == pytest.approx(expected, abs=1e-9)


@given(SIZES, st.integers(1, 600), SIZES, SEEDS, BOUNDS)
def test_volumes_add_their_clipped_products(features, volumes, size, seed, bound):
    block, basis = drawn(seed, features, volumes, size)
    products = [np.outer(x, x) @ basis for x in block.T]
    expected = sum(p * min(1.0, bound / np.linalg.norm(p)) for p in products)
    total = np.zeros((features, size))
    add_volume_products(total, block, basis, bound)
    assert total == pytest.approx(expected, abs=1e-8)


def test_a_float32_block_is_clipped_by_its_true_norm():
    block = np.full((300_000, 1), 0.01, dtype=np.float32)
    total = np.zeros((300_000, 1))
    add_subject_product(total, block, np.ones((300_000, 1), np.float32), 0.5)
    assert np.linalg.norm(total) <= 0.5 * (1 + 1e-7)


@pytest.mark.parametrize("size", [1e30, np.inf, np.nan])
def test_what_overflows_counts_as_nothing(size):
    total = np.zeros((3, 2))
    block = np.full((3, 4), size, dtype=np.float32)
    add_subject_product(total, block, np.ones((3, 2), np.float32), 1.0)
    assert not total.any()
    add_volume_products(total, np.full((3, 4), 1e308), 1e3 * np.ones((3, 2)), 1.0)
    assert not total.any()


@given(st.integers(1, 20), st.integers(1, 20), SEEDS)
def test_the_start_is_orthonormal_and_the_seeds_own(features, size, seed):
    size = min(features, size)
    basis = start_basis(features, size, seed)
    assert basis.T @ basis == pytest.approx(np.eye(size), abs=1e-9)
    assert np.array_equal(basis, start_basis(features, size, seed))
    assert np.abs(orthonormal(3 * basis).T @ basis) == pytest.approx(np.eye(size), abs=1e-9)


def test_an_invariant_subspace_gives_its_eigenpairs():
    generator = np.random.default_rng(0)
    vectors = orthonormal(generator.standard_normal((50, 4)))
    values = np.array([4.0, 3.0, 2.0, 1.0])
    turned = vectors @ orthonormal(generator.standard_normal((4, 4)))
    basis, found = eigenpairs((vectors * values) @ vectors.T @ turned, 0.0)
    assert found == pytest.approx(values)
    assert np.abs(basis.T @ vectors) == pytest.approx(np.eye(4), abs=1e-7)


def test_eigenvalues_are_freed_of_the_noise():
    generator = np.random.default_rng(1)
    features, deviation, values = 20_000, 0.01, np.array([3.0, 2.0])
    vectors = orthonormal(generator.standard_normal((features, 2)))
    noise = deviation * generator.standard_normal((features, 2))
    raw = np.linalg.svd(vectors * values + noise, compute_uv=False)
    _, found = eigenpairs(vectors * values + noise, deviation)
    assert found == pytest.approx(values, rel=0.02)
    assert np.all(raw > 1.1 * values)  # without the correction they are too large


def test_noise_alone_stays_at_its_edge():
    generator = np.random.default_rng(2)
    features, size = 20_000, 20
    tops = [
        eigenpairs(0.1 * generator.standard_normal((features, size)), 0.1)[1][0] for _ in range(5)
    ]
    edge = noise_edge(features, size, 0.1)
    assert 0.9 * edge < np.mean(tops) < edge  # for few columns the edge is reached from below


def of_the_benchmark(features, count):
    """Spectrum of the made-up scans of `benchmarks.power`."""
    shares = FALL ** np.arange(RANK)
    leading = np.zeros(count)
    leading[:RANK] = SIGNAL * shares / shares.sum()
    white = (1 - SIGNAL) / features
    return leading + white, white


@pytest.mark.parametrize(
    ("deviation", "products", "measured"),
    # benchmarks/power.py: 70,000 voxels; noise in the mean of 4 products, energy over the exact
    [(0.0, 5, 0.992), (3.47e-6, 2, 0.766), (3.47e-6, 3, 0.951), (3.47e-6, 4, 0.975)],
)
def test_the_energy_foretold_is_the_one_measured(deviation, products, measured):
    # A product has √j times the noise of one alone; here it is that of four, whatever j.
    alone = deviation / np.sqrt(products)
    found = expected_energies(70_000, 20, alone, products, of_the_benchmark)[products - 1]
    assert found == pytest.approx(measured, abs=0.02)


def test_noise_never_helps():
    for count in range(8):
        energies = [
            expected_energies(5_000, 8, deviation, 8)[count]
            for deviation in (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
        ]
        assert np.all(np.diff(energies) < 0.01)
        assert 0.0 <= energies[-1] < 0.1
