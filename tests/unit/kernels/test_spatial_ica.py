"""Spatial ICA: scikit-learn's numbers where both do the same, and maps that are found again."""

import numpy as np
import pytest

from consortium.kernels.spatial_ica import (
    fast_ica,
    nearest_rotation,
    non_gaussianity,
    separate,
    whiten,
)

sklearn = pytest.importorskip("sklearn.decomposition", reason="scikit-learn is not installed")


def mixed(seed=0, voxels=4000, size=4):
    generator = np.random.default_rng(seed)
    sources = generator.laplace(size=(voxels, size))
    return sources, sources @ generator.standard_normal((size, size)), generator


def best(found, truth):
    return np.abs(np.corrcoef(found.T, truth.T)[: found.shape[1], found.shape[1] :]).max(axis=0)


def test_it_is_scikit_learn_s_fast_ica():
    _, maps, generator = mixed()
    white, _ = whiten(maps)
    start = generator.standard_normal((4, 4))
    rotation = fast_ica(white, start, 500, 1e-14)
    peer = sklearn.FastICA(whiten=False, w_init=start, tol=1e-14, max_iter=500)
    theirs = peer.fit_transform(white)
    assert white @ rotation.T == pytest.approx(theirs, abs=1e-6)


def test_independent_maps_are_found_from_any_mixture():
    sources, maps, generator = mixed(1)
    found = separate(maps, 3, generator)
    assert best(found.maps, sources).min() > 0.99
    assert found.maps.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-9)
    assert np.cov(found.maps.T, bias=True) == pytest.approx(np.eye(4), abs=1e-9)
    assert (maps - maps.mean(axis=0)) @ found.unmixing == pytest.approx(found.maps, abs=1e-8)


def test_what_is_the_same_everywhere_is_no_map():
    _, maps, generator = mixed(4, size=3)
    flat = 1.0 + 0.01 * generator.standard_normal((len(maps), 1))
    both = np.hstack([maps / np.sqrt(np.square(maps).mean(axis=0)), flat])
    assert separate(both, 2, generator).maps.shape[1] == 3
    assert separate(flat, 2, generator).maps.shape[1] == 0


def test_a_gaussian_map_has_next_to_no_contrast():
    generator = np.random.default_rng(2)
    maps = np.stack([generator.standard_normal(200_000), generator.laplace(size=200_000)], axis=1)
    found = non_gaussianity(maps / maps.std(axis=0))
    assert found[0] < 2e-3 < 0.02 < found[1]


def test_the_nearest_rotation_is_a_rotation():
    axes = np.random.default_rng(3).standard_normal((5, 5))
    found = nearest_rotation(axes)
    assert found @ found.T == pytest.approx(np.eye(5), abs=1e-12)
    assert nearest_rotation(found) == pytest.approx(found, abs=1e-12)


def test_rounding_moves_components_by_no_more_than_rounding() -> None:
    """Centring leaves eigenvalues of 1, whose axes are rounding's own; starts rest on the axes."""
    generator = np.random.default_rng(3)
    maps = generator.standard_normal((200, 5)) ** 3 + 0.1
    once = separate(maps, 2, np.random.default_rng(0)).maps
    for seed in range(5):
        noise = np.random.default_rng(seed).standard_normal(maps.shape)
        again = separate(maps + 1e-15 * noise, 2, np.random.default_rng(0)).maps
        np.testing.assert_allclose(again, once, atol=1e-11)
