"""The centre's flow: open, one task a round, outputs.

What Prefect sees of a study is its name, its run, public progress and the
privacy report. The centre's objects reach the tasks by closure, never as
parameters, so no array, path or key is recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prefect import State, flow, task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY
from prefect.states import Failed

from consortium.algorithms.base import Result
from consortium.engine.centre import Centre
from consortium.engine.session import Round
from consortium.errors import ConfigurationError, ConsortiumError, ExchangeError, OutputError
from consortium.study.plan import Plan
from flows.public import without_logs

_PROGRESS_EVERY = 1.0  # s; each time costs as much as a small round
_TASK: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "retries": 0}


@dataclass(frozen=True)
class Outputs:
    """What a finished study leaves behind.

    ``publish`` writes the output folder and returns a Markdown summary for Prefect.
    """

    publish: Callable[[Plan, list[Round], Result], str]
    progress: Callable[[int, int], None]


def conduct(centre: Centre, outputs: Outputs) -> None:
    """Carry a study out as a Prefect flow.

    Raises
    ------
    ConsortiumError
        What ended the study before its time; the sites have been told.
    """
    study = centre.context.study.study
    ended: list[Exception] = []
    results: list[Result] = []

    @task(name="open", **_TASK)
    def open_run() -> Plan:
        with _discreet(ended):
            return centre.open()

    @task(name="round", task_run_name="{stage} {number}", **_TASK)
    def run_round(stage: str, number: int) -> None:
        del stage, number  # shown by Prefect
        with _discreet(ended):
            centre.step()

    @task(name="finish", **_TASK)
    def finish() -> Result:
        with _discreet(ended):
            return centre.finish()

    @task(name="publish", **_TASK)
    def publish(plan: Plan, result: Result) -> None:
        with _discreet(ended):
            summary = outputs.publish(plan, _session_rounds(centre), result)
        create_markdown_artifact(summary, key=f"privacy-{study}", description="Privacy report")

    def rounds() -> None:
        plan = open_run()
        session = centre.session
        assert session is not None  # noqa: S101 - opened above
        shown = create_progress_artifact(0.0, key="rounds", description="Rounds of the study")
        assert isinstance(shown, UUID)  # noqa: S101 - not in an event loop
        told = time.monotonic()
        while session.pending is not None:
            run_round(session.pending.stage, session.number)
            with _discreet(ended):
                outputs.progress(len(session.rounds), plan.rounds)
            now, last = time.monotonic(), session.pending is None
            if last or now - told > _PROGRESS_EVERY:
                told = now
                update_progress_artifact(shown, 100.0 * len(session.rounds) / plan.rounds)
        results.append(finish())
        publish(plan, results[-1])

    @flow(
        name="consortium-study",
        flow_run_name="{run}",
        validate_parameters=False,
        persist_result=False,
    )
    def conduct_study(study: str, run: str) -> State[None] | None:
        del study, run  # shown by Prefect
        try:
            rounds()
        except _StoppedError as stopped:
            return Failed(message=str(stopped))
        except Exception:  # of Prefect's client; what it says may hold anything
            return Failed(message="The study ended before its time: prefect.")
        return None

    # A synchronous run with heartbeats is padded to whole seconds; this one's rounds are its pulse.
    with without_logs({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        # As a state: a result would be unpickled from wherever the API's answer points.
        conduct_study(study, centre.context.run, return_state=True)
    _raise(ended, centre)
    if not results:
        raise ConfigurationError(
            "Prefect did not let the study's flow run to its end; look at its server's log and "
            "start the study again, which goes on where it stopped."
        )


class _StoppedError(Exception):
    """Stands for an error in what Prefect records: the kind of trouble, no path and no name."""


@contextmanager
def _discreet(ended: list[Exception]) -> Iterator[None]:
    """Keep an error for the caller, and tell Prefect its kind only."""
    try:
        yield
    except Exception as error:
        ended.append(error)
        kind = error.code if isinstance(error, ConsortiumError) else "software"
        raise _StoppedError(f"The study ended before its time: {kind}.") from None


def _raise(ended: list[Exception], centre: Centre) -> None:
    """Raise what ended the study; one that the same command can't take up again is given up."""
    for error in ended[:1]:
        passing = isinstance(error, ExchangeError | OutputError)
        if isinstance(error, ConsortiumError) and not passing:
            centre.abort(error)
        raise error


def _session_rounds(centre: Centre) -> list[Round]:
    return centre.session.rounds if centre.session else []
