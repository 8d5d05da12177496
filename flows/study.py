"""The centre's flow: open, one task a round, outputs.

What Prefect sees of a study is its name, its run, public progress and the
privacy report. The centre's objects reach the tasks by closure, never as
parameters, so no array, path or key is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prefect import flow, task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from consortium.algorithms.base import Result
from consortium.engine.centre import Centre
from consortium.engine.session import Round
from consortium.errors import ConsortiumError
from consortium.plan import Plan

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
    study = centre.setting.study.study

    @task(name="open", **_TASK)
    def open_run() -> Plan:
        return centre.open()

    @task(name="round", task_run_name="{stage} {number}", **_TASK)
    def run_round(stage: str, number: int) -> None:
        del stage, number  # shown by Prefect
        centre.step()

    @task(name="finish", **_TASK)
    def finish() -> Result:
        return centre.finish()

    @task(name="publish", **_TASK)
    def publish(plan: Plan, result: Result) -> None:
        summary = outputs.publish(plan, _session_rounds(centre), result)
        create_markdown_artifact(summary, key=f"privacy-{study}", description="Privacy report")

    @flow(name="consortium-study", flow_run_name="{run}", validate_parameters=False)
    def conduct_study(study: str, run: str) -> None:
        del study, run  # shown by Prefect
        plan = open_run()
        session = centre.session
        assert session is not None  # noqa: S101 - opened above
        shown = create_progress_artifact(0.0, key="rounds", description="Rounds of the study")
        assert isinstance(shown, UUID)  # noqa: S101 - not in an event loop
        while session.pending is not None:
            run_round(session.pending.stage, session.number)
            outputs.progress(len(session.rounds), plan.rounds)
            update_progress_artifact(shown, 100.0 * len(session.rounds) / plan.rounds)
        publish(plan, finish())

    # A synchronous run with heartbeats is padded to whole seconds; this one's rounds are its pulse.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        try:
            conduct_study(study, centre.setting.run)
        except ConsortiumError as error:
            centre.abort(error)
            raise


def _session_rounds(centre: Centre) -> list[Round]:
    return centre.session.rounds if centre.session else []
