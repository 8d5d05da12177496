"""Mean embeddings: the kernel, the unbiased distance, the mixture, the chosen points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from consortium.algorithms.summarize.kernels.mean_embedding import (
    choose_points,
    contrast_deviation,
    draw_frequencies,
    fourier_features,
    gram,
    mixture_weights,
    null_floors,
)

SEEDS = st.integers(0, 2**32 - 1)


def test_features_have_norm_one_and_make_the_kernel():
    generator = np.random.default_rng(0)
    frequencies = draw_frequencies(3, 40_000, 0.8, generator)
    table = generator.uniform(-1, 1, (3, 6))
    features = fourier_features(table, frequencies)
    squares = ((table[:, :, None] - table[:, None]) ** 2).sum(axis=0)
    assert np.linalg.norm(features, axis=0) == pytest.approx(np.ones(6))
    assert features.T @ features == pytest.approx(np.exp(-squares / (2 * 0.8**2)), abs=0.02)


def test_the_kernel_as_scikit_learn_has_it():
    sampler = pytest.importorskip("sklearn.metrics.pairwise")
    generator = np.random.default_rng(1)
    table = generator.uniform(-1, 1, (2, 5))
    features = fourier_features(table, draw_frequencies(2, 40_000, 0.5, generator))
    expected = sampler.rbf_kernel(table.T, gamma=1 / (2 * 0.5**2))
    assert features.T @ features == pytest.approx(expected, abs=0.02)


def unbiased_distance(one, other):
    """Lemma 6 of Gretton et al. for features in columns."""

    def pairs(columns):
        kernel, n = columns.T @ columns, columns.shape[1]
        return (kernel.sum() - np.trace(kernel)) / (n * (n - 1))

    return pairs(one) + pairs(other) - 2 * float((one.T @ other).mean())


@given(SEEDS)
def test_without_noise_the_distance_is_the_unbiased_statistic(seed):
    generator = np.random.default_rng(seed)
    frequencies = draw_frequencies(2, 7, 0.5, generator)
    sizes = generator.integers(2, 9, 2)
    columns = [fourier_features(generator.uniform(-1, 1, (2, n)), frequencies) for n in sizes]
    rows = np.stack([each.mean(axis=1) for each in columns])
    products = gram(rows, np.zeros(2), sizes.astype(float))
    contrast = np.array([1.0, -1.0])
    assert contrast @ products @ contrast == pytest.approx(unbiased_distance(*columns))


def noisy_distances(shift, *, repeats=400, deviation=0.03):
    """Estimates and promised deviations over fresh persons and fresh noise."""
    generator = np.random.default_rng(2)
    frequencies = draw_frequencies(2, 25, 0.7, generator)
    sizes, contrast = np.array([60.0, 90.0]), np.array([1.0, -1.0])
    # Of a normal distribution: the features of its mean, less the more a phase varies.
    less = np.tile(np.exp(-(0.4**2) * np.square(frequencies).sum(axis=0) / 2), 2)
    far, near = (less * fourier_features(np.full((2, 1), x), frequencies)[:, 0] for x in (shift, 0))
    truth, found, promised = float(np.sum((far - near) ** 2)), [], []
    deviations = np.full(2, deviation)
    for _ in range(repeats):
        rows = [
            fourier_features(generator.normal(centre, 0.4, (2, int(n))), frequencies).mean(axis=1)
            for centre, n in ((shift, sizes[0]), (0.0, sizes[1]))
        ]
        noisy = np.stack(rows) + deviation * generator.standard_normal((2, 50))
        products = gram(noisy, deviations, sizes)
        found.append(contrast @ products @ contrast)
        promised.append(contrast_deviation(contrast, truth, products, deviations, sizes, 50))
    return truth, np.array(found), float(np.mean(promised))


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_noisy_distance_is_unbiased_and_its_deviation_enough(shift):
    truth, found, promised = noisy_distances(shift)
    error = found.std() / np.sqrt(len(found))
    assert found.mean() == pytest.approx(truth, abs=4 * error)
    assert found.std() <= promised * 1.1
    assert found.std() >= promised / 2.5  # an upper bound, but no empty one


def test_the_plain_distance_would_be_biased():
    # The falsifier: noise and chance alone look like a distance.
    generator = np.random.default_rng(3)
    rows = 0.03 * generator.standard_normal((2, 50))
    assert np.sum((rows[0] - rows[1]) ** 2) > 0.04


def test_the_mixture_is_found_and_agrees_with_a_general_optimizer():
    generator = np.random.default_rng(4)
    rows = generator.standard_normal((5, 12))
    rows[2] = 0.6 * rows[0] + 0.4 * rows[4]
    assert mixture_weights(rows, 2) == pytest.approx([0.6, 0, 0, 0, 0.4], abs=1e-6)
    noisy = rows + 0.5 * generator.standard_normal(rows.shape)

    def distance(free):
        return float(np.sum((np.insert(free, 2, -1.0) @ noisy) ** 2))

    reference = minimize(
        distance,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
    )
    found = np.delete(mixture_weights(noisy, 2), 2)
    assert distance(found) <= reference.fun * (1 + 1e-6)


def test_sites_that_differ_by_noise_alone_share_the_weight():
    generator = np.random.default_rng(6)
    rows = 0.5 + np.array([0.1, 0.1, 0.1, 0.4])[:, None] * generator.standard_normal((4, 2_000))
    weights = mixture_weights(rows, 0)
    assert weights[1:3] == pytest.approx(np.full(2, 16 / 33), abs=0.05)  # as 1/variance
    assert weights[3] < 0.08


def test_chosen_points_have_the_embedding_better_than_as_many_persons():
    generator = np.random.default_rng(5)
    frequencies = draw_frequencies(2, 60, 0.5, generator)
    table = np.clip(generator.normal([[0.4], [-0.3]], 0.3, (2, 20_000)), -1, 1)
    features = fourier_features(table, frequencies)
    mean = features.mean(axis=1)
    points = choose_points(mean, frequencies, 12, generator)
    assert np.abs(points).max() <= 1
    summary = np.sum((fourier_features(points, frequencies).mean(axis=1) - mean) ** 2)
    drawn = [
        np.sum((features[:, generator.integers(20_000, size=12)].mean(axis=1) - mean) ** 2)
        for _ in range(50)
    ]
    assert summary < 0.5 * np.median(drawn)


def test_a_person_whose_phase_is_no_number_counts_as_zero():
    table = np.array([[0.0, np.nan, 1e308]])
    features = fourier_features(table, np.array([[1e308]]))
    assert features == pytest.approx(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))


@pytest.mark.parametrize("entries", [3, 40])
def test_a_study_of_sites_that_are_alike_is_above_its_floors_in_one_of_twenty(entries):
    sizes = np.array([30.0, 60.0, 200.0, 20.0])
    deviations, chance = 5.0 / sizes, 0.6 / sizes
    contrasts = np.eye(4)[1:] - np.eye(4)[0]
    floors = null_floors(
        contrasts, deviations, chance, sizes, entries, 0.05, np.random.default_rng(0)
    )
    generator, above, studies = np.random.default_rng(1), 0, 4000
    for _ in range(studies):
        rows = deviations[:, None] * generator.standard_normal((4, entries))
        rows[:, 0] += np.sqrt(chance) * generator.standard_normal(4)
        rows[:, -1] += np.sqrt(0.4)  # the mean that all have in common: 1 - 0.6 is its square
        products = gram(rows, deviations, sizes)
        values = np.einsum("rs,st,rt->r", contrasts, products, contrasts)
        above += bool((values > floors).any())
    assert above / studies == pytest.approx(0.05, abs=0.013)


def test_another_seed_leaves_the_floors_where_they_are():
    sizes = np.full(4, 200.0)
    floors = [
        null_floors(
            np.eye(4)[1:] - np.eye(4)[0],
            *(8.0 / sizes, 0.6 / sizes, sizes, 100, 0.05),
            np.random.default_rng(seed),
        )
        for seed in range(4)
    ]
    assert np.ptp(floors, axis=0) == pytest.approx(np.zeros(3), abs=0.04 * np.mean(floors))
