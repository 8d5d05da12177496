"""Scheduled studies: Prefect says when, this machine's own records say what.

The service is a loop of our own, not Prefect's runner: that one starts whatever entrypoint the API
names once the API hands it a run of a deployment it doesn't know. Here the API's answers are read
for the identity of a due run and for nothing else; parameters, entrypoints, commands and results
that it names are never looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from prefect import Flow, State, flow
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.schedules import CronSchedule
from prefect.settings import (
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
)
from prefect.states import Completed, Failed
from pydantic import ValidationError
from rich.console import Console

from consortium.coordinator.run import carry_out
from consortium.coordinator.schedule import (
    Record,
    fresh_folder,
    load_deployment,
    not_covered,
    save_deployment,
    unfinished,
)
from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError, ConsortiumError
from consortium.files.lock import only_one
from flows.polling import Service
from flows.public import without_logs

FLOW, NOT_OPENED = "scheduled-study", "Not opened"


@dataclass(frozen=True)
class Desk:
    """What the coordinator's service works with.

    Parameters
    ----------
    home : Path
        Folder of the records, see `consortium.coordinator.schedule.home`.
    today : callable
        Day in UTC.
    clock : Clock
    console : Console
        Gets what Prefect doesn't: paths, and errors in full.
    """

    home: Path
    today: Callable[[], date]
    clock: Clock
    console: Console

    def hold(self, study: str) -> State[None]:
        """Go on with a study's unfinished run, or open a new one if every site's consent covers it.

        Returns
        -------
        State
            Completed, `NOT_OPENED` (Cancelled) with the reasons, or Failed with what kind of error.
        """
        try:
            return self._hold(study)
        except ConsortiumError as error:
            self.console.log(str(error), markup=False)
            return Failed(message=f"{error.code}: {type(error).__doc__}")
        except Exception as error:  # a traceback holds paths, and Prefect would keep it
            self.console.print_exception()
            return Failed(message=f"{type(error).__name__}; the service's own log says more.")

    def _hold(self, study: str) -> State[None]:
        record = load_deployment(self.home, study)
        folder = unfinished(record)
        if folder is None:
            reasons = not_covered(record, self.today())
            if reasons:
                return not_opened(" ".join(reasons))
            folder = fresh_folder(record)
        carry_out(record.errand(folder), self.clock, self.console)
        return Completed(message=f"Run {folder.name} is complete.")


def not_opened(reason: str) -> State[None]:
    """State of a run of the schedule that opened no run of the study: seen, but no failure."""
    self_made = {"name": NOT_OPENED, "message": f"not opened: {reason}"}
    return State(type=StateType.CANCELLED, **self_made)


def scheduled_study(desk: Desk) -> Flow[[str], State[None]]:
    """Make the flow that Prefect shows; its only parameter is the study's name."""

    @flow(
        name=FLOW,
        flow_run_name="{study}",
        validate_parameters=False,
        persist_result=False,
        retries=0,
    )
    def scheduled(study: str) -> State[None]:
        return desk.hold(study)

    return scheduled


def check_schedule(record: Record) -> CronSchedule:
    """Return the schedule of a record.

    Raises
    ------
    ConfigurationError
        If cron text or time zone is wrong.
    """
    try:
        return CronSchedule(cron=record.cron, timezone=record.timezone)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        hint = {"cron": "write five fields such as '0 3 1 * *' for 3 o'clock on each month's first"}
        remedy = hint.get(field, "write a name such as UTC or Europe/Berlin")
        raise ConfigurationError(
            f"--{field} {getattr(record, field)[:80]!r} can't be used; {remedy}."
        ) from error


def deploy(record: Record, desk: Desk, stop: Callable[[], bool] = lambda: False) -> None:
    """Schedule a study on the consortium's Prefect, and carry its runs out from here until stopped.

    Parameters
    ----------
    record : Record
        Written to ``desk.home`` first.
    desk : Desk
    stop : callable
        Asked between runs.

    Raises
    ------
    ConfigurationError
        If no Prefect server is named, it can't be reached, or the schedule is wrong.
    OutputError
        If another service on this machine serves the study.
    """
    schedule = check_schedule(record)
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigurationError(
            "No Prefect server is named; start one with 'prefect server start' and set "
            "PREFECT_API_URL, for instance to http://127.0.0.1:4200/api."
        )
    with only_one(record.out), _quietly():
        save_deployment(desk.home, record)
        service = Service(record.name, scheduled_study(desk), schedule, desk.clock, desk.console)
        service.serve(stop, resume=unfinished(record) is not None, missed=not_opened)


def _quietly() -> AbstractContextManager[object]:
    """Keep logs on this machine, show Prefect a pulse, and let the loop be what tries again."""
    return without_logs({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: 30, PREFECT_CLIENT_MAX_RETRIES: 1})
