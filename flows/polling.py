"""The loop that asks Prefect for due runs of one deployment and carries them out, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from prefect import Flow, State
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import PrefectException, PrefectSignal
from prefect.flow_engine import run_flow
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Crashed, Pending
from pydantic import ValidationError
from rich.console import Console

from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError

_POLL = 2.0  # s
_MOST = 100
"""Due runs that are looked at in one go, the latest ones."""
_UNHEARD = (httpx.HTTPError, PrefectException, ValidationError, ValueError, TypeError, KeyError)
"""What may come of asking an API that is away or talks nonsense."""


@dataclass
class Service:
    """A deployment and the flow that runs for it, whatever the API says that it is.

    Parameters
    ----------
    study : str
        Name of the deployment, and the flow's only parameter.
    flow : Flow
    schedule : CronSchedule
    clock : Clock
    console : Console
    """

    study: str
    flow: Flow[[str], State[None]]
    schedule: CronSchedule
    clock: Clock
    console: Console
    _told: set[str] = field(default_factory=set)

    def serve(
        self, stop: Callable[[], bool], *, resume: bool, missed: Callable[[str], State[None]]
    ) -> None:
        """Register the deployment and work until stopped.

        Parameters
        ----------
        stop : callable
            Asked between runs.
        resume : bool
            Ask for a run at once: one was interrupted.
        missed : callable
            Makes the state of a due run that a later one stands for.

        Raises
        ------
        ConfigurationError
            If the server can't be reached at the start; later absences are waited out.
        """
        try:
            with get_client(sync_client=True) as client:
                deployment = self._register(client)
                if resume:
                    client.create_flow_run_from_deployment(deployment)
        except (*_UNHEARD, RuntimeError) as error:
            raise ConfigurationError(
                f"The Prefect server can't be used ({type(error).__name__}); check "
                "PREFECT_API_URL and that 'prefect server start' runs there."
            ) from error
        self.console.log(f"{self.study} is scheduled: {self.schedule.cron}", markup=False)
        while not stop():
            self._guarded(deployment, missed)
            self.clock.pause(_POLL)

    def _register(self, client: SyncPrefectClient) -> UUID:
        """Create or replace the deployment; it names no code, so no worker can run it."""
        deployment = client.create_deployment(
            flow_id=client.create_flow(self.flow),
            name=self.study,
            schedules=[DeploymentScheduleCreate(schedule=self.schedule, active=True)],
            parameters={"study": self.study},
            paused=False,
        )
        self._bury(client, deployment)
        return deployment

    def _bury(self, client: SyncPrefectClient, deployment: UUID) -> None:
        """Mark what a killed service left running; else Prefect would show it so for ever."""
        working = {"type": {"any_": [StateType.RUNNING, StateType.PENDING]}}
        left = _runs(client, deployment_id={"any_": [deployment]}, state=working)
        within = _runs(client, parent_flow_run_id={"any_": left}, state=working) if left else []
        for run in (*within, *left):
            state: State[None] = Crashed(message="The service ended; the run is taken up again.")
            client.set_flow_run_state(run, state, force=True)

    def _guarded(self, deployment: UUID, missed: Callable[[str], State[None]]) -> None:
        """Look once; an absent or mad API is told of once and waited out."""
        try:
            run = self._take(deployment, missed)
            if run is not None:
                self._carry_out(run)
        except (*_UNHEARD, RuntimeError) as error:
            line = f"Prefect gives no usable answer ({type(error).__name__}); it is asked again."
            if line not in self._told:
                self._told.add(line)
                self.console.log(line, markup=False)

    def _take(self, deployment: UUID, missed: Callable[[str], State[None]]) -> FlowRun | None:
        """Take the latest due run and dismiss those before it; None if there is none."""
        with get_client(sync_client=True) as client:
            due = _runs(
                client,
                deployment_id={"any_": [deployment]},
                state={"type": {"any_": [StateType.SCHEDULED]}},
                next_scheduled_start_time={"before_": datetime.now(UTC)},
            )
            for run in due[:-1]:
                state = missed("a later date of the schedule came before it could be.")
                client.set_flow_run_state(run, state, force=True)
            if not due:
                return None
            # Taken by one service only: the server refuses a second Pending. No concurrency limit
            # beside it, whose lease would end a study when Prefect is away for some minutes.
            pending: State[None] = Pending()
            if client.set_flow_run_state(due[-1], pending).status != SetStateStatus.ACCEPT:
                return None
        # A run of our own making: of the API's, only the id is kept.
        return FlowRun(id=due[-1], flow_id=due[-1], deployment_id=deployment, state=pending)

    def _carry_out(self, run: FlowRun) -> None:
        """Run the flow, whatever the API calls it."""
        try:
            # As a state, never as a result: a result would be unpickled from where the API says.
            with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 8}):  # bears minutes of absence
                run_flow(self.flow, run, parameters={"study": self.study}, return_type="state")
        except PrefectSignal:  # no Exception: an order of the API to its engine
            self.console.log("Prefect withdrew a due run.", markup=False)


def _runs(client: SyncPrefectClient, **asked: dict[str, Any]) -> list[UUID]:
    """Ids of the runs that a filter asks for, in the order in which they were due."""
    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate(asked),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=_MOST,
    )
    return [run.id for run in reversed(found)]
