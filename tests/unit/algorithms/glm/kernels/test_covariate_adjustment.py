"""Shrinkage of the slopes on covariates: its limit, and the error that remains."""

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.covariate_adjustment import (
    LEAST_KEPT,
    Adjustment,
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
        noisy=np.zeros(2, dtype=bool),
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
        noisy=np.ones(1, dtype=bool),
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
        noisy=np.zeros(1, dtype=bool),
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


def test_noise_as_large_as_the_priors_width_draws_halfway_to_the_prior():
    """With a prior of 0.6 ± 0.3, the posterior mean of 0.9 ± 0.3 is the middle of both."""
    assert within_of(0.9, 0.3) == pytest.approx(0.75)


def test_a_site_whose_noise_has_the_usual_variance_of_means_counts_a_quarter():
    """The square of a mean has a variance in proportion to (t² + σ²)², with t² = 0.2 as usual."""
    raw = np.array([[1.0], [0.0]])
    noise = np.array([0.0, 0.2])
    found = _between_sites(raw, noise, np.array([True, True]))
    own = 0.8 * 1.0 + 0.2 * (0.0 - 0.2)
    error = np.sqrt(2 * 0.2**2 * 0.2 * (0.2 + 2 * own))
    assert found == pytest.approx(own + 0.75 * error)


def test_means_as_far_apart_as_clipped_values_can_be_keep_their_variance():
    """Half of the sites at 1.7 and half at -1.7 is as far as sites of values within ±2.5 get."""
    raw = 1.7 * np.array([[1.0], [-1.0], [1.0], [-1.0]])
    whole = np.ones(4, dtype=bool)
    assert _between_sites(raw, np.zeros(4), whole) == pytest.approx(1.7**2)
    assert _between_sites(2 * raw, np.zeros(4), whole) == pytest.approx(3.0)


def test_covariates_explain_at_most_nine_tenths_of_a_contrast():
    """A contrast that noise makes fully explained keeps a tenth of its information."""
    sums = CovariateSums(
        contrast=np.array([30.0]),
        moment=np.array([[30.0]]),
        means=np.zeros((1, 1)),
        noisy=np.zeros(1, dtype=bool),
        noise={"contrast": 0.0, "moment": 0.0, "means": 0.0, "column": 0.0},
    )
    assert adjust(sums, np.array([120.0]), np.ones(1), 30.0).explained == pytest.approx(0.9)


def test_sites_levels_count_as_if_they_follow_the_hidden_means_by_seven_tenths():
    """Unit levels and hidden means of unit variance have a mean product of 0.7 at each site."""
    persons = np.full(4, 100.0)
    found = means_of(np.zeros(4), persons, 300.0, np.random.default_rng(4))
    generator = np.random.default_rng(5)
    means = generator.standard_normal((DRAWS, 4))
    levels = 0.7 * means + np.sqrt(1 - 0.7**2) * generator.standard_normal((DRAWS, 4))
    weight = found.confounded[0] / 4
    together = weight * np.sum(means * levels, axis=1).mean()
    assert found.levels - found.offsets == pytest.approx(together**2, rel=0.03)


@pytest.mark.parametrize("ratio", [1.0, 0.75, 0.5])
@pytest.mark.parametrize("gap", [0.8, 1.4])
@pytest.mark.parametrize("columns", [1, 2])
def test_the_bias_by_clipped_covariates_is_stated_and_not_too_small(columns, gap, ratio):
    """Groups differ by ``gap`` deviations, of which the study states ``ratio``.

    An outcome that follows only the covariates is regressed on the group and on clipped
    covariates. With one covariate and a gap of 0.8 the stated bias is also not much too large.
    """
    generator = np.random.default_rng(6)
    size = 100_000
    group = np.repeat([-0.5, 0.5], size // 2)
    true = generator.standard_normal((columns, size)) + gap * group
    cut = np.clip(true / ratio, -2.5, 2.5)
    cut *= np.minimum(1.0, np.sqrt(2 * columns) / np.linalg.norm(cut, axis=0))
    explained = 0.15
    outcome = np.sqrt(explained / columns) * true.sum(axis=0)
    design = np.vstack([np.ones(size), group, cut])
    bias = np.linalg.lstsq(design.T, outcome, rcond=None)[0][1]
    centred = cut - cut.mean(axis=1, keepdims=True)
    adjustment = Adjustment(
        slopes=np.zeros(columns),
        centres=np.zeros((1, columns)),
        explained=0.0,
        offsets=np.zeros(columns),
        information=size / 4,
        inverse=np.eye(columns),
        products=centred @ group,
        square=float(np.square(cut).mean()),
    )
    stated = adjustment.cut_bias(explained)
    assert stated > 0.9 * bias
    if (columns, gap) == (1, 0.8):
        assert stated < 1.25 * bias


def test_equal_columns_share_one_slope_and_similar_ones_have_their_own():
    """An eigenvalue of zero is a rounding error, and one of a millionth is real."""
    for other, slopes in ((0.0, [0.5, 0.5]), (1e-6, [1.0, 0.0])):
        moment = 100.0 * np.array([[1.0, 1.0], [1.0, 1.0 + other]])
        sums = CovariateSums(
            contrast=moment[0],
            moment=moment,
            means=np.zeros((1, 2)),
            noisy=np.zeros(2, dtype=bool),
            noise={"contrast": 0.0, "moment": 0.0, "means": 0.0, "column": 0.0},
        )
        found = adjust(sums, np.array([100.0]), np.ones(1), 200.0)
        assert found.slopes == pytest.approx(slopes, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_a_column_that_is_the_sum_of_others_makes_no_slope_large(seed):
    """Its moment has an eigenvalue of about 1e-14, by rounding, instead of zero."""
    columns = np.random.default_rng(seed).standard_normal((3, 100))
    columns[2] = columns[0] + columns[1]
    contrast = columns[0] + np.random.default_rng(seed + 100).standard_normal(100)
    sums = CovariateSums(
        contrast=columns @ contrast,
        moment=columns @ columns.T,
        means=np.zeros((1, 3)),
        noisy=np.zeros(3, dtype=bool),
        noise={"contrast": 0.0, "moment": 0.0, "means": 0.0, "column": 0.0},
    )
    found = adjust(sums, np.array([100.0]), np.ones(1), 200.0)
    expected = np.linalg.lstsq(columns.T, contrast, rcond=None)[0]
    assert found.slopes == pytest.approx(expected, abs=1e-9)
