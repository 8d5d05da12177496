"""A Prefect server that answers nothing during a run: no site is lost, and the result is there."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)

from consortium.algorithms.base import Result
from consortium.engine.clock import Clock
from consortium.engine.session import Round
from consortium.study.plan import Plan
from flows.outputs import Outputs, PublishedTexts
from flows.reporter import Reporter
from flows.study import StudyFlow
from tests.support.hostile_prefect import hostile_prefect
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, Ticks, build
from tests.support.prefect_server import Server

SLOW, EVERY = "west", 1.2
"""A site that looks at the exchange so seldom (s) that the centre reports every wait for it."""


class RealTime(Ticks):
    """Time that passes by itself."""

    def clock(self) -> Clock:
        return Clock()


@contextmanager
def agents_at_work(local: LocalConsortium) -> Iterator[None]:
    """Let the sites work in a thread of their own."""
    over, looked = threading.Event(), [0.0]

    def work() -> None:
        while not over.wait(0.01):
            rare = time.monotonic() - looked[0] < EVERY
            local.absent = {SLOW} if rare else set()
            looked[0] = looked[0] if rare else time.monotonic()
            local.pump()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_prefect_that_hangs_during_a_run_loses_nobody(
    comes_back: bool, tmp_path: Path, server: Server
) -> None:
    text = STUDY.replace("join: 4, answer: 4", "join: 6, answer: 6, ready: 20")
    local = LocalConsortium(build(tmp_path / "place", text=text, dropouts=1))
    local.ticks = RealTime()
    exchange = local.place.files.open_exchange()
    answers, held = threading.Event(), list[str]()
    survivors: list[tuple[int, ...]] = []

    def hang(path: str, answer: Any) -> Any:
        if exchange.children("runs") and not answers.is_set():
            held.append(path)
            answers.wait()
        return answer

    def publish(_: Plan, rounds: list[Round], __: Result) -> PublishedTexts:
        survivors.extend(done.survivors for done in rounds)
        if comes_back:
            answers.set()
        return PublishedTexts("summary")

    began = server.now()
    soon = {} if comes_back else {PREFECT_API_REQUEST_TIMEOUT: 1.0, PREFECT_CLIENT_MAX_RETRIES: 0}
    with (
        hostile_prefect(server, hang) as api,
        temporary_settings({PREFECT_API_URL: api.url, **soon}),
    ):
        try:
            with agents_at_work(local):
                StudyFlow(local.centre(), Outputs(publish, lambda _done, _all: None)).run()
        finally:
            answers.set()
    assert held, "Prefect was asked nothing, so it can't have been in the way"
    assert len(survivors) == 3
    assert set(survivors) == {tuple(range(len(SITES)))}
    assert "continuing without" not in local.said("centre")
    if not comes_back:
        return
    kept = server.written_since(began)
    assert "the result is published" in kept
    assert f"waiting for {SLOW}" in kept


def test_a_flood_of_reports_takes_no_memory_and_no_time() -> None:
    reporter, began, held = Reporter(), time.monotonic(), threading.Event()
    done: list[int] = []
    with reporter.at_work():
        reporter.do(held.wait)
        for number in range(50_000):
            reporter.do(lambda number=number: done.append(number))  # type: ignore[misc]
            reporter.replace("progress", lambda number=number: done.append(-number))  # type: ignore[misc]
        assert time.monotonic() - began < 5.0
        held.set()
    assert done[-2:] == [49_999, -49_999]
    assert len(done) <= 2 * 501
