"""Hours in which an agent answers: around midnight, around the week, around summer time."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from site_agent.policy.policy import DAYS, Window, opens_at

NIGHT = Window(days=("mon", "fri"), opens=time(20), closes=time(6))
MONDAY = datetime(2026, 11, 23)

CLOCKS = st.integers(0, 24 * 60 - 1).map(lambda m: time(m // 60, m % 60))
WINDOWS = st.lists(
    st.builds(
        lambda **fields: Window(**fields),  # hypothesis would also fill in the aliases
        days=st.lists(st.sampled_from(DAYS), min_size=1, unique=True).map(tuple),
        opens=CLOCKS,
        closes=CLOCKS,
    ),
    min_size=1,
    max_size=3,
)
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1))


@pytest.mark.parametrize(
    ("hour", "opening"),
    [
        (19, 20),  # Monday evening, an hour before
        (20, None),
        (29, None),  # Tuesday 5:00, still Monday's window
        (30, 4 * 24 + 20),  # Tuesday 6:00: closed until Friday evening
        (5 * 24 + 5, None),  # Saturday 5:00
        (5 * 24 + 6, 7 * 24 + 20),  # Saturday 6:00 until next Monday
        (1, 20),  # Monday 1:00: Sunday is not listed
    ],
)
def test_a_window_that_passes_midnight(hour: int, opening: int | None) -> None:
    expected = None if opening is None else MONDAY + timedelta(hours=opening)
    assert opens_at([NIGHT], MONDAY + timedelta(hours=hour)) == expected


def _is_open(windows: list[Window], now: datetime) -> bool:
    """By the definition, minute by minute and without any arithmetic on spans."""
    for window in windows:
        same_day = window.opens < window.closes
        yesterday = DAYS[(now.weekday() - 1) % 7]
        begun = DAYS[now.weekday()] in window.days and now.time() >= window.opens
        if begun and not (same_day and now.time() >= window.closes):
            return True
        if not same_day and yesterday in window.days and now.time() < window.closes:
            return True
    return False


@given(WINDOWS, MOMENTS)
def test_it_is_open_exactly_within_a_window(windows: list[Window], now: datetime) -> None:
    assert (opens_at(windows, now) is None) == _is_open(windows, now)


@given(WINDOWS, MOMENTS)
def test_it_opens_when_it_says_and_not_before(windows: list[Window], now: datetime) -> None:
    opening = opens_at(windows, now)
    if opening is None:
        return
    assert now < opening <= now + timedelta(days=7)
    assert opens_at(windows, opening) is None
    assert opens_at(windows, opening - timedelta(microseconds=1)) == opening
    between = (opening - now) / 97
    assert not any(_is_open(windows, now + step * between) for step in range(97))


@given(MOMENTS)
def test_without_windows_it_is_always_open(now: datetime) -> None:
    assert opens_at([], now) is None


@given(WINDOWS, MOMENTS)
def test_the_zone_is_kept_and_the_clock_on_the_wall_counts(windows, now) -> None:
    zone = ZoneInfo("Europe/Berlin")
    local, plain = opens_at(windows, now.replace(tzinfo=zone)), opens_at(windows, now)
    assert local == (None if plain is None else plain.replace(tzinfo=zone))


def test_summer_time_moves_the_opening_by_an_hour() -> None:
    zone = ZoneInfo("Europe/Berlin")
    window = Window(days=("sun",), opens=time(20), closes=time(21))
    for day, hour in ((22, 19), (29, 18)):  # clocks change on 29 March 2026
        opening = opens_at([window], datetime(2026, 3, day, 1, tzinfo=zone))
        assert opening is not None
        assert opening.astimezone(UTC).hour == hour


@pytest.mark.parametrize(
    ("text", "expected"), [("24:00", 0), (24 * 60, 0), ("9:30", 9.5), (570, 9.5)]
)
def test_times_as_yaml_reads_them(text: str | int, expected: float) -> None:
    window = Window.model_validate({"from": "08:00", "to": text})
    assert window.closes.hour + window.closes.minute / 60 == expected


@pytest.mark.parametrize("text", ["24:30", "8", "-1:00", -5, 79200, 8.5, None, True, "08:00:00"])
def test_what_is_no_time_of_day_is_refused(text: object) -> None:
    with pytest.raises(ValidationError, match="HH:MM"):
        Window.model_validate({"from": text, "to": "10:00"})
