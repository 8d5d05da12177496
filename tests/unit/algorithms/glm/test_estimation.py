"""Corrections of the last round: each against draws of the errors that it stands for."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from consortium.algorithms.glm import centre
from consortium.algorithms.glm.estimation import _unevenness, expected_of
from consortium.algorithms.glm.kernels.contrast_regression import (
    PRIOR_WIDTH,
    ContrastSums,
    Expected,
    squared_balance,
)
from consortium.kernels.moments import unpack_symmetric

DRAWS = 20_000


@pytest.fixture(scope="module")
def known():
    """Plan, centring and first round of a private study with two covariates, before its end."""
    people = make_people(600, 12, 6, np.random.default_rng(0))
    seen = []

    def capture(*arguments):
        seen.append(arguments)
        return expected_of(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centre, "expected_of", capture)
        sites = len(np.unique(people.site))
        run_trial(make_trial(people), noise_of(8.0, sites), np.random.default_rng(5))
    (arguments,) = seen
    return arguments


@pytest.mark.parametrize("lean", [0.0, 1.0])
def test_unbalanced_sites_add_as_much_as_imbalances_that_vary_by_half(lean):
    """A site's imbalance is its information times 1 + ε, with ε of standard deviation ½."""
    participants = np.linspace(1.0, 2.0, 12)
    participants /= participants.sum()
    information = participants ** (1 + lean)
    information /= information.sum()
    varied = information * (1 + 0.5 * np.random.default_rng(0).standard_normal((DRAWS, 12)))
    drawn = np.square(varied - participants).sum(axis=1).mean()
    assert _unevenness(information, participants) == pytest.approx(drawn, rel=0.15)


def test_noise_of_the_moments_moves_a_covariates_sum_as_symmetric_noise_does(known):
    plan, centring, learned = known
    exact = replace(learned, noise={**learned.noise, "moment": 0.0})
    added = (
        expected_of(plan, centring, learned).adjustment_noise
        - expected_of(plan, centring, exact).adjustment_noise
    )
    generator = np.random.default_rng(2)
    slopes = learned.adjustment.slopes
    packed = learned.noise["moment"] * generator.standard_normal(
        (DRAWS, len(slopes) * (len(slopes) + 1) // 2)
    )
    moved = np.array([unpack_symmetric(each) @ slopes for each in packed])
    assert added == pytest.approx(np.square(moved).mean() / learned.spread**2, rel=0.05)


def test_an_error_of_a_count_moves_a_covariates_sum_by_its_mean(known):
    plan, centring, learned = known
    exact = replace(centring, count_variances=np.zeros_like(centring.count_variances))
    added = (
        expected_of(plan, centring, learned).adjustment_noise
        - expected_of(plan, exact, learned).adjustment_noise
    )
    errors = np.random.default_rng(1).standard_normal((DRAWS, len(centring.count_variances)))
    moved = (
        errors * np.sqrt(centring.count_variances) * centring.weights @ learned.adjustment.centres
    )
    assert added > 0
    assert added == pytest.approx(moved.var(axis=0).mean() / learned.spread**2, rel=0.05)


def test_the_divisor_is_as_uncertain_as_the_scale_that_clips(known):
    """A scale that is off by a factor f changes clipped sums by f at most: half of ln f²."""
    plan, centring, learned = known
    for error in (0.0, 1.0):
        norms = replace(learned.norms, log_square_error=error)
        width = expected_of(plan, centring, replace(learned, norms=norms)).width
        logarithms = error / 2 * np.random.default_rng(2).standard_normal(DRAWS)
        whole = logarithms + PRIOR_WIDTH * np.random.default_rng(3).standard_normal(DRAWS)
        assert width == pytest.approx(whole.std(), rel=0.03)


def test_more_participants_count_as_clipped_if_the_centre_was_far_off(known):
    plan, centring, learned = known
    shares = []
    for far in (0.0, 2.0, 20.0):
        shift = np.full_like(learned.norms.shift, far * learned.norms.factor)
        moved = replace(learned, norms=replace(learned.norms, shift=shift))
        shares.append(expected_of(plan, centring, moved).clipped_share)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] == pytest.approx(1.0)


def test_a_far_centre_is_missed_by_a_fourteenth_of_the_way(known):
    """Clipping shortens the way to a centre; the 0.07 of it that remains counts as an error."""
    learned = known[2]
    near = replace(learned, norms=replace(learned.norms, shift=np.zeros_like(learned.norms.shift)))
    way = learned.norms.shift / learned.norms.factor
    added = learned.missed() - near.missed()
    assert added == pytest.approx(np.square(0.07 * way).mean())
    assert added > 0


def test_hidden_weights_count_with_the_variance_of_their_prior():
    """The posterior of b ~ N(0, π²), observed with noise, by draws near the observed value."""
    expected = Expected(
        divisor=10.0,
        squares=1.0,
        clip=1.0,
        persons=100.0,
        explained=0.0,
        root=1.0,
        adjustment_noise=0.0,
        offset_noise=0.0,
        clipped_share=0.5,
    )
    noise = {"balance": 1.0}
    rng = np.random.default_rng(4)
    drawn = np.sqrt(0.5) * PRIOR_WIDTH * 10.0 * rng.standard_normal(500_000)
    found = drawn + rng.standard_normal(500_000)
    for observed in (0.0, 2.0):
        near = np.abs(found - observed) < 0.1
        sums = ContrastSums(
            effects=np.zeros(1),
            divisor=10.0,
            squares=np.ones(1),
            spread=1.0,
            balance=np.array([observed]),
            noise=noise,
            tail_variance=np.zeros(1),
        )
        assert squared_balance(sums, expected)[0] == pytest.approx(
            np.square(drawn[near]).mean(), rel=0.05
        )


def test_an_unsure_share_of_participants_with_an_outcome_is_kept_for_intervals(known):
    plan, centring, learned = known
    shares = replace(learned.norms.shares, variances=np.full(plan.outcomes, 0.04))
    gaps = replace(learned, norms=replace(learned.norms, shares=shares))
    assert expected_of(plan, centring, gaps).presence_variance == pytest.approx(
        np.full(plan.outcomes, 0.04)
    )
