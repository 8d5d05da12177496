"""The second opinion: near the exact value, and never below it by more than the library's own."""

import math

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from consortium.privacy.cross_check import cross_check
from consortium.privacy.gdp import epsilon_of

DELTA = 1e-5


@pytest.mark.parametrize(
    "losses", [[0.5], [0.2, *[0.1] * 20], [0.02] * 3, [1.5, 1.5, 0.3], [9.0, 3.0], [30.0]]
)
def test_it_is_the_exact_composition_of_gaussian_releases(losses):
    exact = epsilon_of(math.hypot(*losses), DELTA)
    assert cross_check(losses, DELTA).epsilon == pytest.approx(exact, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("loss", [0.5, 4.0])
def test_a_wider_grid_of_losses_changes_the_seventh_digit(loss):
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(dp_accounting.GaussianDpEvent(1.0 / loss), 1)
    theirs = accountant.get_epsilon(DELTA)
    assert cross_check([loss], DELTA).epsilon == pytest.approx(theirs, rel=1e-6)


def test_releases_without_noise_have_no_bound_and_none_cost_nothing():
    assert cross_check([math.inf, 0.1], DELTA).epsilon == math.inf
    assert cross_check([], DELTA).epsilon == 0.0
