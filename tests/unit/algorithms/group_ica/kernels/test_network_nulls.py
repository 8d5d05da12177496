"""Smooth participants without a network: the null that fits them, and networks that stand out."""

import numpy as np
import pytest

from consortium.algorithms.group_ica.kernels import smooth_null
from consortium.algorithms.group_ica.kernels.network_nulls import (
    NullDraws,
    beyond_null,
    beyond_smooth,
    white_null,
)
from consortium.algorithms.group_ica.kernels.smooth_null import (
    SmoothPlaces,
    SmoothRelease,
    strengths_of,
    surface_covariances,
)
from consortium.kernels.component_bootstrap import find_directions
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.separations import Varimax
from consortium.kernels.surface_basis import SurfaceBasis
from consortium.kernels.surface_modes import surface_modes
from tests.support.surfaces import sphere

SIZE, KEPT, PERSONS, VOLUMES = 70, 8, 60, 50
PLACES = 60.0 * np.random.default_rng(7).uniform(-1.0, 1.0, (SIZE, 3))
WAY = Varimax(lambda weights: weights)


def mean_projector(networks, seed, strengths=1.0):
    """Of persons with a smooth covariance, stronger in some places, and networks or none."""
    generator = np.random.default_rng(seed)
    apart = np.linalg.norm(PLACES[:, None] - PLACES, axis=2)
    root, total = np.linalg.cholesky(np.exp(-apart / 25.0)), np.zeros((SIZE, SIZE))
    root = root * np.broadcast_to(strengths, SIZE)[:, None]
    for _ in range(PERSONS):
        series = root @ generator.standard_normal((SIZE, VOLUMES))
        series += 2.0 * networks @ generator.standard_normal((networks.shape[1], VOLUMES))
        left = np.linalg.svd(series, full_matrices=False)[0][:, :KEPT]
        total += left @ left.T / PERSONS
    return total


def found(networks, deviation, seed, strengths=1.0):
    generator = np.random.default_rng(seed)
    law = SymmetricNoise(SIZE, deviation)
    matrix = mean_projector(networks, seed, strengths) + law.draw(generator)
    directions = find_directions(matrix, law, KEPT, uncut=KEPT)
    maps, weights = WAY.first(directions.vectors, directions.excess, generator)
    release = SmoothRelease(matrix, SmoothPlaces(PLACES), deviation, KEPT, PERSONS, VOLUMES)
    draws = NullDraws(WAY, KEPT, generator)
    smooth = beyond_smooth(release, weights, np.ones(KEPT, dtype=bool), draws)
    white = beyond_null(matrix, white_null(directions), weights, draws)
    return maps, smooth, white


@pytest.mark.parametrize("deviation", [0.0, 0.02])
def test_smooth_persons_have_no_network_though_they_stand_out_of_white_noise(deviation):
    runs = [found(np.zeros((SIZE, 0)), deviation, seed) for seed in range(3)]
    assert sum(smooth.any() for _, smooth, _ in runs) == 0
    assert sum(white.any() for _, _, white in runs) == 3


def in_front(most):
    """Strengths that rise from the middle of the head to its front."""
    return most ** np.clip(PLACES[:, 1] / 50.0, 0.0, 1.0)


