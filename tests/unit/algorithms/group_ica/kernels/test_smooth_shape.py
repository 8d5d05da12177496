"""Smooth participants whose covariance is anisotropic or left-right symmetric, without networks."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from consortium.algorithms.group_ica.kernels import smooth_null
from consortium.algorithms.group_ica.kernels.local_noise import LocalNoise
from consortium.algorithms.group_ica.kernels.network_nulls import NullDraws, beyond_smooth
from consortium.algorithms.group_ica.kernels.smooth_null import (
    SmoothPlaces,
    SmoothRelease,
)
from consortium.algorithms.group_ica.kernels.smooth_shape import (
    EVEN,
    MIRROR,
    distances,
    estimate_shape,
)
from consortium.kernels.component_bootstrap import find_directions
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.separations import Varimax

SIZE, KEPT, PERSONS, VOLUMES, DEVIATION = 120, 10, 150, 50, 0.006
PLACES = np.array([60.0, 70.0, 50.0]) * np.random.default_rng(4).uniform(-1.0, 1.0, (SIZE, 3))
ISOTROPIC, STRETCHED = (20.0, 20.0, 20.0), (10.0, 45.0, 25.0)
TURN = Rotation.from_euler("xyz", [20.0, 35.0, 10.0], degrees=True).as_matrix()
WAY = Varimax(lambda weights: weights)


@cache
def release(lengths, mirrored=0.0, *, oblique=False, networks=0):
    """Return a noisy mean projector of participants whose covariance falls with displacement."""
    generator = np.random.default_rng(1)
    scale = (TURN if oblique else np.eye(3)) / np.array(lengths)
    covariance = np.exp(-(distances(PLACES @ scale, PLACES @ scale) ** 2) / 2.0)
    across = distances(PLACES @ scale, (PLACES * MIRROR) @ scale)
    covariance = covariance + mirrored * np.exp(-(across**2) / 2.0)
    values, vectors = np.linalg.eigh(covariance)
    root, total = vectors * np.sqrt(np.maximum(values, 0.0)), np.zeros((SIZE, SIZE))
    maps = np.zeros((SIZE, networks))
    for number in range(networks):
        maps[number * 8 : number * 8 + 8, number] = 2.0
    for _ in range(PERSONS):
        series = root @ generator.standard_normal((SIZE, VOLUMES))
        series += maps @ generator.standard_normal((networks, VOLUMES))
        left = np.linalg.svd(series, full_matrices=False)[0][:, :KEPT]
        total += left @ left.T / PERSONS
    return total + SymmetricNoise(SIZE, DEVIATION).draw(generator), maps


def axes(shape):
    """Lengths of the axes, ascending, and the direction of the longest."""
    values, vectors = np.linalg.eigh(shape.root @ shape.root.T)
    return 1.0 / np.sqrt(values[::-1]), vectors[:, 0]


@pytest.mark.parametrize("oblique", [False, True])
def test_anisotropy_is_estimated_from_the_released_matrix(oblique):
    shape = estimate_shape(release(STRETCHED, oblique=oblique)[0], PLACES)
    lengths, longest = axes(shape)
    assert lengths / np.cbrt(lengths.prod()) == pytest.approx(
        np.sort(STRETCHED) / np.cbrt(np.prod(STRETCHED)), rel=0.15
    )
    true = (TURN if oblique else np.eye(3))[:, 1]
    assert abs(longest @ true) > 0.97
    assert np.linalg.det(shape.root) == pytest.approx(1.0)
    assert shape.mirrored < 0.1


@pytest.mark.parametrize(("mirrored", "least", "most"), [(0.0, 0.0, 0.1), (0.9, 0.8, 1.0)])
def test_symmetry_of_the_hemispheres_is_estimated_too(mirrored, least, most):
    shape = estimate_shape(release(ISOTROPIC, mirrored)[0], PLACES)
    assert least <= shape.mirrored <= most
    lengths, _ = axes(shape)
    assert lengths.max() / lengths.min() < 1.25


def test_a_matrix_of_noise_has_a_shape_of_bounded_axes():
    for seed in range(3):
        noise = SymmetricNoise(SIZE, 1.0).draw(np.random.default_rng(seed))
        shape = estimate_shape(noise, PLACES)
        lengths, _ = axes(shape)
        assert lengths.max() / lengths.min() <= 5.0 + 1e-9
        assert 0.0 <= shape.mirrored <= 1.0


@pytest.mark.parametrize("oblique", [False, True])
def test_kernels_are_symmetric_and_nearly_covariances(oblique):
    shape = estimate_shape(release(STRETCHED, 0.9, oblique=oblique)[0], PLACES)
    for kernel in shape.kernels(PLACES, smooth_null.KERNELS):
        assert kernel == pytest.approx(kernel.T, abs=1e-12)
        values = np.linalg.eigvalsh(kernel)
        assert values[0] > -0.02 * values[-1]


def test_places_too_few_for_a_shape_are_taken_as_isotropic():
    assert estimate_shape(np.eye(3), PLACES[:3]) is EVEN


CASES = {
    "isotropic": (ISOTROPIC, 0.0),
    "anisotropic": (STRETCHED, 0.0),
    "symmetric .80": (ISOTROPIC, 0.8),
    "symmetric .98": (ISOTROPIC, 0.98),
    "both": (STRETCHED, 0.9),
}


def found(matrix):
    law, generator = SymmetricNoise(SIZE, DEVIATION), np.random.default_rng(0)
    directions = find_directions(matrix, law, KEPT, uncut=KEPT)
    maps, weights = WAY.first(directions.vectors, directions.excess, generator)
    release = SmoothRelease(matrix, SmoothPlaces(PLACES), DEVIATION, KEPT, PERSONS, VOLUMES)
    reliable = np.ones(weights.shape[1], dtype=bool)
    return maps, beyond_smooth(release, weights, reliable, NullDraws(WAY, KEPT, generator))


@pytest.mark.parametrize("name", CASES)
def test_smooth_participants_of_any_shape_have_no_network(name):
    _, beyond = found(release(*CASES[name])[0])
    assert not beyond.any()


@pytest.mark.parametrize("name", ["anisotropic", "symmetric .80", "symmetric .98", "both"])
def test_a_null_of_isotropic_covariances_would_take_them_for_networks(name, monkeypatch):
    monkeypatch.setattr(smooth_null, "estimate_shape", lambda matrix, coordinates: EVEN)
    monkeypatch.setattr(LocalNoise, "adjusted", lambda noise, released, own: noise)
    _, beyond = found(release(*CASES[name])[0])
    assert beyond.any()


@pytest.mark.parametrize("name", CASES)
def test_networks_on_such_a_background_are_found(name):
    lengths, mirrored = CASES[name]
    matrix, networks = release(lengths, mirrored, networks=4)
    maps, beyond = found(matrix)
    cosines = np.abs(np.corrcoef(networks.T, maps.T)[:4, 4:])
    assert cosines[:, beyond].max(axis=1).min() > 0.8
    assert cosines[:, beyond].max(axis=0).min() > 0.5
