"""Public sentences and events for a Prefect server, without logs, which contain paths."""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate, LogCreate
from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.settings import PREFECT_LOGGING_TO_API_ENABLED, temporary_settings
from prefect.utilities.urls import url_for

from flows.runs import UNHEARD


def without_logs(more: Mapping[Any, Any] | None = None) -> AbstractContextManager[object]:
    """Keep every log on this machine, because Prefect's own engine logs tracebacks of failures.

    Parameters
    ----------
    more : mapping, optional
        Other settings of Prefect for the same time.
    """
    return temporary_settings({PREFECT_LOGGING_TO_API_ENABLED: False, **(more or {})})


def emit(event: str, study: str, payload: Mapping[str, Any]) -> None:
    """Emit ``consortium.<event>`` of a study, for automations on the server.

    Parameters
    ----------
    event : str
        Name such as ``round.opened``.
    payload : mapping
        Public names, numbers and sentences.
    """
    resource = {"prefect.resource.id": f"consortium.study.{study}", "prefect.resource.name": study}
    with suppress(*UNHEARD):
        emit_event(f"consortium.{event}", resource, payload={"study": study, **payload})


def join_runs(above: list[UUID], here: list[UUID], study: str, run: str) -> None:
    """Give a schedule's flow run the name of the study's run that it carries out, and a link.

    Parameters
    ----------
    above, here : list of UUID
        The schedule's flow run, if there is one, and the study's.
    """
    with suppress(*UNHEARD), get_client(sync_client=True) as client:
        for each, page in zip(above, [url_for("flow-run", each) for each in here], strict=False):
            client.update_flow_run(each, name=run)
            artifact = {"key": f"run-{study}", "type": "markdown", "data": f"[{run}]({page})"}
            artifact |= {"description": "The study's run", "flow_run_id": str(each)}
            client.create_artifact(ArtifactCreate.model_validate(artifact))


@dataclass
class PublicLines:
    """Lines of the flow that runs, written to Prefect's log of it in batches."""

    _lines: list[LogCreate] = field(default_factory=list)

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Keep a line for the next batch; nothing is kept outside of a flow."""
        context = FlowRunContext.get()
        if context is not None and context.flow_run is not None:
            entry = {"name": "consortium", "level": level, "message": line}
            entry |= {"timestamp": datetime.now(UTC), "flow_run_id": context.flow_run.id}
            self._lines.append(LogCreate.model_validate(entry))

    def send(self) -> None:
        """Write the kept lines; they are lost if the API is absent."""
        lines = self._lines
        self._lines = []
        if lines:
            with suppress(*UNHEARD), get_client(sync_client=True) as client:
                client.create_logs(lines)
