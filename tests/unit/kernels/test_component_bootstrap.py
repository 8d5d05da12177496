"""Directions that stand out of noise, and how sure a component is by doing it all again."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.group_ica.kernels.network_nulls import contrast_of_chance
from consortium.algorithms.group_ica.kernels.open_posterior import EntryErrors
from consortium.kernels.component_bootstrap import find_directions, find_networks
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.projector_forecast import STRENGTHS, expected_cosines
from consortium.kernels.separations import FastIca, Varimax

SIZE = 120


def sparse_directions(count, seed=0):
    """Orthonormal columns that share no entry, as networks share no voxel."""
    generator = np.random.default_rng(seed)
    vectors = np.zeros((SIZE, count))
    for number in range(count):
        part = slice(number * SIZE // count, number * SIZE // count + 12)
        vectors[part, number] = generator.uniform(0.5, 1.0, 12)
    return vectors / np.linalg.norm(vectors, axis=0)


def plain(weights):
    return weights


def noisy(strengths, deviation, seed):
    vectors, law = sparse_directions(len(strengths)), SymmetricNoise(SIZE, deviation)
    truth = (vectors * strengths) @ vectors.T + 0.05 * np.eye(SIZE)
    return vectors, truth + law.draw(np.random.default_rng(seed)), law


def test_noise_alone_has_no_direction():
    law = SymmetricNoise(SIZE, 0.05)
    generator = np.random.default_rng(0)
    found = [find_directions(law.draw(generator), law, 10).count for _ in range(100)]
    assert sum(count > 0 for count in found) <= 5


def test_strong_directions_stand_out_and_no_more_than_asked():
    vectors, matrix, law = noisy(np.array([0.9, 0.8, 0.7]), 0.02, 1)
    found = find_directions(matrix, law, 10)
    assert found.count == 3
    assert found.bulk == pytest.approx(0.05, abs=0.02)
    assert found.strengths == pytest.approx([0.9, 0.8, 0.7], abs=0.05)
    assert np.linalg.norm(vectors.T @ found.vectors, axis=0).min() > 0.95
    assert find_directions(matrix, law, 2).count == 2


def test_a_direction_that_chance_has_lifted_is_not_taken_at_its_word():
    # Ten equally strong directions at which noise begins to hide: chance says which stand out, and
    # they are mixtures of those that don't.
    agreed, told, promised = [], [], []
    for seed in range(40):
        vectors, matrix, law = noisy(np.full(10, 0.5), 0.062, seed)
        found = find_directions(matrix, law, 10)
        agreed += [*np.square(vectors.T @ found.vectors).max(axis=0)]
        told += [*law.overlaps(found.strengths)]
        promised += [*law.overlaps(law.freed(found.eigenvalues[: found.count] - found.bulk))]
    assert len(told) > 20
    assert np.mean(agreed) < np.mean(told) < np.mean(promised) - 0.1


def test_a_bulk_that_is_wider_than_noise_raises_the_limit():
    # Persons without anything in common, but with directions of unequal strength.
    wide = np.diag(np.random.default_rng(2).uniform(0.0, 0.3, SIZE))
    assert find_directions(wide, SymmetricNoise(SIZE, 1e-4), 10).count == 0


def test_components_of_smooth_noise_are_told_as_chance():
    # Their replays agree as well as those of networks: nothing but their shape tells.
    generator = np.random.default_rng(5)
    places = np.linspace(0.0, 1.0, SIZE)
    smooth = np.exp(-0.5 * np.square((places[:, None] - places) / 0.02))
    vectors = np.linalg.qr(smooth @ generator.standard_normal((SIZE, 4)))[0]
    own = smooth @ smooth.T
    matrix = 0.9 * vectors @ vectors.T + 0.1 * own / np.linalg.norm(own, 2)
    directions = find_directions(matrix, SymmetricNoise(SIZE, 1e-3), 4)
    found = find_networks(directions, FastIca(plain, 3), 10, generator)
    assert found.replay_correlations.min() > 0.9
    assert found.contrast.max() <= contrast_of_chance(directions, plain, 4, generator)


@pytest.mark.parametrize("way", [FastIca(plain, 3), Varimax(plain)])
def test_expected_correlations_and_errors_are_those_of_repeated_releases(way):
    strengths = np.array([0.9, 0.8, 0.7, 0.6])
    vectors = sparse_directions(4)
    for deviation in (0.01, 0.025):
        told, true, errors, maps = [], [], [], []
        for seed in range(6):
            _, matrix, law = noisy(strengths, deviation, seed)
            found = find_networks(
                find_directions(matrix, law, 4), way, 20, np.random.default_rng(seed)
            )
            values = found.weights - found.weights.mean(axis=0)
            cosines = np.corrcoef(vectors.T, values.T)[:4, 4:]
            order = np.abs(cosines).argmax(axis=1)
            told.append(found.replay_correlations[order])
            true.append(np.abs(cosines)[np.arange(4), order])
            maps.append(values[:, order])
            errors.append(found.errors(plain, plain)[:, order])
        assert np.mean(told) == pytest.approx(np.mean(true), abs=0.04)
        # A replay may end in another optimum; the median voxel is not told by these.
        assert np.median(errors) == pytest.approx(np.median(np.std(maps, axis=0, ddof=1)), rel=0.25)


def test_maps_are_surest_first_and_their_larger_tail_is_positive():
    _, matrix, law = noisy(np.array([0.9, 0.6, 0.3]), 0.012, 3)
    found = find_networks(
        find_directions(matrix, law, 3), Varimax(plain), 10, np.random.default_rng(0)
    )
    assert (np.diff(found.replay_correlations) <= 0).all()
    assert (np.mean((found.weights - found.weights.mean(axis=0)) ** 3, axis=0) > 0).all()


def test_a_replay_has_the_errors_of_each_entry():
    strengths = np.array([0.9, 0.6, 0.3])
    _, matrix, law = noisy(strengths, 0.001, 4)
    found = find_directions(matrix, law, 3)
    vectors = np.hstack([found.vectors, np.linalg.svd(found.rest, full_matrices=False)[0]])
    deviations = np.zeros(matrix.shape)
    deviations[1, 3:] = deviations[3:, 1] = 0.02
    errors = EntryErrors(vectors, deviations)
    again = replace(found, whole=(matrix, errors.draw)).again(np.random.default_rng(5))
    apart = 1.0 - np.abs(np.einsum("dr,dr->r", found.vectors, again[0]))
    assert apart[1] > 0.01
    assert apart[[0, 2]].max() < 0.001
    assert again[1] == pytest.approx(found.excess, abs=0.1)


def test_a_forecast_s_cosines_are_found():
    count, deviation, generator = 6, 0.02, np.random.default_rng(4)
    expected, law = expected_cosines(count, SIZE, deviation), SymmetricNoise(SIZE, deviation)
    strengths = np.linspace(*STRENGTHS, count) - count / SIZE
    truth, overlaps = np.eye(SIZE)[:, :count], []
    for _ in range(20):
        _, vectors = np.linalg.eigh((truth * strengths) @ truth.T + law.draw(generator))
        overlaps.append(np.square(vectors[:count, ::-1][:, :count]).sum(axis=0))
    assert expected**2 == pytest.approx(np.mean(overlaps, axis=0), abs=0.12)
    assert (np.diff(expected) < 0).all()
    assert not expected_cosines(count, SIZE, 1.0).any()
