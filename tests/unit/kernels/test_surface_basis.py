"""The smooth basis of both hemispheres: orthonormal, local, the same whatever modes are found."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.errors import StudyError
from consortium.kernels.projector_forecast import MapExtent
from consortium.kernels.surface_basis import SurfaceBasis
from consortium.kernels.surface_modes import surface_modes
from tests.support.surfaces import RADIUS, sphere

POINTS, TRIANGLES = sphere(700)
CORTEX = POINTS[:, 2] < 50
MODES = tuple(surface_modes(POINTS, TRIANGLES, own, most=150) for own in (CORTEX, CORTEX | ~CORTEX))
COORDINATES = np.concatenate([POINTS[CORTEX], POINTS + np.array([200.0, 0, 0])])


def basis(cutoff=60.0, modes=MODES):
    return SurfaceBasis(COORDINATES, modes, cutoff)


def test_maps_are_orthonormal_and_each_lies_on_one_hemisphere():
    found, left = basis(), int(CORTEX.sum())
    assert found.matrix.shape == (left + len(POINTS), found.size)
    np.testing.assert_allclose(found.matrix.T @ found.matrix, np.eye(found.size), atol=1e-10)
    assert not found.matrix[left:, : found.sizes[0]].any()
    assert not found.matrix[:left, found.sizes[0] :].any()


def test_each_map_is_largest_near_its_centre():
    found = basis()
    tops = COORDINATES[np.abs(found.matrix).argmax(axis=0)]
    away = np.linalg.norm(tops - found.centres, axis=1)
    assert np.median(away) < 12.0


def test_signs_and_turns_of_equal_modes_change_nothing():
    generator = np.random.default_rng(0)
    turned = []
    for side in MODES:
        vectors = side.vectors * generator.choice([-1.0, 1.0], side.vectors.shape[1])
        mixed, _ = np.linalg.qr(generator.standard_normal((2, 2)))
        vectors[:, 1:3] = vectors[:, 1:3] @ mixed  # of the three of one length
        turned.append(replace(side, vectors=vectors))
    np.testing.assert_allclose(basis(modes=tuple(turned)).matrix, basis().matrix, atol=1e-8)


def test_the_number_of_maps_is_about_what_is_foretold():
    area = sum(side.area for side in MODES)
    assert area == pytest.approx(2 * 4 * np.pi * RADIUS**2, rel=0.1)
    for cutoff in (50.0, 70.0):
        assert basis(cutoff).size == pytest.approx(MapExtent(area, 2).size(cutoff), rel=0.2)


def test_waves_longer_than_a_hemisphere_are_refused():
    with pytest.raises(StudyError, match="shorter than a hemisphere"):
        _ = basis(1e9).matrix
