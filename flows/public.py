"""Public sentences and events for a Prefect server, without logs, which contain paths."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate
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


def emit(
    event: str, study: str, payload: Mapping[str, Any], occurred: datetime | None = None
) -> None:
    """Emit ``consortium.<event>`` of a study, for automations on the server.

    Parameters
    ----------
    event : str
        Name such as ``round.opened``.
    payload : mapping
        Public names, numbers and sentences.
    occurred : datetime, optional
        When it happened (default: now).
    """
    resource = {"prefect.resource.id": f"consortium.study.{study}", "prefect.resource.name": study}
    with suppress(*UNHEARD):
        told = {"study": study, **payload}
        emit_event(f"consortium.{event}", resource, occurred, payload=told)


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
