"""How alike outcomes are: powers of R, in full and in a smooth basis."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from consortium.algorithms.glm.kernels.outcome_correlation import (
    ROUGH,
    EqualCorrelation,
    SmoothCorrelation,
    smoothed_maps,
)

EDGE = 8.0


def box(side=8):
    return EDGE * np.argwhere(np.ones((side, side, side)))


def test_all_outcomes_are_released_where_any_two_are_as_alike():
    outcome_correlation = EqualCorrelation(5, 0.3)
    values = np.random.default_rng(0).standard_normal((5, 3))
    whole = 0.7 * np.eye(5) + 0.3
    power = np.linalg.eigh(whole)
    root = (power[1] * np.sqrt(power[0])) @ power[1].T
    assert outcome_correlation.decode(outcome_correlation.decode(values)) == pytest.approx(
        root @ values
    )
    assert outcome_correlation.decode(outcome_correlation.encode(values)) == pytest.approx(values)
    assert (
        outcome_correlation.root == outcome_correlation.roots == pytest.approx(np.trace(root) / 5)
    )
    assert np.linalg.norm(
        outcome_correlation.encode(values), 2
    ) <= outcome_correlation.stretch * np.linalg.norm(values, 2)
    assert outcome_correlation.released == 5
    assert outcome_correlation.project(values) is values


def smooth(cutoff=36.0, smoothness=22.0):
    return SmoothCorrelation(box(), smoothness, cutoff)


def test_what_is_told_of_images_are_their_waves_above_the_cutoff():
    outcome_correlation = smooth()
    values = np.random.default_rng(1).standard_normal((512, 4))
    told = outcome_correlation.decode(outcome_correlation.encode(values))
    assert told == pytest.approx(outcome_correlation.project(values), abs=1e-9)
    assert outcome_correlation.project(told) == pytest.approx(told, abs=1e-6)
    assert outcome_correlation.released < 100
    # An orthonormal projection makes no norm larger, and the weights only by what is said.
    assert np.all(np.linalg.norm(told, axis=0) <= np.linalg.norm(values, axis=0) + 1e-9)
    coded = np.linalg.norm(outcome_correlation.encode(values), axis=0)
    assert np.all(
        coded <= outcome_correlation.stretch * np.linalg.norm(values, axis=0) * (1 + 1e-6)
    )


def test_the_noise_that_is_left_in_every_voxel_is_the_one_that_is_said():
    outcome_correlation, generator = smooth(), np.random.default_rng(2)
    noise = outcome_correlation.decode(
        generator.standard_normal((outcome_correlation.released, 4000))
    )
    assert noise.var(axis=1) == pytest.approx(outcome_correlation.roots, rel=0.15)
    assert outcome_correlation.root == pytest.approx(np.mean(outcome_correlation.roots))


def test_smooth_images_have_about_the_variance_and_norm_that_are_expected():
    outcome_correlation, generator = smooth(), np.random.default_rng(3)
    deviation = np.sqrt(2) * outcome_correlation.smoothness / np.sqrt(8 * np.log(2))
    places = box()
    squared = np.square(places[:, None] - places[None]).sum(axis=2)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * squared / deviation**2))
    images = (vectors * np.sqrt(np.maximum(values, 0))) @ generator.standard_normal((512, 400))
    kept = np.square(outcome_correlation.project(images)).sum() / np.square(images).sum()
    assert kept == pytest.approx(outcome_correlation.resolved, abs=0.02 + ROUGH)
    norms = np.square(outcome_correlation.encode(images)).sum(axis=0).mean()
    assert norms == pytest.approx(512 * outcome_correlation.root, rel=0.1)
    assert 0 < outcome_correlation.shared < 0.2


def test_rounding_of_the_voxels_changes_next_to_nothing():
    # Sites work the basis out by themselves, and their sums are added.
    one, other = smooth(), SmoothCorrelation(box() * (1 + 1e-13), 22.0, 36.0)
    values = np.random.default_rng(4).standard_normal((512, 2))
    assert one.encode(values) == pytest.approx(other.encode(values), abs=1e-6)


def test_a_longer_cutoff_keeps_less_of_a_narrow_difference():
    kept = [smooth(cutoff).kept for cutoff in (27.0, 36.0, 50.0)]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > 0.95
    assert kept[2] < 0.8


@pytest.mark.parametrize("turned", [False, True])
def test_maps_are_smoothed_as_by_the_kernel_between_all_places(turned):
    """On a grid along the axes, of which some voxels are missing, and on one that was turned."""
    generator = np.random.default_rng(0)
    places = 4.0 * np.argwhere(generator.random((7, 6, 5)) < 0.7)
    if turned:
        places = places @ np.linalg.qr(generator.standard_normal((3, 3)))[0]
    maps = generator.standard_normal((len(places), 70))
    kernel = np.exp(-0.5 * cdist(places, places, "sqeuclidean") / 9.0**2)
    assert smoothed_maps(places, maps, 9.0) == pytest.approx(kernel @ maps, rel=1e-12, abs=1e-10)
