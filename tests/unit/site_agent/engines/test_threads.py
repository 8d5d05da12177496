"""Subjects in parallel: order, how far ahead, and errors where they are due."""

import threading
import time

import pytest

from site_agent.engines.base import Threads


@pytest.mark.parametrize("workers", [1, 2, 5, 50])
def test_results_come_in_order(workers):
    def slow_first(number):
        time.sleep(0.01 / (number + 1))
        return number * number

    assert list(Threads(workers).map(slow_first, range(20))) == [n * n for n in range(20)]
    assert list(Threads(workers).map(slow_first, [])) == []


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_than_the_workers_run_ahead(workers):
    begun = []
    results = Threads(workers).map(begun.append, range(100))
    next(results)
    results.close()
    assert len(begun) <= workers


def test_workers_work_at_the_same_time():
    meeting = threading.Barrier(3, timeout=10)
    assert len(list(Threads(3).map(lambda _: meeting.wait(), range(3)))) == 3


def test_an_error_comes_where_its_result_was_due():
    results = Threads(2).map(lambda number: 1 / (number - 2), range(5))
    assert [next(results), next(results)] == [-0.5, -1.0]
    with pytest.raises(ZeroDivisionError):
        next(results)
