"""A run that is cancelled ends where its centre waits, and says so to the sites."""

import pytest

from consortium.engine.cancellation import Cancellation
from consortium.engine.clock import Clock
from consortium.engine.ending import end_notice
from consortium.errors import RunCancelledError


def test_time_goes_on_until_a_run_is_cancelled() -> None:
    order, waited = Cancellation(), list[float]()
    clock = order.clock(Clock(pause=waited.append))
    order.check()
    clock.pause(1.0)
    order.order.set()
    with pytest.raises(RunCancelledError, match="was cancelled on the coordinator's Prefect"):
        clock.pause(2.0)
    assert waited == [1.0]


def test_sites_are_told_of_it_in_words_of_its_own() -> None:
    order = Cancellation()
    order.order.set()
    with pytest.raises(RunCancelledError) as caught:
        order.check()
    told = end_notice(caught.value)
    assert b'"code": "cancelled"' in told
    assert b"was cancelled" in told
