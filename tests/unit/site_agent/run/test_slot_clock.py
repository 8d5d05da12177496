"""A site's steps end at multiples of a slot, counted from when they began."""

import pytest

from site_agent.run.slot_clock import SlotClock


class Hand:
    """A clock whose hand is set."""

    def __init__(self) -> None:
        self.now = 1e6

    def read(self) -> float:
        return self.now


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def slots(hand: Hand) -> SlotClock:
    return SlotClock(hand.read)


def test_nothing_is_held_before_the_first_hold(hand: Hand, slots: SlotClock) -> None:
    assert slots.left == 0.0
    slots.begin()
    hand.now += 1.0
    assert slots.left == 0.0


@pytest.mark.parametrize("taken", [0.0, 0.5, 2.0])
def test_a_step_ends_with_its_slot_however_long_it_took(
    hand: Hand, slots: SlotClock, taken: float
) -> None:
    slots.begin()
    hand.now += taken
    slots.hold(2.0)
    assert slots.left == pytest.approx(2.0 - taken)
    hand.now = 1e6 + 2.0
    assert slots.left == 0.0


def test_a_step_that_overruns_ends_with_the_next_slot(hand: Hand, slots: SlotClock) -> None:
    slots.begin(at=hand.now - 1.0)
    hand.now += 1.5
    slots.hold(2.0)
    assert slots.left == pytest.approx(1.5)


def test_another_slot_is_counted_from_the_end_of_the_last(hand: Hand, slots: SlotClock) -> None:
    slots.begin()
    slots.hold(2.0)
    hand.now += 2.3  # the site looked a little late
    slots.begin()
    slots.hold_on(2.0)
    assert slots.left == pytest.approx(1.7)


def test_a_rest_too_short_for_the_clock_is_none(hand: Hand, slots: SlotClock) -> None:
    slots.begin()
    slots.hold(2.0)
    hand.now += 2.0 - 1e-7
    assert slots.left == 0.0
