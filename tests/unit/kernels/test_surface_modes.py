"""Modes of a sphere are those of the textbook, and a basis of them is the same at every party."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.outcome_correlation import FWHM_PER_SIGMA, ROUGH
from consortium.algorithms.glm.kernels.surface_correlation import SurfaceCorrelation
from consortium.kernels import surface_modes as kernel
from consortium.kernels.surface_modes import surface_modes
from tests.support.surfaces import RADIUS, sphere

POINTS, TRIANGLES = sphere(2500)
ALL = np.ones(len(POINTS), dtype=bool)
CORTEX = POINTS[:, 2] < 0.85 * RADIUS
CUTOFF, SMOOTHNESS = 60.0, 30.0


@pytest.fixture(scope="module")
def whole():
    return surface_modes(POINTS, TRIANGLES, ALL, most=120)


@pytest.fixture(scope="module")
def cortex():
    return surface_modes(POINTS, TRIANGLES, CORTEX, most=120)


def correlation_of(*sides):
    return SurfaceCorrelation(sides, SMOOTHNESS, CUTOFF)


def test_modes_of_a_sphere_have_the_eigenvalues_of_spherical_harmonics(whole):
    expected = np.concatenate([[n * (n + 1)] * (2 * n + 1) for n in range(10)]) / RADIUS**2
    assert whole.values[:49] == pytest.approx(expected[:49], rel=0.02, abs=1e-9)
    assert whole.values[:100] == pytest.approx(expected, rel=0.04, abs=1e-9)
    assert whole.area == pytest.approx(4 * np.pi * RADIUS**2, rel=0.003)
    assert whole.below(2 * np.pi * RADIUS / np.sqrt(6.5)) == 9  # of n = 0, 1, 2


def test_modes_are_orthonormal_over_the_area_and_smooth_as_heat_does(whole):
    weight = whole.area / len(POINTS)  # vertices are spread evenly
    assert weight * whole.vectors.T @ whole.vectors == pytest.approx(np.eye(120), abs=0.02)
    weights, total = whole.heat(15.0**2)
    assert total == pytest.approx(whole.area / (4 * np.pi * 15.0**2), rel=0.05)
    kernel = whole.vectors * weights @ whole.vectors[0]
    angle = np.arccos(np.clip(POINTS @ POINTS[0] / RADIUS**2, -1, 1))
    near = RADIUS * angle < 40
    flat = np.exp(-0.5 * (RADIUS * angle[near]) ** 2 / (2 * 15.0**2))
    assert kernel[near] / kernel[0] == pytest.approx(flat, abs=0.05)


def test_a_medial_wall_has_no_values_and_anchors_lie_apart_on_the_cortex(cortex):
    assert cortex.vectors.shape == (np.count_nonzero(CORTEX), 120)
    assert cortex.values[0] == pytest.approx(0, abs=1e-9)
    assert np.ptp(cortex.vectors[:, 0]) < 1e-9
    own = POINTS[CORTEX][cortex.anchors]
    apart = np.linalg.norm(own[:, None] - own[None], axis=2) + 1e3 * np.eye(120)
    assert apart.min() > 0.5 * np.sqrt(cortex.area / 120)
    again = surface_modes(POINTS, TRIANGLES, CORTEX, most=60)
    assert np.array_equal(again.anchors, cortex.anchors[:60])


def turned(modes, generator):
    """What another computer may find: other vectors of the same space, with other signs."""
    d = modes.below(CUTOFF)
    vectors = modes.vectors.copy()
    for n in range(20):
        own = slice(n * n, min((n + 1) ** 2, d))
        many = len(range(*own.indices(d)))
        if many:
            vectors[:, own] = vectors[:, own] @ np.linalg.qr(generator.normal(size=(many, many)))[0]
    return replace(modes, vectors=vectors)


def test_coefficients_do_not_depend_on_which_modes_a_computer_finds(whole, cortex):
    """But for eigenvalues that are equal, which on a sphere they only nearly are."""
    generator = np.random.default_rng(0)
    levels = np.repeat(np.arange(20), 2 * np.arange(20) + 1)[: len(whole.values)]
    exact = replace(whole, values=levels * (levels + 1) / RADIUS**2)
    u = generator.standard_normal((len(POINTS), 3))
    one, other = correlation_of(exact), correlation_of(turned(exact, generator))
    assert other.encode(u) == pytest.approx(one.encode(u), abs=1e-8)
    signs = replace(cortex, vectors=cortex.vectors * generator.choice([-1.0, 1.0], 120))
    u = u[: len(cortex.vectors)]
    assert correlation_of(signs).encode(u) == pytest.approx(
        correlation_of(cortex).encode(u), abs=1e-9
    )


@pytest.mark.parametrize("own", [ALL, CORTEX], ids=["symmetric", "cortex"])
def test_fields_that_are_drawn_of_modes_do_not_depend_on_the_signs_that_are_found(own, monkeypatch):
    """Which differ between one thread and two: made-up persons were others then."""
    once, true, generator = surface_modes(POINTS, TRIANGLES, own, most=60), kernel.eigsh, np.random

    def found(*args, **given):
        values, vectors = true(*args, **given)
        return values, vectors * generator.default_rng(0).choice([-1.0, 1.0], len(values))

    monkeypatch.setattr(kernel, "eigsh", found)
    again = surface_modes(POINTS, TRIANGLES, own, most=60)
    draws = generator.default_rng(1).standard_normal((60, 3))
    assert again.vectors @ draws == pytest.approx(once.vectors @ draws, rel=1e-12, abs=1e-12)


def test_it_is_what_its_parts_are_of_one_matrix(whole, cortex):
    smooth, generator = correlation_of(whole, cortex), np.random.default_rng(1)
    encoder = smooth.encode(np.eye(smooth.entries))
    decoder = smooth.decode(np.eye(smooth.released))
    root = decoder @ decoder.T
    assert smooth.released == whole.below(CUTOFF) + cortex.below(CUTOFF) == len(smooth.spectrum)
    assert np.trace(root) / smooth.entries == pytest.approx(smooth.root)
    assert np.diag(root) == pytest.approx(smooth.roots)
    assert root.mean() == pytest.approx(smooth.common)
    assert np.linalg.norm(encoder, 2) == pytest.approx(smooth.stretch)
    half, norm = np.linalg.eigvalsh(decoder.T @ decoder), np.trace(root)
    assert norm**2 / np.square(half).sum() == pytest.approx(smooth.freedom)
    assert half.max() / norm == pytest.approx(smooth.shared)
    images = generator.standard_normal((smooth.entries, 2))
    assert smooth.decode(smooth.encode(images)) == pytest.approx(smooth.project(images))
    assert smooth.project(smooth.project(images)) == pytest.approx(smooth.project(images))


def test_it_is_the_covariance_of_noise_that_spread_as_heat(whole):
    """White noise smoothed on the sphere, in the basis: its covariance, and how much of it."""
    smooth, generator = correlation_of(whole), np.random.default_rng(2)
    all_modes = surface_modes(POINTS, TRIANGLES, ALL, most=300)
    weights, _ = all_modes.heat((SMOOTHNESS / FWHM_PER_SIGMA) ** 2)
    fields = all_modes.vectors @ (np.sqrt(weights)[:, None] * generator.normal(size=(300, 6000)))
    fields /= fields.std()
    kept = np.square(smooth.project(fields)).sum() / np.square(fields).sum()
    assert smooth.resolved == pytest.approx(kept, abs=0.02)
    assert smooth.kept == pytest.approx(kept, abs=0.02)
    white = smooth.encode(smooth.decode(smooth.encode(fields)))  # R^-¼ of what has covariance R
    spread = np.linalg.eigvalsh(np.cov(white))
    expected = np.sort(np.sqrt(smooth.spectrum))
    large = expected > 4 * np.sqrt(ROUGH)
    assert spread[large] == pytest.approx(expected[large], rel=0.12)
