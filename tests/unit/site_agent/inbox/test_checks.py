"""Checks that run while pages are shown: one at a time, and each ends."""

import threading
from datetime import UTC, datetime
from typing import cast

import pytest

from consortium.errors import ConfigurationError, DataError
from site_agent.approval.inspection import Inspection, Watch
from site_agent.inbox.checks import StudyChecks
from tests.support.patience import PATIENCE

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def test_one_check_runs_at_a_time_and_counts_participants() -> None:
    checks = StudyChecks()
    go = threading.Event()
    half = threading.Event()
    ended = threading.Event()

    def work(watch: Watch) -> Inspection:
        for number in watch(range(4), 4):
            if number == 2:
                half.set()
                assert go.wait(PATIENCE)
        ended.set()
        return cast("Inspection", object())

    checks.start("a", "digest", NOW, work)
    assert half.wait(PATIENCE)
    check = checks.of("a")
    assert check is not None
    assert (check.is_running, check.done, check.many) == (True, 2, 4)
    with pytest.raises(ConfigurationError, match="Only one check can be under way"):
        checks.start("b", "digest", NOW, work)
    go.set()
    assert ended.wait(PATIENCE)
    for thread in threading.enumerate():
        if thread.name == "check":
            thread.join(PATIENCE)
    assert (check.is_running, check.done) == (False, 4)


@pytest.mark.parametrize("error", [DataError("no data"), ZeroDivisionError("a fault")])
def test_an_error_ends_a_check(error: Exception) -> None:
    checks = StudyChecks()

    def fail(_: Watch) -> Inspection:
        raise error

    for _ in range(2):  # another can begin
        checks.start("a", "digest", NOW, fail)
        for thread in threading.enumerate():
            if thread.name == "check":
                thread.join(PATIENCE)
        check = checks.of("a")
        assert check is not None
        assert not check.is_running
        assert str(error) in check.trouble
