"""Flow runs on a Prefect server; only ids and cancellations in its answers are used.

A run that was cancelled there ends. Other statements of the server about a run have no effect here.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from threading import Event, Thread
from typing import Any
from uuid import UUID

import httpx
from prefect import State
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import PrefectException
from prefect.states import Cancelled, Crashed
from pydantic import ValidationError

from consortium.engine.clock import Cancellation

UNHEARD = (
    httpx.HTTPError,
    PrefectException,
    ValidationError,
    ValueError,
    TypeError,
    KeyError,
    RuntimeError,
)
"""Errors of requests to an API that is absent or faulty."""
_LOOK = 5.0  # s
_MOST = 100
"""Maximum number of runs in one request, the latest ones."""
_UNDER_WAY = [StateType.RUNNING, StateType.PENDING]
_CANCELLED = [StateType.CANCELLING, StateType.CANCELLED]


def find_runs(client: SyncPrefectClient, **asked: dict[str, Any]) -> list[UUID]:
    """Return the ids of the runs that match a filter, in the order in which they were due."""
    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate(asked),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=_MOST,
    )
    return [run.id for run in reversed(found)]


def cancelled(client: SyncPrefectClient, runs: Sequence[UUID]) -> bool:
    """Return whether any of these runs was cancelled; other runs in the answer are ignored."""
    asked = FlowRunFilter.model_validate({"id": {"any_": list(runs)}})
    found = client.read_flow_runs(flow_run_filter=asked, limit=_MOST)
    return any(run.id in runs and run.state_type in _CANCELLED for run in found)


def end_orphaned_runs(client: SyncPrefectClient, runs: Sequence[UUID]) -> None:
    """End the runs and tasks of a killed process, which would otherwise stay running for ever."""
    ids = {"any_": list(runs)}
    left = {"type": {"any_": _UNDER_WAY}}
    ended: State[None] = Crashed(message="The process ended; the run is resumed.")
    tasks = client.read_task_runs(
        flow_run_filter=FlowRunFilter.model_validate({"id": ids}),
        task_run_filter=TaskRunFilter.model_validate({"state": left}),
    )
    for task in tasks:
        client.set_task_run_state(task.id, ended, force=True)
    for run in find_runs(client, id=ids, state=left):
        client.set_flow_run_state(run, ended, force=True)
    for run in find_runs(client, id=ids, state={"type": {"any_": [StateType.CANCELLING]}}):
        client.set_flow_run_state(run, Cancelled(message="The process ended."), force=True)


@contextmanager
def watch_cancellation(cancellation: Cancellation, runs: Sequence[UUID]) -> Iterator[None]:
    """Check every few seconds whether any of some runs was cancelled."""
    over = Event()

    def look() -> None:
        while not cancellation.order.is_set():
            with suppress(*UNHEARD), get_client(sync_client=True) as client:
                if cancelled(client, runs):
                    cancellation.order.set()
            if over.wait(_LOOK):
                return

    Thread(target=copy_context().run, args=(look,), daemon=True).start()
    try:
        yield
    finally:
        over.set()
