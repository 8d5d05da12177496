"""Noise that differs between places has no network; true networks on the midline are found."""

from functools import cache

import numpy as np
import pytest

from consortium.algorithms.group_ica.kernels.local_noise import (
    LocalMoments,
    LocalNoise,
    NearPlaces,
    Shrinkage,
)
from consortium.algorithms.group_ica.kernels.network_nulls import (
    NullDraws,
    beyond_null,
    beyond_smooth,
    white_null,
)
from consortium.algorithms.group_ica.kernels.smooth_null import (
    SmoothPlaces,
    SmoothRelease,
)
from consortium.algorithms.group_ica.kernels.smooth_shape import EVEN, MIRROR, SmoothShape
from consortium.kernels.component_bootstrap import find_directions
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.separations import Varimax

WAY = Varimax(lambda weights: weights)
HEAD = np.array([70.0, 90.0, 60.0])
STEPS = np.arange(-80.0, 81.0, 20.0)
GRID = np.stack(np.meshgrid(STEPS, STEPS, STEPS, indexing="ij"), axis=-1).reshape(-1, 3)
PLACES = GRID[np.square(GRID / HEAD).sum(axis=1) <= 1.0]
SIZE, PERSONS, VOLUMES, DEVIATION = len(PLACES), 150, 60, 0.004
NEIGHBOURS = NearPlaces.of(PLACES)
RADIUS = np.linalg.norm(PLACES / HEAD, axis=1)


def mean_projector(root, kept, persons=PERSONS, deviation=DEVIATION):
    """Return a noisy mean of projectors of Gaussian participants with covariance root rootᵀ."""
    generator, total = np.random.default_rng(0), np.zeros((SIZE, SIZE))
    for _ in range(persons):
        series = root @ generator.standard_normal((root.shape[1], VOLUMES))
        left = np.linalg.svd(series, full_matrices=False)[0][:, :kept]
        total += left @ left.T / persons
    return total + SymmetricNoise(SIZE, deviation).draw(generator)


def beyond(matrix, kept, deviation=DEVIATION):
    """Return maps, and which of them are beyond the smooth null and beyond the white one."""
    law, generator = SymmetricNoise(SIZE, deviation), np.random.default_rng(0)
    directions = find_directions(matrix, law, kept, uncut=kept)
    maps, weights = WAY.first(directions.vectors, directions.excess, generator)
    release = SmoothRelease(matrix, SmoothPlaces(PLACES), deviation, kept, PERSONS, VOLUMES)
    draws = NullDraws(WAY, kept, generator)
    smooth = beyond_smooth(release, weights, np.ones(kept, dtype=bool), draws)
    white = beyond_null(matrix, white_null(directions), weights, draws)
    return maps, smooth, white


def test_networks_on_the_midline_are_found():
    """Two spots, at the front and at the back, are like the first waves of smooth noise."""
    centres = np.array([[0.0, -65.0, 5.0], [0.0, 55.0, 5.0]])
    networks = np.exp(-np.square((PLACES[:, None] - centres) / 22.0).sum(axis=2) / 2.0)
    matrix = mean_projector(np.column_stack([networks, 0.5 * np.eye(SIZE)]), 2)
    maps, found, _ = beyond(matrix, 2)
    cosines = np.abs(np.corrcoef(networks.T, maps.T)[:2, 2:])
    assert found.all()
    assert cosines.max(axis=1).min() > 0.9


def test_networks_that_noise_with_local_strength_explains_in_part_are_found():
    """Networks all over the brain, as strong as the noise of privacy."""
    centres = PLACES[np.random.default_rng(3).permutation(SIZE)[:12]]
    networks = np.exp(-np.square((PLACES[:, None] - centres) / 20.0).sum(axis=2) / 2.0)
    root = np.column_stack([networks, 0.25 * np.eye(SIZE)])
    matrix = mean_projector(root, 12, deviation=0.025)
    maps, found, _ = beyond(matrix, 12, deviation=0.025)
    cosines = np.abs(np.corrcoef(networks.T, maps.T)[:12, 12:])
    assert (cosines[:, found].max(axis=1) > 0.7).sum() >= 6


