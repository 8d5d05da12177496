"""Gaussian DP: reference values of other libraries, the defining integral, and inverses."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from consortium.errors import BudgetError, PrivacyError
from consortium.privacy.cross_check import cross_check
from consortium.privacy.gdp import Budget, compose, delta_of, epsilon_of, mu_of, person_loss

MU = st.floats(1e-3, 60.0)
DELTA = st.floats(1e-12, 0.4)


@given(st.lists(st.floats(0, 3), max_size=10))
def test_charges_compose(losses):
    budget = Budget(100.0)
    for number, mu in enumerate(losses):
        budget = budget.charge(mu, f"round {number}")
    assert budget.mu == pytest.approx(compose(losses))


@given(st.floats(0.01, 10), st.integers(1, 2000))
def test_equal_rounds_use_the_whole_budget_and_not_one_more(limit, rounds):
    budget, each = Budget(limit), limit / math.sqrt(rounds)
    for number in range(rounds):
        budget = budget.charge(each, f"round {number}")
    with pytest.raises(BudgetError, match="one more"):
        budget.charge(each, "one more")
    assert budget.mu == pytest.approx(limit)


@pytest.mark.parametrize("mu", [1.01, math.inf, math.nan])
def test_a_refusal_charges_nothing_and_names_the_release(mu):
    budget = Budget(1.0)
    with pytest.raises(BudgetError, match="round 7 of 'pca'"):
        budget.charge(mu, "round 7 of 'pca'")
    assert budget == Budget(1.0)
    assert budget.charge(1.0, "all of it").mu == 1.0


def test_a_person_is_as_exposed_as_all_their_volumes_in_a_row():
    # k replacements in a row move the statistic by k sensitivities: one Gaussian, k times μ.
    assert person_loss(0.01, 200) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "losses", [[1.0], [0.2] * 25 + [0.5], [0.0, 0.3, 0.4], [3.0], [0.02] * 100]
)
def test_the_other_library_agrees(losses):
    check = cross_check(losses, 1e-5)
    assert check.library == "dp-accounting"
    assert check.epsilon == pytest.approx(epsilon_of(compose(losses), 1e-5), rel=2e-3)


@pytest.mark.parametrize(("noise", "epsilon"), [(5, 9.9973), (20, 1.9931), (50, 0.7255)])
def test_the_other_library_gives_the_published_numbers(noise, epsilon):
    assert cross_check([1 / noise] * 100, 1e-5).epsilon == pytest.approx(epsilon, abs=2e-3)


def test_the_other_library_at_the_ends():
    assert cross_check([], 1e-5).epsilon == 0.0
    assert cross_check([0.0], 1e-5).epsilon == 0.0
    assert cross_check([0.1, math.inf], 1e-5).epsilon == math.inf


@pytest.mark.parametrize(("noise", "epsilon"), [(5, 9.9973), (20, 1.9931), (50, 0.7255)])
def test_hundred_rounds_match_the_published_accountants(noise, epsilon):
    assert epsilon_of(compose([1 / noise] * 100), 1e-5) == pytest.approx(epsilon, abs=6e-5)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.1), (1.0, 0.0), (1.0, 2.5), (4.0, 9.0)])
def test_delta_is_the_expected_excess_of_the_privacy_loss(mu, epsilon):
    # The loss of a Gaussian pair is N(μ²/2, μ²); δ(ε) = E[(1 − e^{ε − L})₊].
    loss = norm(mu**2 / 2, mu)

    def excess(x):
        return loss.pdf(x) * -math.expm1(epsilon - x)

    integral, _ = quad(excess, epsilon, mu**2 / 2 + 12 * mu + epsilon, epsabs=1e-14)
    assert delta_of(mu, epsilon) == pytest.approx(integral, rel=1e-8)


@given(MU, DELTA)
def test_epsilon_and_mu_are_inverses(mu, delta):
    epsilon = epsilon_of(mu, delta)
    assume(epsilon > 1e-6)
    assert delta_of(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    assert mu_of(epsilon, delta) == pytest.approx(mu, rel=1e-6)


@given(st.floats(1e-3, 50), DELTA)
def test_calibrated_loss_keeps_its_promise(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert delta_of(mu, epsilon) <= delta * (1 + 1e-6) + 1e-15
    assert delta_of(mu * 1.001, epsilon) > delta


@given(MU, st.floats(0, 40), st.floats(1e-3, 5))
def test_delta_is_a_probability_and_monotone(mu, epsilon, more):
    delta = delta_of(mu, epsilon)
    assert 0 <= delta <= 1
    assert delta_of(mu, epsilon + more) <= delta <= delta_of(mu + more, epsilon)


@given(st.lists(st.floats(0, 30), max_size=8))
def test_composition_is_pythagorean(losses):
    assert compose(losses) == pytest.approx(float(np.linalg.norm(losses)))


def test_ends_of_the_scale():
    assert delta_of(0.0, 1.0) == 0.0
    assert delta_of(math.inf, 1.0) == 1.0
    assert delta_of(1e-200, 1.0) == 0.0
    assert delta_of(5e-324, 0.0) == 0.0
    assert epsilon_of(0.0, 1e-5) == 0.0
    assert epsilon_of(1e-9, 1e-5) == 0.0
    assert epsilon_of(math.inf, 1e-5) == math.inf
    assert epsilon_of(1e4, 1e-5) > 4e7
    assert mu_of(1e12, 1e-5) == 1e4
    assert 0 < mu_of(0.0, 1e-12) < 1e-11
    assert compose([]) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(PrivacyError, match="δ"):
        epsilon_of(1.0, delta)
    with pytest.raises(PrivacyError, match="δ"):
        mu_of(1.0, delta)


def test_losses_and_promises_without_meaning_are_refused():
    for mu in (-1.0, math.nan):
        with pytest.raises(PrivacyError, match="μ"):
            epsilon_of(mu, 1e-5)
    for epsilon in (-1.0, math.inf, math.nan):
        with pytest.raises(PrivacyError, match="ε"):
            mu_of(epsilon, 1e-5)
