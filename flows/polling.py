"""The loop that asks Prefect for due runs of one deployment and carries them out, one at a time."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from uuid import UUID

from prefect import Flow, State
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.responses import DeploymentResponse, SetStateStatus
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound, PrefectSignal
from prefect.flow_engine import run_flow
from prefect.server.schemas.schedules import CronSchedule as Dates
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Pending, Scheduled
from rich.console import Console

from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError
from flows.reporter import log_entry
from flows.runs import UNHEARD, end_orphaned_runs, find_runs

_POLL = 2.0  # s
_AGAIN = timedelta(minutes=15)
_PULSE = 20.0  # s; after sixty, Prefect shows a deployment as not ready


@dataclass(frozen=True)
class DeploymentInfo:
    """Public description of a deployment's study, for readers only."""

    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    """Shown next to the study's name; no run reads them."""


@dataclass
class Service:
    """A deployment and the flow that runs for it, independent of the API's answers."""

    study: str
    """Name of the deployment, and the flow's only parameter."""
    make_flow: Callable[[bool], Flow[[str], State[None]]]
    """Makes the flow of one run, which may open a run of the study or only resume one."""
    about: DeploymentInfo
    schedule: CronSchedule
    clock: Clock
    console: Console
    since: datetime
    """Dates of the schedule up to then are over."""
    on_demand: bool = False
    """Whether a run without a date of the schedule may also open a run of the study."""
    again: timedelta = timedelta()
    """How long a date is tried again for which too few sites were there."""
    absent: Callable[[], bool] = lambda: False
    """Returns whether the last run failed because too few sites were there at its start."""
    _told: set[str] = field(default_factory=set)
    _deployment: UUID = field(init=False)
    _known: DeploymentResponse | None = None
    """The deployment as the server last described it, of which only pauses are read."""
    _first_try: datetime | None = None

    def serve(
        self, stop: Callable[[], bool], *, resume: bool, missed: Callable[[str], State[None]]
    ) -> None:
        """Register the deployment and work until stopped.

        Raises ConfigurationError if the server can't be reached at the start; later, it waits until
        the server is back.

        Parameters
        ----------
        stop : callable
            Asked between runs.
        resume : bool
            Ask for a run at once: one was interrupted.
        missed : callable
            Makes the state of a due run that a later one replaces.
        """
        try:
            with get_client(sync_client=True) as client:
                self._register(client)
                self._bury(client, resume)
                if resume:
                    client.create_flow_run_from_deployment(self._deployment)
        except UNHEARD as error:
            raise ConfigurationError(
                f"The Prefect server can't be used ({type(error).__name__}). Check "
                "PREFECT_API_URL and that 'prefect server start' runs there."
            ) from error
        self.console.log(f"{self.study} is scheduled: {self.schedule.cron}", markup=False)
        while not stop():
            self._guarded(missed)
            self.clock.pause(_POLL)

    def _register(self, client: SyncPrefectClient) -> None:
        """Create or replace the deployment; it names no code, so no worker can run it.

        It stays paused if it or its schedule was paused on the server, or the schedule was removed.
        """
        flow = self.make_flow(False)
        known = self._known
        with suppress(ObjectNotFound):
            known = client.read_deployment_by_name(f"{flow.name}/{self.study}")
        paused = known is not None and known.paused
        schedules = known.schedules if known is not None else []
        active = known is None or (bool(schedules) and all(each.active for each in schedules))
        self._deployment = client.create_deployment(
            flow_id=client.create_flow(flow),
            name=self.study,
            schedules=[DeploymentScheduleCreate(schedule=self.schedule, active=active)],
            description=self.about.description,
            tags=list(self.about.tags),
            parameters={**self.about.parameters, "study": self.study},
            paused=paused,
        )
        self._known = client.read_deployment(self._deployment)
        _show_ready(client, self._deployment)

    def _beat(self, client: SyncPrefectClient) -> None:
        """Keep the deployment ready, and make it again where the server no longer has it."""
        try:
            self._known = client.read_deployment(self._deployment)
        except ObjectNotFound:
            self.console.log(
                f"The Prefect server no longer has the deployment {self.study}. It is made again. "
                "Pause it, or stop this service, if no run is to start.",
                markup=False,
            )
            self._register(client)
        _show_ready(client, self._deployment)

    def _bury(self, client: SyncPrefectClient, resume: bool) -> None:
        """End the runs of a killed service; a resuming run obeys cancellations since then."""
        types = [StateType.RUNNING, StateType.PENDING]
        types += [] if resume else [StateType.CANCELLING]
        state = {"type": {"any_": types}}
        left = find_runs(client, deployment_id={"any_": [self._deployment]}, state=state)
        if left:
            within = find_runs(client, parent_flow_run_id={"any_": left}, state=state)
            end_orphaned_runs(client, (*within, *left))

    def _guarded(self, missed: Callable[[str], State[None]]) -> None:
        """Look once for a due run; an absent or faulty API is reported once, and tried again."""
        try:
            run = self._take(missed)
            if run is not None:
                with self._pulse():
                    self._carry_out(run)
        except UNHEARD as error:
            line = f"Prefect gives no usable answer ({type(error).__name__}). It is asked again."
            if line not in self._told:
                self._told.add(line)
                self.console.log(line, markup=False)

    def _take(self, missed: Callable[[str], State[None]]) -> FlowRun | None:
        """Take the latest due run and dismiss earlier ones; None if there is none."""
        with get_client(sync_client=True) as client:
            self._beat(client)
            deployment = self._deployment
            due = find_runs(
                client,
                deployment_id={"any_": [deployment]},
                state={"type": {"any_": [StateType.SCHEDULED]}},
                next_scheduled_start_time={"before_": datetime.now(UTC)},
            )
            for run in due[:-1]:
                state = missed("a later date of the schedule came before it could be.")
                client.set_flow_run_state(run, state, force=True)
                now = datetime.now(UTC)
                client.create_logs([log_entry(run, str(state.message), logging.WARNING, now)])
            if not due:
                return None
            # Taken by one service only: the server refuses a second Pending. No concurrency limit
            # in addition, whose lease would end a study when Prefect is away for some minutes.
            pending: State[None] = Pending()
            if client.set_flow_run_state(due[-1], pending).status != SetStateStatus.ACCEPT:
                return None
        # A run made here: only the id comes from the API.
        return FlowRun(id=due[-1], flow_id=due[-1], deployment_id=deployment, state=pending)

    def _carry_out(self, run: FlowRun) -> None:
        """Run the flow, regardless of the name and the date in the API's answers."""
        before = self.since
        has_date = self._has_date()
        flow = self.make_flow(has_date or self.on_demand)
        try:
            # As a state, never as a result: a result would be unpickled from where the API says.
            with temporary_settings(
                {PREFECT_CLIENT_MAX_RETRIES: 8}
            ):  # tolerates minutes of absence
                run_flow(flow, run, parameters={"study": self.study}, return_type="state")
        except PrefectSignal:  # no Exception: an order of the API to its engine
            self.console.log("Prefect withdrew a due run.", markup=False)
        if has_date and self.absent():
            self._try_again(before)
        else:
            self._first_try = None

    def _try_again(self, before: datetime) -> None:
        """Order another run for the same date, unless the time for it is over."""
        next_try = datetime.now(UTC) + _AGAIN
        first = self._first_try or datetime.now(UTC)
        if next_try - first > self.again:
            self._first_try = None
            return
        self._first_try = first
        self.since = before
        self.console.log(
            f"Sites were missing. {self.study} is tried again at {next_try:%Y-%m-%d %H:%M} UTC.",
            markup=False,
        )
        with get_client(sync_client=True) as client:
            state: State[None] = Scheduled(scheduled_time=next_try)
            client.create_flow_run_from_deployment(self._deployment, state=state)

    def _has_date(self) -> bool:
        """Return whether the schedule as given here has a due date that no run has used yet.

        Anyone who reaches the API may order runs and change schedules there. Neither opens a study.
        """
        now = datetime.now(UTC)
        cron = self.schedule
        dates = Dates(cron=cron.cron, timezone=cron.timezone, day_or=cron.day_or)
        after = self.since + timedelta(microseconds=1)
        if after > now or not asyncio.run(dates.get_dates(n=1, start=after, end=now)):
            return False
        self.since = now
        return True

    @contextmanager
    def _pulse(self) -> Iterator[None]:
        """Keep the deployment ready while a run takes the loop's time."""
        over = Event()

        def beat() -> None:
            while not over.wait(_PULSE):
                with suppress(*UNHEARD), get_client(sync_client=True) as client:
                    self._beat(client)

        Thread(target=copy_context().run, args=(beat,), daemon=True).start()
        try:
            yield
        finally:
            over.set()


def _show_ready(client: SyncPrefectClient, deployment: UUID) -> None:
    """Ask as Prefect's own runner does, which makes the deployment ready; no answer is used."""
    client.get_scheduled_flow_runs_for_deployments([deployment], limit=1)
