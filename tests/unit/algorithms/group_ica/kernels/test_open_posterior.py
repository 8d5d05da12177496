"""The estimate by an open cohort and a release, and the test that confirms a map."""

import numpy as np
import pytest

from consortium.algorithms.group_ica.kernels.open_posterior import (
    UNLIKE,
    EntryErrors,
    OpenMean,
    OwnMean,
    Strengths,
    add_own,
    combine,
    draw_like,
    measure_strengths,
)
from consortium.algorithms.group_ica.kernels.smooth_null import SmoothNull
from consortium.kernels.noise_law import SymmetricNoise
from tests.unit.algorithms.test_group_ica import make_brains
from tests.unit.algorithms.test_group_ica_open import KEPT, open_cohort


@pytest.fixture(scope="module")
def cohort():
    return open_cohort()


@pytest.fixture(scope="module")
def mean(cohort):
    return OpenMean.of(cohort.values)


def error(matrix, truth):
    return float(np.sum((matrix - truth) ** 2))


@pytest.mark.parametrize("deviation", [0.002, 0.02, 0.2])
def test_the_combination_is_no_worse_than_the_better_source(mean, deviation):
    generator = np.random.default_rng(1)
    truth = OpenMean.of(open_cohort(blocks=_other_blocks()).values).matrix
    noise = SymmetricNoise(len(truth), deviation)
    release = truth + noise.draw(generator)
    both = combine(mean, release, deviation, 1000, generator)
    best = min(error(mean.matrix, truth), error(release, truth))
    assert error(both.matrix, truth) < 1.1 * best
    assert both.between < UNLIKE


def _other_blocks():
    made = make_brains(15, seed=21)
    return [block for site in made for block in site.blocks()]


def test_the_release_has_all_weight_without_noise_and_none_under_much(mean):
    generator = np.random.default_rng(2)
    exact = combine(mean, draw_like(mean, 0.0, 10**6, generator), 0.0, 10**6, generator)
    blind = combine(mean, draw_like(mean, 2.0, 100, generator), 2.0, 100, generator)
    assert exact.release_weight > 0.9
    assert blind.release_weight < 0.01
    assert exact.persons > blind.persons


def test_the_standard_error_of_a_strength_is_that_of_draws(mean):
    deviation, persons = 0.05, 200
    weights = np.linalg.eigh(mean.matrix)[1][:, -KEPT:]
    size = len(mean.matrix)
    null = SmoothNull(np.eye(size), np.zeros(size), np.zeros(size), SymmetricNoise(size, 0.0))

    def measured(release):
        return measure_strengths(
            release=release,
            cohort=mean,
            weights=weights,
            nulls=(null,),
            deviation=deviation,
            persons=persons,
        )

    generator = np.random.default_rng(3)
    drawn = []
    for _ in range(300):
        who = generator.integers(mean.persons, size=persons)
        own = mean.directions[who]
        release = np.einsum("ndk,nek->de", own, own) / persons
        release += SymmetricNoise(size, deviation).draw(generator)
        drawn.append(measured(release).here)
    stated = measured(mean.matrix).error
    assert np.allclose(np.std(drawn, axis=0), stated, rtol=0.15)


def test_a_strength_that_is_noise_is_confirmed_in_few_releases(mean):
    deviation, persons = 0.1, 200
    weights = np.linalg.qr(np.random.default_rng(4).standard_normal((len(mean.matrix), 20)))[0]
    size = len(mean.matrix)
    null = SmoothNull(np.eye(size), np.zeros(size), np.zeros(size), SymmetricNoise(size, 0.0))
    generator = np.random.default_rng(5)
    confirmed = 0
    for _ in range(200):
        strengths = measure_strengths(
            release=SymmetricNoise(size, deviation).draw(generator),
            cohort=mean,
            weights=weights,
            nulls=(null,),
            deviation=deviation,
            persons=persons,
        )
        confirmed += bool(strengths.confirmed(np.zeros(20)).any())
    assert confirmed <= 20  # 10 are expected; 21 or more have a probability of 0.001


def test_a_network_is_only_here_if_sampling_does_not_explain_it():
    here, openly, error = np.full(3, 0.3), np.array([0.01, 0.01, 0.2]), np.full(3, 0.01)
    sampling = np.array([0.01, 0.1, 0.01])
    assert Strengths(here, openly, error, sampling).only_here.tolist() == [True, False, False]


BETWEEN_OPEN = 0.03
BETWEEN_HOSPITALS = 0.05
"""Variance of a population's mean, as a fraction of one participant's."""


