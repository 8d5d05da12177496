"""The budget, and a second opinion that must agree with the first."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import BudgetError
from consortium.privacy.accountant import Budget, person_loss
from consortium.privacy.cross_check import cross_check
from consortium.privacy.gdp import compose, epsilon_of


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
