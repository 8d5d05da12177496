"""When an agent answers: windows of the week in the site's local time."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer

from consortium.base.frozen_model import FrozenModel

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _clock(value: Any) -> time:
    """Read HH:MM; YAML makes an unquoted 22:30 the number 22 * 60 + 30."""
    if isinstance(value, time):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 24 * 60:
        value = f"{value // 60:02d}:{value % 60:02d}"
    try:
        return datetime.strptime("00:00" if value == "24:00" else value, "%H:%M").time()
    except (TypeError, ValueError) as error:
        raise ValueError("write a time of day as HH:MM, from 00:00 to 24:00") from error


ClockTime = Annotated[time, BeforeValidator(_clock), PlainSerializer(lambda t: f"{t:%H:%M}")]


class Window(FrozenModel):
    """From a time of day to the next time that the clock shows another, on given days."""

    model_config = ConfigDict(populate_by_name=True)

    days: tuple[Day, ...] = Field(
        default=DAYS, min_length=1, description="Days of the week on which the window opens."
    )
    opens: ClockTime = Field(alias="from", description="Time of day at which it opens, HH:MM.")
    closes: ClockTime = Field(
        alias="to",
        description="Time of day at which it closes, HH:MM; not after the opening time: on the "
        "next day.",
    )

    def spans(self, first: date, days: int) -> Iterator[tuple[datetime, datetime]]:
        """Yield the window's openings and closings on so many days, in local time."""
        length = datetime.combine(first, self.closes) - datetime.combine(first, self.opens)
        if length <= timedelta():
            length += timedelta(days=1)
        for day in (first + timedelta(days=number) for number in range(days)):
            if DAYS[day.weekday()] in self.days:
                start = datetime.combine(day, self.opens)
                yield start, start + length


def opens_at(windows: Sequence[Window], now: datetime) -> datetime | None:
    """When an agent answers next; None if it answers now.

    Parameters
    ----------
    windows : sequence of Window
        Without any, the agent always answers.
    now : datetime
        The site's local time; a time zone is kept.

    Returns
    -------
    datetime or None
        Within seven days of ``now``. Openings and closings are what the clock on the wall shows,
        also when summer time begins or ends.
    """
    wall = now.replace(tzinfo=None)
    yesterday = wall.date() - timedelta(days=1)  # its window may have passed midnight
    spans = [span for window in windows for span in window.spans(yesterday, 9)]
    if not spans or any(start <= wall < end for start, end in spans):
        return None
    return min(start for start, _ in spans if start > wall).replace(tzinfo=now.tzinfo)
