"""What clipping takes of long tails, from sums that know no outcome's share in either group."""

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.lost_tails import (
    TailSums,
    lost_tails,
    no_tails,
    tail_loss_of_groups,
    tail_losses_of_others,
)
from consortium.algorithms.glm.kernels.outcome_correlation import EqualCorrelation

PERSONS, OUTCOMES, CLIP = 60_000, 12, 5.0
QUIET = {"lost": 1e-6, "tail": 1e-6, "lean": 1e-6}
ALIKE = EqualCorrelation(OUTCOMES, 0.0)


def study(ratio, sides):
    """Sums of a study without effects, with sites' levels, and what clipping took of T in truth."""
    generator = np.random.default_rng(0)
    group = generator.random(PERSONS) < 0.4
    values = np.exp(0.8 * generator.standard_normal((OUTCOMES, PERSONS)))
    values = sides[:, None] * (values - np.exp(0.32)) / values.std() * np.where(group, ratio, 1.0)
    values += 0.6 * generator.standard_normal((OUTCOMES, PERSONS))  # sites and covariates
    values /= values.std()
    sizes, weights = np.linalg.norm(values, axis=0), group - 0.4
    lost = (1 - np.minimum(1.0, CLIP / sizes)) * values
    lean = weights @ np.log(np.square(sizes) / OUTCOMES).clip(-2, 2)
    sums = TailSums(lost.sum(axis=1), float(lost.mean(axis=0).sum()), np.array([lean]), QUIET)
    return sums, lost @ weights


def found(sums):
    return lost_tails(sums, ALIKE, PERSONS, [tail_loss_of_groups(PERSONS, 0.24 * PERSONS, 0.4)])


@pytest.mark.parametrize("sides", [np.ones(OUTCOMES), np.where(np.arange(OUTCOMES) % 3, 1.0, -1.0)])
@pytest.mark.parametrize("ratio", [0.7, 1.5, 2.0])
def test_what_is_taken_of_a_group_that_varies_more_is_found_to_either_side(ratio, sides):
    sums, truth = study(ratio, sides)
    told = found(sums)
    off = np.abs(told.shift[0] - truth)
    assert np.median(off / np.abs(truth)) < 0.4
    assert (off < 2.5 * np.sqrt(told.variance()[0])).all()
    means = np.full((1, OUTCOMES), 1 / OUTCOMES)
    assert abs(means[0] @ (told.shift[0] - truth)) < 2.5 * np.sqrt(told.variance(means)[0, 0])


def test_groups_that_vary_alike_lose_alike():
    sums, truth = study(1.0, np.ones(OUTCOMES))
    lost = sums.lost.mean()
    assert np.abs(found(sums).shift).max() < 0.05 * lost
    assert np.abs(truth).max() < 0.1 * lost


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1e6, 1e300])
def test_sums_of_any_size_leave_numbers(size):
    sums = TailSums(np.full(OUTCOMES, size), -size, np.array([size]), QUIET)
    told = found(sums)
    assert np.isfinite(told.theta).all()
    assert np.isfinite(told.shift).all()


def test_noise_alone_takes_nothing_and_leaves_no_doubt_beyond_itself():
    generator, moved = np.random.default_rng(1), []
    noise = {"lost": 900.0, "tail": 300.0, "lean": 50.0}
    for _ in range(200):
        sums = TailSums(
            900 * generator.standard_normal(OUTCOMES),
            300 * generator.standard_normal(),
            50 * generator.standard_normal(1),
            noise,
        )
        told = found(sums)
        moved.append(np.mean(np.square(told.shift)) / np.square(900))
    assert np.mean(moved) < 0.001
    assert not no_tails(OUTCOMES, 1).variance().any()


def test_a_chance_difference_of_norms_counts_in_the_variance_of_what_is_taken():
    """Groups that vary alike have θ = 0; logarithms of norms have standard deviation 0.8."""
    persons = 400
    generator = np.random.default_rng(1)
    squares, stated = [], []
    for _ in range(400):
        weights = (generator.random(persons) < 0.4) - 0.4
        lean = weights @ (0.8 * generator.standard_normal(persons))
        sums = TailSums(np.ones(OUTCOMES), 1.0, np.array([lean]), QUIET)
        told = lost_tails(sums, ALIKE, persons, [tail_loss_of_groups(persons, 0.24 * persons, 0.4)])
        squares.append(told.theta[0] ** 2)
        stated.append(told.theta_variance[0])
    assert np.mean(squares) <= np.mean(stated)


@pytest.mark.parametrize("change", [0.1, 0.3])
def test_a_variance_that_grows_with_the_weight_counts_in_the_sampling_variance(change):
    """A quarter of the squared norms is of sites' levels, which do not grow."""
    weights = np.random.default_rng(2).standard_normal(PERSONS)
    variances = np.exp(change / 0.75 * weights)
    measured = np.square(weights) @ variances / variances.sum() - 1
    lean = change * PERSONS
    sums = TailSums(np.ones(OUTCOMES), 1.0, np.array([lean, lean]), QUIET)
    others = tail_losses_of_others(PERSONS, np.array([float(PERSONS)]))
    leans = [tail_loss_of_groups(PERSONS, 0.24 * PERSONS, 0.4), *others]
    assert lost_tails(sums, ALIKE, PERSONS, leans).uneven[1] >= measured
