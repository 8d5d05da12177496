"""Shrinkage of the slopes on covariates: its limit, and the error that remains."""

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.covariate_adjustment import (
    LEAST_KEPT,
    CovariateSums,
    _between_sites,
    adjust,
    left_of_noise,
)

DRAWS = 20_000
RUNS = 400


def adjustment_with(noise):
    """Adjust 100 participants of one site for two declared columns, with noise in G."""
    sums = CovariateSums(
        contrast=np.array([1.0, -1.0]),
        moment=50.0 * np.eye(2),
        means=np.zeros((1, 2)),
        hidden=np.zeros(2, dtype=bool),
        noise={"contrast": noise, "moment": 0.0, "means": 0.0, "column": 0.0},
    )
    return adjust(sums, np.array([100.0]), np.ones(1), 25.0)


def test_slopes_that_are_noise_are_halved_and_others_kept():
    assert adjustment_with(0.0).kept == 1.0
    assert adjustment_with(0.5).kept == pytest.approx(1 - 0.25 * (2 / 50) / (2 / 50))
    hidden = adjustment_with(10.0)
    assert hidden.kept == LEAST_KEPT == 0.5
    assert hidden.slopes == pytest.approx([0.5 / 50, -0.5 / 50])


@pytest.mark.parametrize("columns", [3, 6])
@pytest.mark.parametrize("size", [1.0, 1.5, 2.5])
def test_the_error_of_shrunk_slopes_is_counted_to_nine_tenths_or_more(columns, size):
    """Slopes of ``size`` each, whose noise has variance one, and shrink as in `adjust`."""
    true = np.full(columns, size)
    found = true + np.random.default_rng(0).standard_normal((DRAWS, columns))
    kept = np.maximum(1 - columns / np.square(found).sum(axis=1), LEAST_KEPT)
    error = np.square(kept[:, None] * found - true).mean()
    counted = np.mean([left_of_noise(float(each), columns) for each in kept[:2000]])
    assert counted >= 0.9 * error


def means_of(true, persons, noise, generator):
    """Adjust for one column with given means by site, which are released with noise."""
    released = persons * true + noise * generator.standard_normal(len(true))
    sums = CovariateSums(
        contrast=np.zeros(1),
        moment=np.array([[2 * persons.sum()]]),
        means=released[:, None],
        hidden=np.ones(1, dtype=bool),
        noise={"contrast": 0.0, "moment": 0.0, "means": noise, "column": 0.0},
    )
    return adjust(sums, persons, np.ones(len(persons)), persons.sum() / 4)


def test_sites_whose_noisy_means_agree_by_chance_still_count_as_a_tenth_apart():
    persons = np.full(6, 50.0)
    calm = means_of(np.zeros(6), persons, 1.0, np.random.default_rng(0))
    kept = 0.01 / (0.01 + 1 / 50**2)
    assert calm.offsets == pytest.approx(6 * 50**2 * (1 - kept) * 0.01)


def test_means_that_are_only_noise_are_not_taken_for_far_apart():
    """With noise of ten deviations in means of four sites the centres stay within one."""
    generator = np.random.default_rng(1)
    persons = np.full(4, 20.0)
    found = [means_of(np.zeros(4), persons, 200.0, generator).centres for _ in range(RUNS)]
    assert np.mean(np.square(found)) < 0.15


@pytest.mark.parametrize("variance", [0.2, 0.4])
def test_sites_of_unequal_size_are_weighted_almost_as_well_as_is_possible(variance):
    """The variance of sites' means is estimated from large and small sites together."""
    generator = np.random.default_rng(2)
    persons = np.repeat([10.0, 60.0, 1000.0], [12, 6, 2])
    noise = 12.0
    own = (noise / persons) ** 2
    found = []
    best = []
    for _ in range(4 * RUNS):
        true = np.sqrt(variance) * generator.standard_normal(len(persons))
        raw = true + np.sqrt(own) * generator.standard_normal(len(persons))
        found.append(_between_sites(raw[:, None], own, persons > 0)[0])
        weights = 1 / np.square(variance + own)
        best.append(weights @ (np.square(raw) - own) / weights.sum())
    assert np.var(found) < 1.25 * np.var(best)


def within_of(found, noise):
    """Return N_a/n of a slope whose column has a released sum of squares, 400 participants."""
    persons = np.array([400.0])
    sums = CovariateSums(
        contrast=np.zeros(0),
        moment=np.zeros((0, 0)),
        means=np.zeros((1, 1)),
        hidden=np.zeros(1, dtype=bool),
        noise={"contrast": 0.0, "moment": 0.0, "means": 0.0, "column": 400 * noise},
        column=400 * found,
    )
    return adjust(sums, persons, np.ones(1), 100.0).information / 400


@pytest.mark.parametrize("noise", [0.15, 0.3, 0.6])
def test_the_variance_within_sites_is_estimated_better_than_it_was_released(noise):
    generator = np.random.default_rng(3)
    true = generator.uniform(0.3, 0.9, 20 * RUNS)
    released = true + noise * generator.standard_normal(len(true))
    found = np.array([within_of(each, noise) for each in released])
    best = true.var() / (true.var() + noise**2)
    assert np.square(found - true).mean() < 1.5 * best * noise**2
    assert within_of(0.7, 1e-9) == pytest.approx(0.7)


def test_noise_can_make_no_variance_within_sites_negative():
    assert within_of(-5.0, 0.3) == pytest.approx(0.05)
