"""Waiting that is neither late nor busy."""

import itertools

import pytest

from consortium.engine.clock import Cancellation, Clock, EarlierWaits
from consortium.engine.closing import end_notice
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


class Hand:
    """A clock's hand that only this test moves; rests are written down."""

    def __init__(self) -> None:
        self.at = 0.0
        self.rests: list[float] = []

    def pause(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.at += seconds


def rests(looks: int, took: float, **options: float) -> list[float]:
    """Rests after so many looks of so many seconds each."""
    hand = Hand()
    clock = Clock(lambda: hand.at, hand.pause)
    for _ in itertools.islice(clock.polls(1e6, **options), looks + 1):
        hand.at += took
    return hand.rests


def test_the_first_rests_are_as_short_as_the_exchange_is_worth() -> None:
    assert rests(3, 0.0, pace=0.002) == pytest.approx([0.002] * 3)


def test_a_rest_grows_with_the_wait_up_to_the_slowest() -> None:
    found = rests(2000, 0.0, pace=0.002, slowest=2.0)
    assert found == sorted(found)
    assert found[-1] == 2.0
    assert max(rests(2000, 0.0, pace=0.002)) == 0.25


def test_a_slow_store_is_asked_less_often() -> None:
    assert rests(3, 0.03, pace=0.002) == pytest.approx([0.06] * 3)
    assert rests(3, 9.0, pace=0.002) == pytest.approx([0.25] * 3)


def test_nobody_waits_beyond_the_deadline() -> None:
    hand = Hand()
    for _ in Clock(lambda: hand.at, hand.pause).polls(1.0, 0.3):
        pass
    assert hand.at == pytest.approx(1.0)


def test_after_waits_of_some_length_the_first_look_is_later() -> None:
    earlier = EarlierWaits()
    assert earlier.first_rest(0.02) == 0
    for seconds in (9.0, 0.4, 0.2, 0.8, 0.6):
        earlier.note(seconds)
    assert earlier.first_rest(0.02) == pytest.approx(0.15)
    assert earlier.first_rest(0.002) == pytest.approx(0.04)  # where a look costs little
    assert rests(1, 0.0, pace=0.02, first=0.15) == pytest.approx([0.15, 0.02])


def test_the_first_rest_ends_at_the_deadline() -> None:
    hand = Hand()
    assert not list(Clock(lambda: hand.at, hand.pause).polls(0.5, first=9.0))
    assert hand.at == 0.5
