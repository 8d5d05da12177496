"""Whitening under noise: eigenvalues are corrected for what noise adds."""

import numpy as np
import pytest

from consortium.algorithms.tensor.kernels.spiked_covariance import (
    flat_variance,
    moment_whitening,
    shrink_eigenvalues,
)


def symmetric_noise(size, deviation, generator):
    """As a packed release has it: variance σ² on the diagonal, half of it elsewhere."""
    draws = deviation * generator.standard_normal((size, size))
    return (draws + draws.T) / 2


def test_whitening_makes_the_moment_the_identity():
    generator = np.random.default_rng(0)
    factors = generator.standard_normal((7, 3))
    moment = factors @ factors.T
    found = moment_whitening(moment, 3, 0.0)
    assert found.forward.T @ moment @ found.forward == pytest.approx(np.eye(3), abs=1e-9)
    assert found.backward @ found.forward.T @ factors == pytest.approx(factors, abs=1e-9)
    assert (np.diff(found.values) <= 0).all()


def test_noise_is_taken_off_the_eigenvalues():
    generator = np.random.default_rng(1)
    size, deviation = 300, 0.05
    edge = deviation * np.sqrt(2 * size)
    basis = np.linalg.qr(generator.standard_normal((size, 2)))[0]
    moment = (basis * [4.0, 2.0]) @ basis.T + symmetric_noise(size, deviation, generator)
    seen = np.linalg.eigvalsh(moment)[-2:][::-1]
    found = moment_whitening(moment, 2, edge).values
    assert found == pytest.approx([4.0, 2.0], abs=0.12)
    assert seen[1] - 2.0 > 2 * abs(found[1] - 2.0)  # as it stands it is too large
    noise = np.linalg.eigvalsh(symmetric_noise(size, deviation, generator))
    assert noise.max() == pytest.approx(edge, rel=0.05)


def test_what_is_below_the_edge_is_not_divided_by():
    assert shrink_eigenvalues(np.array([-5.0, 0.0, 1.0]), 2.0) == pytest.approx([1.0, 1.0, 1.0])
    assert np.isfinite(moment_whitening(np.zeros((3, 3)), 2, 0.0).forward).all()


@pytest.mark.parametrize("components", [2, 4])
def test_the_flat_variance_is_found(components):
    generator = np.random.default_rng(2)
    centres, weights = (
        generator.standard_normal((4, components)),
        np.full(components, 1 / components),
    )
    moment = (centres * weights) @ centres.T + 0.3 * np.eye(4)
    assert flat_variance(moment, centres @ weights, components) == pytest.approx(0.3)


def test_eigenvalues_below_any_edge_are_numbers():
    """Rounding makes the square of an edge differ between NumPy and Python in 4 of 10,000."""
    edges = np.random.default_rng(0).random(20_000).tolist()
    found = [shrink_eigenvalues(np.zeros(1), edge)[0] for edge in edges]
    assert found == pytest.approx(np.array(edges) / 2)
