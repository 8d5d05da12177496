"""The smooth basis: orthonormal, unique, and the same function on any voxels."""

import numpy as np
import pytest

from consortium.errors import StudyError
from consortium.kernels.projector_forecast import MapExtent, best_cutoff
from consortium.kernels.smooth_basis import SmoothBasis


def ball(edge, radius=40.0):
    steps = np.arange(-radius, radius + edge / 2, edge)
    places = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    return places[np.linalg.norm(places, axis=1) <= radius]


def spot(places, width, centre=(8.0, -5.0, 10.0)):
    return np.exp(-0.5 * np.sum((places - np.array(centre)) ** 2, axis=1) / width**2)


def test_maps_are_orthonormal():
    basis = SmoothBasis(ball(5.0), 25.0)
    assert basis.matrix.T @ basis.matrix == pytest.approx(np.eye(basis.size), abs=1e-6)


def test_a_map_is_the_same_function_on_finer_voxels():
    basis = SmoothBasis(ball(5.0), 25.0)
    weights = np.random.default_rng(0).standard_normal((basis.size, 2))
    some = basis.coordinates[::7]
    assert basis.evaluate(weights, some) == pytest.approx((basis.matrix @ weights)[::7], abs=1e-9)
    assert basis.evaluate(weights, ball(3.0)).shape == (len(ball(3.0)), 2)


def test_a_painter_gives_the_very_values_and_makes_its_blobs_once(monkeypatch):
    basis = SmoothBasis(ball(5.0), 25.0)
    weights = np.random.default_rng(0).standard_normal((basis.size, 3))
    expected = basis.times(weights), basis.evaluate(weights, ball(3.0))
    made = []
    true = SmoothBasis._blobs
    monkeypatch.setattr(SmoothBasis, "_blobs", lambda *a: made.append(a) or true(*a))
    for painter, values in zip((basis.times, basis.painter(ball(3.0))), expected, strict=True):
        for _ in range(2):
            np.testing.assert_array_equal(painter(weights), values)
    assert (
        len(made) == 1
    )  # of the finer voxels: those of its own are kept since they were asked for


@pytest.mark.parametrize("far", [1e4, 1e9, 1e300, np.inf])
def test_a_voxel_far_away_is_refused_before_a_lattice_is_made(far):
    basis = SmoothBasis(np.vstack([ball(5.0), [[far] * 3]]), 25.0)
    with np.errstate(all="ignore"), pytest.raises(StudyError, match="too short for the extent"):
        basis.size  # noqa: B018


def test_more_maps_than_fit_into_memory_are_counted_and_not_made():
    places = np.argwhere(np.ones((30, 30, 30))).astype(np.float64)
    basis = SmoothBasis(places, 2.5)
    assert basis.size > 10_000  # whose Gram matrix has a gigabyte
    with pytest.raises(StudyError, match=f"smooth maps, got {basis.size:,}"):
        basis.matrix  # noqa: B018


def test_rounding_of_the_voxels_changes_next_to_nothing():
    # Unlike eigenvectors of a symmetric brain, which may turn into each other.
    places = ball(6.0)
    one = SmoothBasis(places, 30.0).matrix
    other = SmoothBasis(places * (1 + 1e-13), 30.0).matrix
    assert one == pytest.approx(other, abs=1e-7)


def test_it_keeps_what_is_smooth_and_loses_what_is_not():
    places = ball(5.0)
    basis = SmoothBasis(places, 30.0).matrix
    for width, low, high in ((12.0, 0.98, 1.0), (9.0, 0.93, 0.995), (3.0, 0.0, 0.6)):
        values = spot(places, width)
        kept = np.linalg.norm(basis.T @ values) / np.linalg.norm(values)
        assert low < kept <= high, width


def test_the_number_of_maps_is_about_what_is_foretold():
    places = ball(5.0)
    for cutoff in (22.0, 30.0, 45.0):
        room = MapExtent(125.0 * len(places))
        assert SmoothBasis(places, cutoff).size == pytest.approx(room.size(cutoff), rel=0.3)
        assert room.cutoff(room.size(cutoff)) == pytest.approx(cutoff)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_what_is_resolved_falls_with_the_cutoff(dimensions):
    room = MapExtent(1.9e6, dimensions)
    found = [room.resolved(cutoff) for cutoff in (10.0, 25.0, 32.0, 41.0, 80.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.999


def test_more_noise_asks_for_a_coarser_basis():
    cutoffs = np.arange(20.0, 60.0, 0.5)
    chosen = [
        best_cutoff(cutoffs, MapExtent(1.9e6), 14, deviation)
        for deviation in (0.0, 0.01, 0.02, 0.04)
    ]
    assert chosen[0] == 20.0
    assert chosen == sorted(chosen)
    assert chosen[-1] > 35.0


def test_products_with_few_maps_are_those_of_the_matrix():
    basis, draws = SmoothBasis(ball(6.0), 30.0), np.random.default_rng(1)
    weights = draws.standard_normal((basis.size, 3))
    values = draws.standard_normal((len(basis.coordinates), 3))
    assert basis.times(weights) == pytest.approx(basis.matrix @ weights, abs=1e-9)
    assert basis.coefficients(values) == pytest.approx(basis.matrix.T @ values, abs=1e-9)


def test_who_paints_again_and_again_asks_once_where_the_blobs_are(monkeypatch):
    basis, asked, true = SmoothBasis(ball(6.0), 30.0), [], SmoothBasis._blobs
    weights = np.eye(basis.size)
    expected = [basis.evaluate(weights[:, k : k + 2], basis.coordinates) for k in range(3)]
    monkeypatch.setattr(SmoothBasis, "_blobs", lambda *given: asked.append(1) or true(*given))
    for k in range(3):
        np.testing.assert_array_equal(basis.times(weights[:, k : k + 2]), expected[k])
    assert len(asked) == 1
