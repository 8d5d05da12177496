"""Weighted varimax: the field's own rotation, of directions that count by their strength."""

import numpy as np
import pytest

from consortium.kernels import separations
from consortium.kernels.separations import separate_weighted, varimax

analysis = pytest.importorskip("sklearn.decomposition._factor_analysis")


def test_it_is_scikit_learn_s_varimax():
    loadings = np.random.default_rng(0).laplace(size=(300, 5))
    ours = loadings @ varimax(loadings, 1000, 1e-14)
    theirs = analysis._ortho_rotation(loadings, "varimax", 1e-14, 1000).T
    cosines = np.abs(np.corrcoef(ours.T, theirs.T)[:5, 5:])
    assert cosines.max(axis=0) == pytest.approx(np.ones(5), abs=1e-6)


def test_sparse_maps_are_found_from_directions_that_mix_them():
    generator = np.random.default_rng(1)
    maps = np.kron(np.eye(4, 12).T, generator.uniform(0.5, 1.0, (20, 1)))
    strengths = np.array([0.9, 0.8, 0.7, 0.6])
    left, sizes, _ = np.linalg.svd(maps * strengths, full_matrices=False)
    found, unmixing = separate_weighted(left, sizes**2)
    assert np.abs(np.corrcoef(found.T, maps.T)[:4, 4:]).max(axis=0).min() > 0.99
    assert found.var(axis=0) == pytest.approx(np.ones(4))
    assert (left - left.mean(axis=0)) @ unmixing == pytest.approx(found)


def test_a_direction_of_little_strength_moves_maps_by_little():
    generator = np.random.default_rng(2)
    maps = np.linalg.qr(np.kron(np.eye(3), generator.uniform(0.5, 1.0, (60, 1))))[0]
    noise = np.linalg.qr(np.c_[maps, generator.standard_normal((180, 1))])[0][:, 3:]
    alone, _ = separate_weighted(maps, np.ones(3))
    both, _ = separate_weighted(np.c_[maps, noise], np.array([1.0, 1.0, 1.0, 0.05]))
    assert np.abs(np.corrcoef(alone.T, both.T)[:3, 3:]).max(axis=1).min() > 0.99


@pytest.mark.parametrize("maps", [1, 2, 7, 32, 33])
def test_noise_has_the_same_rotation_by_moments_as_by_maps(maps, monkeypatch):
    """Noise takes all iterations, so most of them use the moments."""
    loadings = np.random.default_rng(maps).standard_normal((5000, maps)) * np.linspace(1, 2, maps)
    found = varimax(loadings)
    monkeypatch.setattr(separations, "_FEW", separations.ITERATIONS)
    assert found == pytest.approx(varimax(loadings), abs=1e-9)
    assert found.T @ found == pytest.approx(np.eye(maps), abs=1e-12)
