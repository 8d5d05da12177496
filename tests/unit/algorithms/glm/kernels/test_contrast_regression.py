"""The arithmetic of a contrast: roots of correlations, false discoveries, shrinkage."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import fractional_matrix_power
from scipy.stats import false_discovery_control

from consortium.algorithms.glm.kernels.contrast_regression import (
    ContrastSums,
    Expected,
    chance_of_squares,
    estimate_effects,
    false_discovery,
    freedom_of_squares,
    shrink_gaussian,
    shrink_squares,
)
from consortium.algorithms.glm.kernels.covariate_adjustment import CovariateSums, adjust
from consortium.algorithms.glm.kernels.equal_correlation import correlation_power, root_diagonal
from consortium.algorithms.glm.site import _pairs


def exchangeable(entries, correlation):
    return (1 - correlation) * np.eye(entries) + correlation


@pytest.mark.parametrize("power", [-0.25, 0.25, 0.5])
@pytest.mark.parametrize(("entries", "correlation"), [(1, 0.3), (5, 0.0), (5, 0.25), (40, 0.9)])
def test_powers_of_the_correlation_are_those_of_the_matrix(power, entries, correlation):
    columns = np.random.default_rng(0).standard_normal((entries, 3))
    matrix = fractional_matrix_power(exchangeable(entries, correlation), power)
    assert correlation_power(columns, correlation, power) == pytest.approx(matrix @ columns)


@pytest.mark.parametrize(("entries", "correlation"), [(1, 0.3), (20, 0.25), (400, 0.25)])
def test_the_diagonal_of_the_root_is_its(entries, correlation):
    root = fractional_matrix_power(exchangeable(entries, correlation), 0.5)
    assert np.diag(root) == pytest.approx(root_diagonal(entries, correlation))


def test_effective_numbers_of_outcomes_are_those_of_the_published_table():
    expected = {20: 18, 68: 57, 152: 124, 400: 316, 1000: 776}
    found = {entries: entries * root_diagonal(entries, 0.25) ** 2 for entries in expected}
    assert found == pytest.approx(expected, abs=0.6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_false_discovery_rates_are_those_of_scipy(p):
    assert false_discovery(np.array(p)) == pytest.approx(false_discovery_control(p))


def test_a_posterior_lies_where_precision_says():
    assert shrink_gaussian(4.0, 0.0, 1.0, 1.0) == (4.0, 0.0)
    assert shrink_gaussian(4.0, 0.0, 1.0, 0.0) == (4.0, 0.0)
    assert shrink_gaussian(4.0, 1.0, 1.0, 0.0) == (1.0, 0.0)
    mean, variance = shrink_gaussian(4.0, 1.0, 1.0, 0.5)
    assert mean == pytest.approx((4 + 4 * 1) / 5)
    assert variance == pytest.approx(1 / 5)


HIDDEN = np.ones(2, dtype=bool)


def within_sites(seed=0, sites=3, covariates=2, persons=40):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((sites, covariates, persons)) + generator.standard_normal(
        (sites, covariates, 1)
    )
    group = (np.arange(persons) < persons // 2) - 0.5
    x[:, 0] += 0.6 * group
    return x, group


def test_without_noise_the_adjustment_is_least_squares_with_site_constants():
    x, group = within_sites()
    sites, _, persons = x.shape
    sums = CovariateSums(
        np.einsum("n,spn->p", group, x),
        np.einsum("spn,sqn->pq", x, x),
        x.sum(axis=2),
        HIDDEN,
        {"contrast": 0.0, "moment": 0.0, "means": 0.0},
    )
    found = adjust(sums, np.full(sites, float(persons)), np.ones(sites), sites * persons / 4)
    centred = np.hstack(list(x - x.mean(axis=2, keepdims=True)))
    target = np.tile(group, sites)
    slopes = np.linalg.lstsq(centred.T, target, rcond=None)[0]
    assert found.slopes == pytest.approx(slopes)
    assert found.centres == pytest.approx(x.mean(axis=2))
    assert found.explained == pytest.approx(slopes @ centred @ target / (target @ target))
    assert not found.offsets.any()


@pytest.mark.parametrize("own", [(0.4, 0.0), (0.02, 1.5), (0.3, 0.3)])
@pytest.mark.parametrize("persons", [20.0, 200.0])
def test_sites_that_differ_in_one_column_alone_are_off_by_what_is_stated_of_each(own, persons):
    generator, sites, runs = np.random.default_rng(3), 30, 200
    noise, everywhere = 10.0, np.full(sites, persons)
    known = {"contrast": 0.0, "moment": 0.0, "means": noise}
    found, missed = [], []
    for _ in range(runs):
        means = np.sqrt(own) * generator.standard_normal((sites, 2))
        sums = persons * means + noise * generator.standard_normal((sites, 2))
        given = CovariateSums(np.zeros(2), 1e5 * np.eye(2), sums, HIDDEN, known)
        found.append(adjust(given, everywhere, np.ones(sites), 1e4))
        missed.append(np.square(persons * (found[-1].centres - means)).sum(axis=0))
    stated, true = np.mean([each.offsets for each in found], axis=0), np.mean(missed, axis=0)
    # What is stated may be too much where a column tells nothing, and never too little.
    assert np.all(stated > 0.93 * true)
    assert np.all(stated < 1.1 * true + 0.03 * sites * persons**2)


def test_noise_draws_means_to_zero_and_a_missing_site_has_none():
    x, group = within_sites()
    means = x.sum(axis=2)
    means[2] = 0.0
    noise = {"contrast": 1.0, "moment": 1.0, "means": 20.0}
    moment = np.einsum("spn,sqn->pq", x[:2], x[:2])
    contrast = np.einsum("n,spn->p", group, x[:2])
    persons = np.array([40.0, 40.0, 0.0])
    found = adjust(CovariateSums(contrast, moment, means, HIDDEN, noise), persons, np.ones(3), 20.0)
    assert not found.centres[2].any()
    assert (np.abs(found.centres[:2]) < np.abs(x.mean(axis=2)[:2])).all()
    assert (found.offsets > 0).all()


EXPECTED = Expected(25.0, 25.0, 1.0, 100.0, 0.15, 0.9, 4.0, 9.0)


def sums_of(effects, squares, /, **noise):
    known = dict.fromkeys(("effects", "divisor", "squares", "spread", "balance"), 0.0) | noise
    sums = np.array(effects), 25.0, np.array(squares), 1.25, np.zeros(1)
    return ContrastSums(*sums, known, np.zeros(len(effects)))


def test_every_source_of_error_is_in_the_standard_error():
    quiet = estimate_effects(sums_of([5.0] * 4, [25.0] * 4, effects=3.0, spread=1e-9), EXPECTED)
    assert quiet.each.effects == pytest.approx(0.2)
    # Chance 25, noise 9 g, and what the adjustment lets through: β² 4 + τ² 9 with τ² = 1.25 - 1.
    assert quiet.each.errors * 25 == pytest.approx(np.sqrt(25 + 9 * 0.9 + 0.15 * 4 + 0.25 * 9))
    assert quiet.each.widths == pytest.approx(quiet.each.errors)
    doubtful = estimate_effects(sums_of([5.0] * 4, [25.0] * 4, divisor=5.0), EXPECTED)
    assert (doubtful.each.widths > doubtful.each.errors).all()


def test_a_divisor_that_may_be_further_off_is_drawn_less_to_what_is_planned_and_doubted_more():
    sums = replace(sums_of([5.0] * 4, [25.0] * 4, divisor=8.0), divisor=15.0)
    usual, unsure = (estimate_effects(sums, replace(EXPECTED, width=w)) for w in (0.15, 0.4))
    assert usual.divisor > unsure.divisor > 15.0
    assert (unsure.each.widths / unsure.each.errors > usual.each.widths / usual.each.errors).all()


def test_few_outcomes_that_are_clipped_seldom_let_less_through_where_noise_hides_the_balance():
    sums = sums_of([5.0] * 4, [25.0] * 4, spread=1e-9, balance=1e6)
    often, seldom = (
        estimate_effects(sums, replace(EXPECTED, missed=0.5, clipped_share=part)).leak
        for part in (1, 0.1)
    )
    part = (0.15 * 25) ** 2 * 0.5
    assert often - seldom == pytest.approx(0.9 * part, rel=1e-3)


def test_small_variances_among_large_ones_are_not_taken_for_a_third_of_them():
    sums = sums_of([5.0] * 40, [50.0] * 20 + [1.0] * 20, squares=0.2)
    found = estimate_effects(sums, replace(EXPECTED, persons=1e6))
    assert found.sum_variances[-1] == pytest.approx(1.0, rel=0.1)


def test_without_noise_a_balance_that_is_not_expected_is_what_it_is():
    sums = sums_of([5.0] * 4, [25.0] * 4)
    found = [
        estimate_effects(replace(sums, balance=np.array([b])), replace(EXPECTED, clipped_share=0.0))
        for b in (0.0, 3.0)
    ]
    assert [each.balance[0] for each in found] == [0, 9]
    assert np.isfinite(found[0].each.errors).all()


def test_weights_that_do_not_cancel_let_sites_and_a_missed_centre_through():
    sums = sums_of([5.0] * 4, [25.0] * 4, spread=1e-9)
    uneven = replace(EXPECTED, missed=0.01, unevenness=0.2)
    calm, moved = (
        estimate_effects(replace(sums, balance=np.array([b])), uneven).each.errors * 25
        for b in (0.0, 8.0)
    )
    assert np.square(moved) - np.square(calm) == pytest.approx(64 * (0.25 * 0.2 + 0.01))
    # Where noise hides the balance, what is usual counts: 15 % of the divisor.
    loud = replace(sums, noise={**sums.noise, "balance": 1e6})
    hidden = estimate_effects(loud, uneven).each.errors * 25
    usual = (0.15 * 25) ** 2 * (0.25 * 0.2 + 0.01)
    assert np.square(hidden) - np.square(calm) == pytest.approx(usual, rel=1e-3)


def test_declared_means_need_no_noise_and_leave_nothing_hidden():
    x, group = within_sites()
    x = x - x.mean(axis=2, keepdims=True)  # as sites take declared means off
    noise = {"contrast": 1.0, "moment": 1.0, "means": 20.0}
    moment, contrast = np.einsum("spn,sqn->pq", x, x), np.einsum("n,spn->p", group, x)
    persons, means = np.full(3, 40.0), np.zeros((3, 2))
    found = adjust(
        CovariateSums(contrast, moment, means, np.zeros(2, dtype=bool), noise | {"means": 0.0}),
        *(persons, np.ones(3), 30.0),
    )
    assert not found.levels.any()
    assert not found.centres.any()
    hidden = adjust(
        CovariateSums(contrast, moment, means, HIDDEN, noise), persons, np.ones(3), 30.0
    )
    assert (hidden.offsets > 0).all()
    assert (hidden.levels > hidden.offsets).all()


@pytest.mark.parametrize("part", [0.4, 0.6, 0.9])
def test_intervals_of_a_single_outcome_know_that_its_variance_is_noisy(part):
    # Noise in the variance is as large as the variance is, as with 400 persons and ε = 4.
    generator, runs = np.random.default_rng(5), 4000
    chance, noise = part * 25.0, {"effects": 2.0, "squares": 10.0}
    expected = Expected(25.0, 25.0, 1.0, 400.0, 0.15, 0.9, 0.0, 0.0)
    sums = np.sqrt(chance + 4.0 * 0.9) * generator.standard_normal(runs)
    squares = chance + 10.0 * generator.standard_normal(runs)
    found = [
        estimate_effects(sums_of([one], [square], **noise), expected).each.p[0]
        for one, square in zip(sums, squares, strict=True)
    ]
    assert 0.01 < np.mean(np.array(found) < 0.05) < 0.06


def test_without_noise_a_single_outcome_has_the_variance_that_was_found():
    found = estimate_effects(sums_of([5.0], [31.0]), EXPECTED)
    assert found.sum_variances == pytest.approx(31.0)
    assert found.freedom == pytest.approx(100 / 2.4)


def test_squares_are_drawn_to_their_mean_as_far_as_they_are_noise():
    values = [10.0, 20.0, 30.0, 40.0]
    loud = shrink_squares(sums_of([0.0] * 4, values, squares=100.0), EXPECTED)
    assert loud == pytest.approx(25.0)
    many = Expected(25.0, 25.0, 1.0, 1e9, 0.15, 0.9, 4.0, 9.0)
    assert shrink_squares(sums_of([0.0] * 4, values), many) == pytest.approx(values, rel=1e-4)
    assert (shrink_squares(sums_of([0.0] * 4, [-50.0] * 4), EXPECTED) > 0).all()


def noisy_sums(**changes):
    """Sums of four outcomes whose squares are about 1, almost without noise."""
    noise = dict.fromkeys(("effects", "divisor", "squares", "spread", "balance"), 1e-6)
    values = {
        "effects": np.ones(4),
        "divisor": 10.0,
        "squares": np.array([0.5, 1.0, 1.5, 1.0]),
        "spread": 1.3,
        "balance": np.zeros(1),
        "tail_variance": np.zeros(4),
        **changes,
    }
    return ContrastSums(**{**values, "noise": {**noise, **changes.get("noise", {})}})


USUAL = Expected(
    divisor=10.0,
    squares=1.0,
    clip=1.0,
    persons=1e9,
    explained=0.1,
    root=1.0,
    adjustment_noise=0.1,
    offset_noise=0.1,
)


def test_noise_can_make_no_variance_smaller_than_its_limits():
    hidden = noisy_sums(squares=np.full(4, -1.0), noise={"squares": 10.0})
    assert shrink_squares(hidden, USUAL) == pytest.approx(np.full(4, 0.15))
    squares = np.array([-1.0, 1.0, 2.0, 2.0])
    assert shrink_squares(noisy_sums(squares=squares), USUAL)[0] == pytest.approx(0.02)
    unsure = noisy_sums(squares=squares, noise={"squares": 0.1})
    assert shrink_squares(unsure, USUAL)[0] == pytest.approx(0.1)


def test_squares_are_shrunk_by_their_sampling_error_also_without_noise():
    """A variance over n participants is off by 4.8/n of its square, here 0.048 of 0.125."""
    found = shrink_squares(noisy_sums(), replace(USUAL, persons=100.0))
    assert found == pytest.approx(1 + (0.125 - 0.048) / 0.125 * np.array([-0.5, 0.0, 0.5, 0.0]))


def test_noise_can_make_no_divisor_and_no_variance_between_sites_negative():
    found = estimate_effects(noisy_sums(divisor=-5.0, spread=-5.0), USUAL)
    assert found.divisor == pytest.approx(0.05 * USUAL.divisor)
    assert found.sites == pytest.approx(0.05)


def test_intervals_are_wider_if_the_share_with_an_outcome_is_unsure():
    sums = noisy_sums()
    exact = estimate_effects(sums, USUAL).each
    uncertain = estimate_effects(sums, replace(USUAL, presence_variance=0.04)).each
    assert uncertain.errors == pytest.approx(exact.errors)
    added = np.square(uncertain.widths) - np.square(exact.widths)
    assert added == pytest.approx(0.04 * np.square(exact.effects))


WEIGHTS = {
    "two groups of equal size": np.repeat([-0.5, 0.5], 150),
    "fractions of 0.3 and 0.7": np.repeat([-0.3, 0.7], [210, 90]),
    "a clipped slope": np.clip(np.random.default_rng(0).standard_normal(300), -2.5, 2.5),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_sampling_variance_of_squares_on_a_ring_follows_from_the_weights(name):
    generator = np.random.default_rng(1)
    weights = generator.permutation(WEIGHTS[name])
    places = np.arange(len(weights))
    outcomes = generator.standard_normal((8000, len(weights)))
    pairs = places, np.roll(places, 1)
    sums = _pairs(outcomes, weights, float(np.abs(weights).max()), pairs).sum(axis=1)
    found = len(weights) * sums.var() / sums.mean() ** 2
    kurtosis = np.mean(weights**4) / np.mean(weights**2) ** 2
    assert found == pytest.approx(2.5 * kurtosis + 0.5, rel=0.05)


def test_the_freedom_of_squares_is_that_of_groups_with_fractions_of_three_and_seven_tenths():
    weights = WEIGHTS["fractions of 0.3 and 0.7"]
    kurtosis = np.mean(weights**4) / np.mean(weights**2) ** 2
    assert freedom_of_squares(1000.0) == pytest.approx(1000 / (1.25 * kurtosis + 0.25), rel=0.03)
    assert chance_of_squares(1000.0) == pytest.approx((2.5 * kurtosis + 0.5) / 1000, rel=0.03)


def test_squares_are_shrunk_by_their_sampling_error_only_if_outcomes_vary_no_more():
    """The spread that sampling makes is removed, and squares that differ truly are kept."""
    generator = np.random.default_rng(2)
    chance = np.sqrt(chance_of_squares(400.0)) * generator.standard_normal(2000)
    alike = _shrunk(100 * (1 + chance))
    assert alike.std() < 0.2 * 100 * chance.std()
    true = 100 * np.exp(0.5 * generator.standard_normal(2000))
    apart = _shrunk(true * (1 + chance))
    assert np.square(apart / true - 1).mean() < 1.05 * np.square(chance).mean()


def _shrunk(squares):
    """Return shrunk squares without noise, of 400 participants."""
    noise = dict.fromkeys(("effects", "divisor", "squares", "spread", "balance"), 0.0)
    none = np.zeros(len(squares))
    sums = ContrastSums(none, 100.0, squares, 1.0, np.zeros(1), noise, none)
    return shrink_squares(sums, Expected(100.0, 100.0, 1.0, 400.0, 0.15, 1.0, 0.0, 0.0))
