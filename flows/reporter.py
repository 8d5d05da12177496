"""Reports of a flow to Prefect, sent from a thread of their own.

A client of Prefect tries a request again for minutes. In the thread of the study it would delay the
rounds, and sites that answered in time would seem to be late.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Condition, Thread
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import LogCreate
from prefect.context import FlowRunContext

_MOST = 500
"""Maximum number of reports that wait."""
_EVERY = 1.0  # s; one request for all lines of that time
_LAST = 10.0  # s that the end of a flow waits for its last reports

Act = Callable[[], object]


@dataclass(frozen=True)
class _Line:
    text: str
    level: int
    moment: datetime


class Reporter:
    """Queue of reports to Prefect. Its methods never wait for the server.

    If the server does not take the reports in time, the oldest ones are dropped.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: deque[_Line | Act] = deque(maxlen=_MOST)
        self._newest: dict[str, Act] = {}
        self._dropped = 0
        self._over = False

    def say(self, text: str, level: int = logging.INFO) -> None:
        """Write a line to Prefect's log of the flow run."""
        self.do(_Line(text, level, datetime.now(UTC)))

    def do(self, report: _Line | Act) -> None:
        """Carry out a report after those that wait."""
        with self._changed:
            self._dropped += len(self._waiting) == _MOST
            self._waiting.append(report)
            self._changed.notify()

    def replace(self, kind: str, report: Act) -> None:
        """Carry out a report in place of an earlier one of its kind that still waits."""
        with self._changed:
            self._newest[kind] = report
            self._changed.notify()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Send reports for the duration, in the present flow run.

        At the end, the last reports are given some seconds.
        """
        send = Thread(target=copy_context().run, args=(self._work,), name="reports", daemon=True)
        send.start()
        try:
            yield
        finally:
            with self._changed:
                self._over = True
                self._changed.notify()
            send.join(_LAST)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or self._waiting or self._newest)
                self._changed.wait_for(lambda: self._over, _EVERY)
                over = self._over
                reports = [*self._waiting, *self._newest.values()]
                self._waiting.clear()
                self._newest.clear()
                if self._dropped:
                    text = f"{self._dropped} reports were dropped: Prefect did not take them."
                    reports.insert(0, _Line(text, logging.WARNING, datetime.now(UTC)))
                self._dropped = 0
            _send(reports)
            if over:
                return


def _send(reports: list[_Line | Act]) -> None:
    """Send reports. One that fails is lost; whatever the API answers, the study continues."""
    context = FlowRunContext.get()
    lines = [report for report in reports if isinstance(report, _Line)]
    if lines and context is not None and context.flow_run is not None:
        run = context.flow_run.id
        with suppress(Exception), get_client(sync_client=True) as client:
            client.create_logs(
                [log_entry(run, each.text, each.level, each.moment) for each in lines]
            )
    for report in reports:
        if not isinstance(report, _Line):
            with suppress(Exception):
                report()


def log_entry(run: UUID, text: str, level: int, moment: datetime) -> LogCreate:
    """Make a line of the log of a flow run."""
    return LogCreate(
        name="consortium", level=level, message=text, timestamp=moment, flow_run_id=run
    )
