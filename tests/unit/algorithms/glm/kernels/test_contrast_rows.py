"""Errors of means of outcomes: as small as what was released about them allows."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.contrast_regression import (
    ContrastSums,
    Expected,
    estimate_effects,
)
from consortium.algorithms.glm.kernels.contrast_rows import (
    MeanSums,
    mean_effects,
    solve_coefficients,
)
from consortium.algorithms.glm.kernels.covariate_adjustment import Adjustment
from consortium.algorithms.glm.kernels.lost_tails import no_tails

PERSONS, OUTCOMES, COVARIATES = 1000.0, 8, 2
AVERAGES = np.repeat(np.eye(2), 4, axis=1) / 4
EXPECTED = Expected(200.0, 240.0, 1.0, PERSONS, 0.15, 1.0, 400.0, 100.0)
ADJUSTMENT = Adjustment(
    np.zeros(COVARIATES),
    np.zeros((1, COVARIATES)),
    0.0,
    np.zeros(COVARIATES),
    240.0,
    np.eye(COVARIATES) / PERSONS,
    np.zeros(COVARIATES),
    1.0,
    np.zeros(COVARIATES),
)
SUMS = ContrastSums(
    np.zeros(OUTCOMES),
    200.0,
    np.full(OUTCOMES, 200.0),
    1.0,
    np.zeros(1),
    {"effects": 5.0, "divisor": 1.0, "squares": 0.0, "spread": 0.0, "balance": 0.0},
    np.zeros(OUTCOMES),
)
FOUND = estimate_effects(SUMS, EXPECTED)
PRIVACY = 5.0**2 / 4
"""Variance of a mean from the noise of four outcomes."""
FOUND_NOISE = tuple(SUMS.noise)
ALONE = replace(FOUND, balance=np.zeros(1))
TURNED = AVERAGES.T
QUIET = {"squares": 1.0, "products": 1e-9, "spreads": 1e-9}


def means_of(products, between, noise=QUIET):
    within = 0.4375 * 200.0  # a correlation of a quarter, of four outcomes
    spreads = np.full(2, within / EXPECTED.squares + between)
    sure = np.zeros(2), np.zeros(2)
    return MeanSums(np.full(2, within), PERSONS * products, spreads, noise, *sure)


def squares_of(means):
    found = mean_effects(SUMS, means, AVERAGES, EXPECTED, FOUND, ADJUSTMENT, 0.25, AVERAGES.T)
    return np.square(found.errors * FOUND.divisor)


def test_a_mean_that_covariates_act_on_more_has_the_larger_error():
    products = np.array([[0.0, 0.5], [0.0, 0.5]])
    calm, moved = squares_of(means_of(products, 0.2))
    assert moved - calm == pytest.approx(0.5 * 400.0, rel=0.05)


def test_a_mean_in_which_sites_differ_more_has_the_larger_error():
    products = np.zeros((COVARIATES, 2))
    one, other = (squares_of(means_of(products, between)) for between in (0.1, 0.4))
    assert other - one == pytest.approx(0.3 * 100.0, rel=0.3)


def test_where_noise_hides_a_mean_it_counts_as_if_all_outcomes_were_alike():
    hidden = {**QUIET, "products": 1e9, "spreads": 1e9}
    products = np.zeros((COVARIATES, 2))
    known, unknown = (squares_of(means_of(products, 0.0, noise)) for noise in (QUIET, hidden))
    own = squares_of(replace(means_of(products, 0.0, hidden), squares=np.full(2, 87.5)))
    assert np.all(known < unknown)
    privacy_and_chance = squares_of(means_of(products, FOUND.sites, QUIET))
    assert np.all(own <= unknown + 1e-9)
    leak = FOUND.sites * 100.0
    assert unknown - privacy_and_chance + leak == pytest.approx(FOUND.leak, rel=0.15)


def test_noise_can_make_no_part_of_a_means_variance_negative():
    """Released sums are far below 0, as they may be by chance with ten covariates and noise."""
    covariates = 10
    adjustment = replace(ADJUSTMENT, inverse=np.eye(covariates) / PERSONS)
    noise = {"squares": 20.0, "products": 0.12 * PERSONS, "spreads": 0.02}
    means = means_of(np.zeros((covariates, 2)), -1.0, noise)
    low = replace(means, squares=np.full(2, -200.0))
    found = mean_effects(SUMS, low, AVERAGES, EXPECTED, ALONE, adjustment, 0.25, TURNED)
    stated = np.square(found.errors * FOUND.divisor)
    assert stated == pytest.approx(PRIVACY + 0.3 * 87.5, rel=0.01)


def test_few_means_are_found_by_chance_if_noise_hides_their_variances():
    """5 % of means without an effect are found at p < 0.05, up to 2 % more with much noise."""
    generator = np.random.default_rng(4)
    runs = 4000
    quiet = dict.fromkeys(FOUND_NOISE, 1e-6)
    usual = 87.5
    noise = {"squares": 0.5 * usual, "products": 1e-9, "spreads": 1e-9}
    expected = replace(EXPECTED, adjustment_noise=0.0, offset_noise=0.0)
    found = []
    for _ in range(runs):
        true = usual * np.exp(0.4 * generator.standard_normal(2))
        squares = true * (1 + np.sqrt(4.8 / PERSONS) * generator.standard_normal(2))
        squares += noise["squares"] * generator.standard_normal(2)
        effects = np.repeat(np.sqrt(true) * generator.standard_normal(2), 4)
        sums = replace(SUMS, effects=effects, noise=quiet)
        means = replace(means_of(np.zeros((COVARIATES, 2)), 0.0, noise), squares=squares)
        given = sums, means, AVERAGES, expected, ALONE, ADJUSTMENT
        found.append(mean_effects(*given, 0.25, TURNED))
    assert np.mean([each.p < 0.05 for each in found]) < 0.077


def test_what_site_means_are_off_by_moves_coefficients_together_as_their_noise_says():
    generator, factor = np.random.default_rng(0), 0.8
    slopes, offsets = np.array([0.4, -0.2]), np.array([300.0, 50.0])
    inverse = np.array([[1.2, 0.3], [0.3, 0.9]]) / PERSONS
    adjustment = replace(
        ADJUSTMENT,
        slopes=slopes,
        offsets=offsets,
        inverse=inverse,
        products=np.linalg.solve(inverse, slopes),
    )
    levels = FOUND.sites * adjustment.squared(offsets)
    quiet = replace(FOUND, privacy=0.0, leak=levels, balance=np.zeros(3))
    off = np.sqrt(FOUND.sites * offsets)[:, None] * generator.standard_normal((2, 200_000))
    rows = np.vstack([-slopes @ off, factor * off])
    noise = {"moment": 0.0, "contrast": 0.0}
    found = solve_coefficients(
        rows=rows,
        adjustment=adjustment,
        found=quiet,
        importance=factor,
        weight_ratio=1.0,
        noise=noise,
        expected=replace(EXPECTED, adjustment_noise=0.0, divisor=240.0),
        lost_tails=no_tails(rows.shape[1], 3),
    )
    assert found.noise == pytest.approx(np.cov(found.values), rel=0.05)
