"""Agreement of hospitals: the number that a hospital computes, and how the sum is read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms.glm.kernels.agreement import (
    AgreementModel,
    agreement_changes,
    agreement_score,
    detectable_between,
    mean_root,
    read_hospital_agreement,
)

FLOOR = 3.0
ROOT = 0.95


def score_of(weights, residuals):
    squares = np.square(residuals).sum(axis=0)
    return agreement_score(
        sums=residuals @ weights,
        squares=float(weights**2 @ squares),
        weighted=residuals @ weights**2,
        weights=float((weights**2).sum()),
        root=ROOT,
        floor=FLOOR,
    )


def test_a_site_without_participants_has_the_score_0():
    assert score_of(np.zeros(0), np.zeros((5, 0))) == 0


@given(st.integers(0, 2**32 - 1), st.sampled_from(["random", "alike", "opposite"]))
@settings(deadline=None, max_examples=200)
def test_no_participant_moves_the_score_further_than_the_bound(seed, kind):
    generator = np.random.default_rng(seed)
    count, outcomes = generator.integers(1, 12), generator.integers(1, 6)
    weights = generator.uniform(-1, 1, count)
    residuals = generator.standard_normal((outcomes, count))
    if kind == "alike":
        residuals = np.tile(residuals[:, :1], count)
        weights = np.abs(weights)
    residuals *= 2 / np.linalg.norm(residuals, axis=0)
    once, replaced = agreement_changes(2.0, FLOOR)
    other_weights, other = weights.copy(), residuals.copy()
    other_weights[0] = generator.choice([-1.0, 1.0])
    sign = -1.0 if kind == "opposite" else generator.choice([-1.0, 1.0])
    other[:, 0] = sign * other[:, 0]
    before, after = score_of(weights, residuals), score_of(other_weights, other)
    assert abs(after - before) <= replaced * (1 + 1e-12)
    assert abs(before - score_of(weights[1:], residuals[:, 1:])) <= once * (1 + 1e-12)


def test_a_replaced_participant_reaches_most_of_the_bound():
    weights, residuals = np.array([1.0]), np.array([[2.0]])
    others = np.full((1, 400), 2.0)
    many = np.concatenate([weights, np.full(400, 0.5)])
    one = score_of(many, np.hstack([residuals, others]))
    other = score_of(many, np.hstack([-residuals, others]))
    assert one - other > 0.7 * agreement_changes(2.0, FLOOR)[1]


def test_the_mean_root_is_that_of_drawn_numbers():
    drawn = np.random.default_rng(0).chisquare(5, 200_000)
    assert mean_root(5) == pytest.approx(np.sqrt(drawn / 5).mean(), abs=2e-3)


def model_of(sites=10, between=0.0):
    """A model of equal sites with 20 outcomes and its variance of 1."""
    ones = np.ones(sites)
    return AgreementModel(
        information=25 * ones,
        variances=20 * 25.0 * ones,
        persons=100 * ones,
        errors=20 / (25.0 * sites),
        leaks=0 * ones,
        offsets=0 * ones,
        swollen=ones,
        outcomes=20,
        root=mean_root(20),
        floor=2.0,
    )


def test_the_released_sum_of_a_standard_deviation_is_read_as_it():
    model = model_of()
    for between in (0.1, 0.3, 1.0):
        read = read_hospital_agreement(model.moments(between)[0], 3.0, model, 0.95)
        assert read.between == pytest.approx(between, rel=1e-4)
        assert read.low < between < read.high
        assert read.share == pytest.approx(between**2 / (between**2 + 1 / 25), rel=1e-3)


def test_more_noise_finds_less_and_widens_the_interval():
    model = model_of()
    released = model.moments(0.2)[0]
    found = [read_hospital_agreement(released, noise, model, 0.95) for noise in (1.0, 10.0, 100.0)]
    assert found[0].differ
    assert not found[2].differ
    widths = [each.high - each.low for each in found]
    assert widths == sorted(widths)
    assert detectable_between(1.0, model) < detectable_between(10.0, model)
    assert detectable_between(1e9, model) == np.inf


def test_the_model_has_mean_and_spread_of_simulated_sites():
    """Sites' scores with independent outcomes, without offsets and with exact shares."""
    generator = np.random.default_rng(3)
    model = model_of()
    drawn = []
    for _ in range(400):
        scores = np.sqrt(25) * generator.standard_normal((20, 10))
        own = scores + 25 * 0.2 * generator.standard_normal((20, 10))
        left = own - own.mean(axis=1, keepdims=True)
        found = np.linalg.norm(left, axis=0) - model.root * (np.sqrt(20 * 25) - model.floor)
        drawn.append(found.sum())
    mean, variance = model.moments(0.2)
    assert np.mean(drawn) == pytest.approx(mean, abs=0.02 * abs(mean) + 1)
    assert np.std(drawn) == pytest.approx(np.sqrt(variance), rel=0.15)