def leading_error(cohort, matrix, truth):
    """Return the mean squared error of the entries that rotate the leading directions."""
    entries = cohort.vectors.T @ (matrix - truth) @ cohort.vectors
    return float(np.square(entries[:KEPT, KEPT:]).mean())


def home_draw(cohort, *, deviation, persons, others, generator):
    """Draw a truth, the other hospitals' release and a hospital's own mean from the model."""
    size = len(cohort.matrix)

    def near(matrix, variances):
        drawn = np.triu(generator.standard_normal((size, size)))
        entries = np.sqrt(variances) * (drawn + np.triu(drawn, 1).T)
        return matrix + cohort.vectors @ entries @ cohort.vectors.T

    truth = near(cohort.matrix, cohort.variances * (1.0 / cohort.persons + BETWEEN_OPEN))
    release = near(truth, cohort.variances / others)
    release = release + SymmetricNoise(size, deviation).draw(generator)
    home = near(truth, cohort.variances * BETWEEN_HOSPITALS)
    return truth, release, home, near(home, cohort.variances / persons)


@pytest.mark.parametrize("own_patients", [False, True], ids=["everybody", "own patients"])
@pytest.mark.parametrize("deviation", [0.003, 0.03, 0.3])
@pytest.mark.parametrize("persons", [4, 20, 200])
def test_three_sources_are_no_worse_than_the_best_one(mean, persons, deviation, own_patients):
    generator = np.random.default_rng(11)
    others = 300
    errors = []
    for _ in range(20):
        truth, release, home, own = home_draw(
            mean, deviation=deviation, persons=persons, others=others, generator=generator
        )
        both = combine(mean, release, deviation, others, generator)
        made = add_own(both, mean, OwnMean(own, persons, others), own_patients=own_patients)
        aim = home if own_patients else truth
        sources = own, release, mean.matrix, both.matrix
        errors.append(
            [leading_error(mean, each, aim) for each in (made.matrix, *sources)]
            + [float(made.stated[:KEPT, KEPT:].mean())]
        )
    three, *sources, stated = np.mean(errors, axis=0)
    assert three < min(sources)
    assert 0.9 * three < stated


def test_weights_follow_the_participants_and_the_noise(mean):
    generator = np.random.default_rng(12)
    others = 300

    def weights(persons, deviation, *, own_patients=False):
        _, release, _, own = home_draw(
            mean, deviation=deviation, persons=persons, others=others, generator=generator
        )
        both = combine(mean, release, deviation, others, generator)
        made = add_own(both, mean, OwnMean(own, persons, others), own_patients=own_patients)
        assert made.release_weight == pytest.approx(made.weights[:KEPT, KEPT:].mean())
        return made.own_weight, made.release_weight, 1.0 - made.own_weight - made.release_weight

    few, many = weights(4, 0.03), weights(200, 0.03)
    assert min(*few, *many) > 0.0
    assert few[0] < many[0]
    assert weights(20, 0.3)[1] < 0.02
    assert weights(20, 0.001)[1] > 0.5
    assert weights(200, 0.03, own_patients=True)[0] > many[0]


@pytest.mark.parametrize(
    ("between", "most"), [(0.008, 0.015), (0.3, 0.08)], ids=["alike", "others"]
)
def test_the_difference_of_populations_is_estimated_under_noise(mean, between, most):
    generator = np.random.default_rng(13)
    deviation, persons = 0.02, 300
    errors = []
    for _ in range(20):
        drawn = np.triu(generator.standard_normal(mean.matrix.shape))
        spread = np.sqrt(mean.variances * (1.0 / mean.persons + 1.0 / persons + between))
        entries = spread * (drawn + np.triu(drawn, 1).T)
        release = mean.matrix + mean.vectors @ entries @ mean.vectors.T
        release += SymmetricNoise(len(release), deviation).draw(generator)
        errors.append(combine(mean, release, deviation, persons, generator).between - between)
    assert np.sqrt(np.mean(np.square(errors))) < most


def test_errors_of_entries_have_their_own_deviations():
    generator = np.random.default_rng(1)
    deviations = np.array([[0.5, 0.1, 0.0], [0.1, 0.2, 0.4], [0.0, 0.4, 0.3]])
    vectors = np.linalg.qr(generator.standard_normal((3, 3)))[0]
    law = EntryErrors(vectors, deviations)
    draws = np.stack([law.draw(generator) for _ in range(5000)])
    assert np.allclose(draws, draws.transpose(0, 2, 1))
    assert (vectors.T @ draws @ vectors).std(axis=0) == pytest.approx(deviations, abs=0.02)
