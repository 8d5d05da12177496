"""A schedule that can never be kept is refused before anything is made of it."""

import pytest

from consortium.errors import ConfigurationError
from flows.deployment import check_schedule


@pytest.mark.parametrize(
    ("cron", "timezone", "told"),
    [
        ("99 99 * * *", "UTC", "--cron '99 99"),
        ("* * *", "UTC", "Write five fields"),
        ("", "UTC", "Write five fields"),
        ("0 20 31 2 *", "UTC", "names a day that never comes"),
        ("0 20 * * fri", "Mars/Olympus", "--timezone 'Mars/Olympus' can't be used"),
        ("0 20 * * fri", "", "--timezone '' can't be used"),
    ],
)
def test_what_is_no_schedule_is_told(cron: str, timezone: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        check_schedule(cron, timezone)


def test_a_leap_day_comes() -> None:
    assert check_schedule("0 20 29 2 *", "Europe/Berlin").cron == "0 20 29 2 *"
