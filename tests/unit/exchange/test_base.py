"""The contract of an exchange: its example holds."""

import doctest

from consortium.exchange import base


def test_the_example_of_the_contract_holds():
    outcome = doctest.testmod(base)
    assert outcome.attempted >= 5
    assert outcome.failed == 0
