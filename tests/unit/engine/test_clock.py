"""Waiting that is neither late nor busy."""

import itertools
from pathlib import Path

import pytest

from consortium.base.work import work_folder
from consortium.engine.clock import (
    WAITING,
    Cancellation,
    Clock,
    EarlierWaits,
    WaitFile,
    Waiting,
    read_waiting,
)
from consortium.engine.closing import end_notice
from consortium.errors import OutputError, RunCancelledError


def board(folder: Path, now: float = 1000.0) -> WaitFile:
    return WaitFile(folder, lambda: now)


def _note(folder: Path) -> Path:
    work_folder(folder).mkdir(exist_ok=True)
    return work_folder(folder) / WAITING


def test_a_short_wait_is_not_worth_a_note(tmp_path: Path) -> None:
    board(tmp_path).show("round 1", 0.99, 9.0, {"east": ""})
    assert read_waiting(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_wait_says_who_since_when_and_until_when(tmp_path: Path) -> None:
    board(tmp_path).show("round 1", 3.0, 7.0, {"east": "", "west": "late"})
    expected = Waiting("round 1", 997.0, 1007.0, {"east": "", "west": "late"})
    assert read_waiting(tmp_path) == expected


def test_a_note_is_written_again_only_if_it_says_something_new(tmp_path: Path) -> None:
    shown = board(tmp_path)
    shown.show("round 1", 3.0, 7.0, {"east": "", "west": ""})
    _note(tmp_path).unlink()
    shown.show("round 1", 4.0, 6.0, {"east": "", "west": ""})
    assert read_waiting(tmp_path) is None
    shown.show("round 1", 5.0, 5.0, {"west": ""})
    assert read_waiting(tmp_path) == Waiting("round 1", 995.0, 1005.0, {"west": ""})
    shown.show("round 2", 1.0, 9.0, {"west": ""})
    assert read_waiting(tmp_path) == Waiting("round 2", 999.0, 1009.0, {"west": ""})


def test_after_the_wait_the_note_is_gone_and_may_come_again(tmp_path: Path) -> None:
    shown = board(tmp_path)
    shown.clear()
    for _ in range(2):
        shown.show("round 1", 3.0, 7.0, {"east": ""})
        assert read_waiting(tmp_path) is not None
        shown.clear()
        assert read_waiting(tmp_path) is None


def test_what_a_dead_centre_left_goes_with_the_first_wait(tmp_path: Path) -> None:
    board(tmp_path).show("round 1", 3.0, 7.0, {"east": ""})
    board(tmp_path).clear()
    assert read_waiting(tmp_path) is None


DAMAGED = ["", "{", "[]", "7", "{}", '{"step": "x", "since": 1, "until": 2, "sites": []}']
DAMAGED += ['{"step": "x", "since": "soon", "until": 2, "sites": {}}']


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_note_is_named(text: str, tmp_path: Path) -> None:
    _note(tmp_path).write_text(text)
    with pytest.raises(OutputError, match=r"waiting\.json is damaged. Remove it"):
        read_waiting(tmp_path)


def test_what_can_not_be_written_or_removed_is_told(tmp_path: Path) -> None:
    _note(tmp_path).mkdir()
    with pytest.raises(OutputError, match="can't be written"):
        board(tmp_path).show("round 1", 3.0, 7.0, {"east": ""})
    with pytest.raises(OutputError, match="can't be removed"):
        board(tmp_path).clear()


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


def test_no_rest_goes_on_beyond_what_is_due() -> None:
    hand, looks = Hand(), list[float]()
    due = (0.5, 1.25, 2.0)
    until = lambda: min((at - hand.at for at in due if at > hand.at), default=9.0)  # noqa: E731
    for _ in Clock(lambda: hand.at, hand.pause).polls(3.0, 0.4, first=9.0, due=until):
        looks.append(hand.at)
    assert looks == pytest.approx([0.5, 0.9, 1.25, 1.65, 2.0, 2.4, 2.8])