@pytest.mark.parametrize("most", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("deviation", [0.0, 0.02])
def test_smooth_persons_who_vary_more_in_front_have_no_network(deviation, most):
    runs = [found(np.zeros((SIZE, 0)), deviation, seed, in_front(most)) for seed in range(3)]
    assert sum(smooth.any() for _, smooth, _ in runs) == 0
    assert sum(white.any() for _, _, white in runs) == 3


@pytest.mark.parametrize("strengths", [1.0, in_front(2.0)], ids=["even", "uneven"])
def test_networks_on_such_a_background_are_told_and_no_background(strengths):
    networks = np.zeros((SIZE, 4))
    for number in range(4):  # regions that lie far apart
        networks[number * 8 : number * 8 + 8, number] = 1.0
    maps, smooth, _ = found(networks, 0.01, 0, strengths)
    cosines = np.abs(np.corrcoef(networks.T, maps.T)[:4, 4:])
    assert cosines[:, smooth].max(axis=1).min() > 0.8
    assert cosines[:, smooth].max(axis=0).min() > 0.5


def test_a_fit_keeps_waves_strengths_and_draws_stray_as_persons_do():
    matrix = mean_projector(np.zeros((SIZE, 0)), 1)
    null = SmoothRelease(matrix, SmoothPlaces(PLACES), 0.0, KEPT, PERSONS, VOLUMES).even
    assert (np.diff(null.strengths) <= 1e-12).all()
    assert np.trace(null.mean) == pytest.approx(KEPT, rel=0.05)
    assert np.linalg.norm(null.mean - matrix) < 0.3 * np.linalg.norm(matrix)
    generator = np.random.default_rng(0)
    strays = [np.square(null.draw(generator) - null.mean).sum() for _ in range(20)]
    between = KEPT - np.square(null.mean).sum()
    assert np.mean(strays) == pytest.approx(between / PERSONS, rel=0.2)


def test_draws_do_not_depend_on_the_signs_that_are_found(monkeypatch):
    """Another BLAS finds other ones of the same waves."""
    matrix = mean_projector(np.zeros((SIZE, 0)), 1)

    def drawn():
        null = SmoothRelease(matrix, SmoothPlaces(PLACES), 0.01, KEPT, PERSONS, VOLUMES).even
        return null.draw(np.random.default_rng(0))

    once, true = drawn(), smooth_null.eigh

    def found(covariance, **given):
        values, vectors = true(covariance, **given)
        return values, vectors * np.random.default_rng(1).choice([-1.0, 1.0], len(values))

    monkeypatch.setattr(smooth_null, "eigh", found)
    assert drawn() == pytest.approx(once, rel=1e-12, abs=1e-14)


def test_a_local_null_beside_networks_has_no_part_of_them():
    matrix = mean_projector(np.zeros((SIZE, 0)), 1)
    networks = np.random.default_rng(2).standard_normal((SIZE, 3))
    null = SmoothRelease(matrix, SmoothPlaces(PLACES), 0.0, KEPT, PERSONS, VOLUMES).uneven(networks)
    assert null is not None
    assert np.abs(null.mean @ networks).max() < 1e-9
    basis = np.linalg.qr(networks)[0]
    others = smooth_null.orthogonal_to(networks)
    found = smooth_null._without(matrix, basis)
    assert found == pytest.approx(others @ matrix @ others, abs=1e-14)
    assert smooth_null._without(matrix, basis[:, :0]) is matrix


def test_waves_of_fewer_dimensions_than_directions_have_strengths_from_nothing_to_one():
    found = smooth_null._expected_strengths(np.array([3.0, 1.0, *np.zeros(8)]), KEPT, VOLUMES)
    assert np.isfinite(found).all()
    assert found[:2] == pytest.approx(1.0)
    assert found[2:] == pytest.approx(0.0)


def test_places_may_be_turned():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((SIZE, SIZE)))[0]
    matrix = mean_projector(np.zeros((SIZE, 0)), 2)
    plain = SmoothRelease(matrix, SmoothPlaces(PLACES), 0.0, KEPT, PERSONS, VOLUMES).even
    turned = SmoothRelease(
        turn @ matrix @ turn.T, SmoothPlaces(PLACES, turn), 0.0, KEPT, PERSONS, VOLUMES
    ).even
    assert turn.T @ turned.mean @ turn == pytest.approx(plain.mean, abs=1e-8)
    assert strengths_of(matrix, np.zeros((SIZE, 1))) == pytest.approx([0.0])


@pytest.fixture(scope="module")
def uneven() -> SurfaceBasis:
    """Of two surfaces whose vertices are four times as dense on one side as on the other."""
    points, triangles = sphere(900)
    points = points * (1 + 0.35 * points[:, :1] / np.linalg.norm(points[0]))
    sides = [surface_modes(points, triangles, np.ones(len(points), dtype=bool)) for _ in range(2)]
    apart = np.concatenate([points, points + np.array([300.0, 0.0, 0.0])])
    return SurfaceBasis(apart, sides, 45.0)


def along(basis, width, seed):
    """A mean projector of persons whose noise was smoothed along the surfaces."""
    side, generator = basis.modes[0], np.random.default_rng(seed)
    weights, _ = side.heat((width / 2.3548) ** 2)
    half = basis.matrix[: len(side.vectors), : basis.sizes[0]].T @ side.vectors * np.sqrt(weights)
    total = np.zeros((basis.size, basis.size))
    for _ in range(200):
        steps = generator.standard_normal((2, len(weights), 40))
        left = np.linalg.svd(np.concatenate(half @ steps), full_matrices=False)[0][:, :20]
        total += left @ left.T / 200
    return total


@pytest.mark.parametrize("width", [20.0, 34.0])
def test_noise_along_a_surface_of_uneven_vertices_is_no_network(uneven, width):
    matrix, law = along(uneven, width, 3), SymmetricNoise(uneven.size, 1e-3)
    way = Varimax(uneven.matrix.__matmul__)
    directions = find_directions(matrix, law, 20, uncut=20)
    generator = np.random.default_rng(0)
    _, weights = way.first(directions.vectors, directions.excess, generator)
    places = SmoothPlaces(uneven.centres, own=lambda: surface_covariances(uneven))
    release = SmoothRelease(matrix, places, 1e-3, 20, 200, 40)
    reliable = np.ones(weights.shape[1], dtype=bool)
    draws = NullDraws(way, 20, generator)
    assert not beyond_smooth(release, weights, reliable, draws).any()
    assert beyond_null(matrix, white_null(directions), weights, draws).any()
    # Kernels between single places of the surfaces explain less of it.
    between = SmoothRelease(matrix, SmoothPlaces(uneven.centres), 1e-3, 20, 200, 40).even
    assert np.linalg.norm(matrix - release.even.mean) < 0.9 * np.linalg.norm(matrix - between.mean)
