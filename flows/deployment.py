"""A study's schedule on a Prefect server, which decides only the time of the runs.

The service is a loop of our own, not Prefect's runner: that one starts whatever entrypoint the API
names once the API hands it a run of an unknown deployment. Here the API's answers are read only for
the identity of a due run and for its cancellation or pause: a cancelled run ends, and a paused
deployment stays paused. Parameters, entrypoints, commands and results in the answers are never
read.
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal

from prefect import Flow, State, flow
from prefect._vendor.croniter import (  # type: ignore[attr-defined]  # CronSchedule's own
    CroniterBadDateError,
    croniter,
)
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.schedules import CronSchedule
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, PREFECT_FLOWS_HEARTBEAT_FREQUENCY
from prefect.states import Cancelled, Completed, Failed
from pydantic import ValidationError
from rich.console import Console

from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError
from flows.polling import DeploymentInfo, Service
from flows.public import emit, without_logs
from flows.reporter import Reporter

FLOW = "scheduled-study"
NOT_OPENED = "Not opened"


@dataclass(frozen=True)
class DueRunOutcome:
    """Outcome of a due run, in a sentence that Prefect may show to everyone.

    ``absent`` is a failure for lack of sites before anything was asked, so the same date may be
    tried again. ``uncovered`` gives a sentence for each site whose approval does not cover the
    next run, if too few cover it.
    """

    kind: Literal["complete", "not opened", "absent", "failed", "cancelled"]
    message: str
    uncovered: Mapping[str, str] = field(default_factory=dict)

    @property
    def level(self) -> int:
        """Level of the message in a log."""
        levels = {"complete": logging.INFO, "absent": logging.ERROR, "failed": logging.ERROR}
        return levels.get(self.kind, logging.WARNING)

    def state(self) -> State[None]:
        """Return the state of the run; one that opened no run of the study is not a failure."""
        if self.kind == "complete":
            return Completed(message=self.message)
        if self.kind in ("absent", "failed"):
            return Failed(message=self.message)
        if self.kind == "cancelled":
            return Cancelled(message=self.message)
        return State(type=StateType.CANCELLED, name=NOT_OPENED, message=self.sentence)

    @property
    def sentence(self) -> str:
        """The message as a state and a log show it."""
        return f"not opened: {self.message}" if self.kind == "not opened" else self.message


RunDue = Callable[[str, bool], DueRunOutcome]
"""Function that carries out a study's due run. Its arguments are the study's name, and whether a
run may be opened; otherwise it may only resume one."""


def scheduled_study(run_due: RunDue, may_open: bool = False) -> Flow[[str], State[None]]:
    """Make the flow that Prefect shows; its only parameter is the study's name."""

    @flow(
        name=FLOW,
        flow_run_name="{study}",
        validate_parameters=False,
        persist_result=False,
        retries=0,
    )
    def scheduled(study: str) -> State[None]:
        reporter = Reporter()
        with reporter.at_work():
            outcome = run_due(study, may_open)
            reporter.say(outcome.sentence, outcome.level)
            if outcome.uncovered:
                event = "budget.low" if outcome.kind == "complete" else "approval.awaited"
                sites = list(outcome.uncovered)
                told = {"sites": sites, "reasons": list(outcome.uncovered.values())}
                reporter.do(partial(emit, event, study, told))
        return outcome.state()

    return scheduled


def check_schedule(cron: str, timezone: str) -> CronSchedule:
    """Return a schedule; raises ConfigurationError if cron text or time zone is wrong."""
    if not timezone:
        raise _unusable("timezone", timezone)
    try:
        schedule = CronSchedule(cron=cron, timezone=timezone)
        croniter(cron, datetime.now(UTC)).get_next()  # type: ignore[no-untyped-call]
        return schedule
    except CroniterBadDateError:
        raise ConfigurationError(
            f"--cron {cron[:80]!r} names a day that never comes. Correct the day or the month."
        ) from None
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        raise _unusable(field, cron if field == "cron" else timezone) from error


def _unusable(field: str, given: str) -> ConfigurationError:
    hint = {"cron": "Write five fields such as '0 3 1 * *' for 3 o'clock on each month's first"}
    remedy = hint.get(field, "Write a name such as UTC or Europe/Berlin")
    return ConfigurationError(f"--{field} {given[:80]!r} can't be used. {remedy}.")


def check_server() -> None:
    """Refuse to schedule anything where no Prefect server is named.

    Raises ConfigurationError with how to start one.
    """
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigurationError(
            "No Prefect server is named. Start one with 'prefect server start' and set "
            "PREFECT_API_URL, for instance to http://127.0.0.1:4200/api."
        )


def serve_schedule(
    name: str,
    schedule: CronSchedule,
    run_due: RunDue,
    clock: Clock,
    console: Console,
    since: datetime,
    *,
    about: DeploymentInfo,
    on_demand: bool = False,
    resume: bool = False,
    again: timedelta = timedelta(),
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Schedule a study on the consortium's Prefect, and carry its runs out here until stopped.

    Logs stay on this machine, Prefect receives a heartbeat, and the loop makes all retries. Raises
    ConfigurationError if the server can't be reached.

    Parameters
    ----------
    name : str
        The study's, and the deployment's.
    since : datetime
        Dates of the schedule up to then are over.
    on_demand : bool
        Whether a run without a date of the schedule may open a run of the study.
    resume : bool
        Ask for a run at once: one was interrupted.
    again : timedelta
        How long after its date a run is tried again for which too few sites were there.
    stop : callable
        Asked between runs.
    """
    last: list[DueRunOutcome] = []

    def run(study: str, may_open: bool) -> DueRunOutcome:
        last[:] = [run_due(study, may_open)]
        return last[0]

    def make_flow(may_open: bool) -> Flow[[str], State[None]]:
        return scheduled_study(run, may_open)

    service = Service(
        study=name,
        make_flow=make_flow,
        about=about,
        schedule=schedule,
        clock=clock,
        console=console,
        since=since,
        on_demand=on_demand,
        again=again,
        absent=lambda: bool(last) and last.pop().kind == "absent",
    )
    with without_logs({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: 30, PREFECT_CLIENT_MAX_RETRIES: 1}):
        service.serve(
            stop, resume=resume, missed=lambda why: DueRunOutcome("not opened", why).state()
        )