@cache
def noise(kind):
    """Return local noise by kind: it differs at the edge, in front, or from back to front."""
    even, outer = LocalNoise.even(0.0, NEIGHBOURS), RADIUS > 0.75
    ones = np.ones(SIZE)
    front = (PLACES[:, 1] - PLACES[:, 1].min()) / np.ptp(PLACES[:, 1])
    fields = {
        "stronger": (np.where(outer, 2.5, 1.0), ones, 0.0 * ones),
        "wider": (ones, np.where(outer, 1.6, 1.0), 0.0 * ones),
        "symmetric": (ones, ones, np.where(PLACES[:, 1] > 0, 0.9, 0.05)),
        "rising": (1.0 + 2.0 * front, ones, 0.0 * ones),
    }
    return LocalNoise(*fields[kind], even.central)


@pytest.mark.parametrize("length", [15.0, 18.0])
@pytest.mark.parametrize("kind", ["stronger", "wider", "symmetric", "rising"])
def test_noise_that_differs_between_places_has_no_network(kind, length):
    covariance = noise(kind).covariance(PLACES, EVEN, (length, 2))
    values, vectors = np.linalg.eigh(covariance)
    matrix = mean_projector(vectors * np.sqrt(np.maximum(values, 0.0)), 12)
    _, smooth, white = beyond(matrix, 12)
    assert not smooth.any()
    assert white.any()


@pytest.mark.parametrize("kind", ["symmetric", "rising"])
def test_networks_on_noise_that_differs_between_places_are_found_and_the_noise_is_not(kind):
    centres = PLACES[np.random.default_rng(3).permutation(SIZE)[:4]]
    networks = np.exp(-np.square((PLACES[:, None] - centres) / 20.0).sum(axis=2) / 2.0)
    covariance = noise(kind).covariance(PLACES, EVEN, (15.0, 2))
    values, vectors = np.linalg.eigh(covariance / covariance.diagonal().mean())
    root = np.column_stack([networks, 0.35 * vectors * np.sqrt(np.maximum(values, 0.0))])
    maps, found, _ = beyond(mean_projector(root, 12), 12)
    cosines = np.abs(np.corrcoef(networks.T, maps.T)[:4, 4:])[:, found]
    assert cosines.max(axis=1).min() > 0.7
    assert cosines.max(axis=0).min() > 0.5


def test_even_noise_has_the_covariance_of_its_shape():
    shape = SmoothShape(np.diag([0.5, 2.0, 1.0]), 0.6)
    (expected,) = shape.kernels(PLACES, [(20.0, 2)])
    found = LocalNoise.even(0.6, NEIGHBOURS).covariance(PLACES, shape, (20.0, 2))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["stronger", "wider"])
def test_covariances_of_local_noise_have_no_negative_eigenvalue(kind):
    one_sided = LocalNoise(
        noise(kind).strengths, noise(kind).widths, np.zeros(SIZE), NEIGHBOURS.central
    )
    values = np.linalg.eigvalsh(one_sided.covariance(PLACES, EVEN, (15.0, 2)))
    assert values[0] > -1e-9 * values[-1]


def test_adjusted_noise_has_moments_nearer_to_the_released_ones():
    true = noise("stronger").covariance(PLACES, EVEN, (18.0, 2))
    released, fitted = NEIGHBOURS.moments(true), LocalNoise.even(0.0, NEIGHBOURS)
    for _ in range(8):
        own = NEIGHBOURS.moments(fitted.covariance(PLACES, EVEN, (18.0, 2)))
        fitted = fitted.adjusted(released, own)
    ratio = fitted.strengths / noise("stronger").strengths
    assert ratio.std() < 0.02 * ratio.mean()
    assert fitted.symmetry[~NEIGHBOURS.central].max() < 0.3


def test_neighbours_are_the_nearest_places_and_those_of_the_mirror_image():
    apart = np.linalg.norm(PLACES[:, None] - PLACES, axis=2)
    near = np.take_along_axis(apart, NEIGHBOURS.near, axis=1)
    assert (NEIGHBOURS.near != np.arange(SIZE)[:, None]).all()
    assert near.max(axis=1) == pytest.approx(np.sort(apart, axis=1)[:, 6])
    assert PLACES[NEIGHBOURS.opposite[:, 0]] == pytest.approx(PLACES * MIRROR)


def test_moments_of_pure_noise_are_shrunk_to_their_means_and_others_are_kept():
    around = np.full((SIZE, SIZE), 1.0 / SIZE)
    generator = np.random.default_rng(0)
    noisy = 1.0 + 0.1 * generator.standard_normal(SIZE)
    moments = LocalMoments(noisy, noisy, noisy)
    assert Shrinkage.of(moments, around, 1.0)(moments).diagonal == pytest.approx(
        np.full(SIZE, noisy.mean())
    )
    assert Shrinkage.of(moments, around, 0.0)(moments).near == pytest.approx(noisy)
