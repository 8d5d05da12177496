"""Numbers as people read them."""

import math

import pytest

from consortium.base.formatting import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.123"),
        (-999.4, "-999"),
        (999.6, "1,000"),
        (-5743.2, "-5,740"),
        (123456.0, "123,000"),
        (999999.0, "1e+06"),
        (3.2e7, "3.2e+07"),
        (1.5e-7, "1.5e-07"),
        (0.0, "0"),
        (math.inf, "infinite"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent_up_to_a_million(value, text):
    assert number(value) == text
