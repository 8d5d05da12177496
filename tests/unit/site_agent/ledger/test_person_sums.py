"""Sums of squares without rounding."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import LedgerError
from site_agent.ledger.person_sums import exact_root, exact_square

PRICES = st.floats(0, 1e150, allow_subnormal=True)


@given(st.lists(PRICES, max_size=8), PRICES)
def test_what_is_added_is_taken_away_to_the_last_bit(prices: list[float], other: float) -> None:
    before = sum(map(exact_square, prices))
    assert before + exact_square(other) - exact_square(other) == before
    assert before == sum((Fraction(mu) ** 2 for mu in prices), Fraction()) * 2**2148


@given(PRICES)
def test_one_price_is_its_own_sum(mu: float) -> None:
    square = exact_square(mu)
    assert exact_root(square) == pytest.approx(mu, rel=1e-15) or mu < 1e-150  # squares underflow


def test_what_no_double_holds_is_more_than_any_limit() -> None:
    assert exact_root(2 * exact_square(1.7e308)) == math.inf


@pytest.mark.parametrize("mu", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_price(mu: float) -> None:
    with pytest.raises(LedgerError, match="no price"):
        exact_square(mu)
