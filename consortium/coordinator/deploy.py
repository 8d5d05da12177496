"""What the command ``deploy`` does: runs as they fall due, from this machine's own records."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from rich.console import Console

from consortium.base.lock import only_one
from consortium.coordinator.run import run_study
from consortium.coordinator.schedule import (
    ScheduledStudy,
    fresh_folder,
    last_date,
    load_scheduled,
    not_covered,
    save_scheduled,
    unfinished_output,
)
from consortium.engine.clock import Clock
from consortium.errors import ConsortiumError, RunCancelledError
from consortium.study.reader import read_study
from flows.deployment import DueRunOutcome, check_schedule, check_server, serve_schedule
from flows.polling import DeploymentInfo

_UNSCHEDULED = (
    "no date of the schedule stands for this run; start 'consortium deploy' with --on-demand to "
    "allow runs that somebody orders."
)


def public_description(scheduled: ScheduledStudy) -> DeploymentInfo:
    """Say what everybody may know of a study, for its deployment's page.

    Raises StudyError if the study can't be read.
    """
    study = read_study(scheduled.study)
    privacy = study.privacy
    parameters = {
        "algorithm": study.algorithm,
        "sites": ", ".join(study.sites),
        "unit": privacy.unit,
        "epsilon": f"{privacy.epsilon:g}",
        "delta": f"{privacy.delta:g}",
        "scheme": privacy.scheme,
    }
    lines = [
        study.heading,
        *(f"- {name}: {value}" for name, value in parameters.items()),
    ]
    return DeploymentInfo(
        "\n".join([lines[0], "", *lines[1:]]), ("consortium", study.algorithm), parameters
    )


@dataclass(frozen=True)
class DueRuns:
    """Carries out the runs of scheduled studies."""

    home: Path
    """Folder of the records, see `consortium.coordinator.schedule.settings_folder`."""
    today: Callable[[], date]
    """Day in UTC."""
    clock: Clock
    console: Console
    """Gets what Prefect doesn't: paths, and errors in full."""

    def run_due(self, study: str, may_open: bool = False) -> DueRunOutcome:
        """Go on with a study's unfinished run, or open a new one if every site's consent covers it.

        Parameters
        ----------
        may_open : bool
            Whether a new one may be opened: a date of the schedule stands for it, or the service
            takes orders.

        Returns
        -------
        Outcome
            Of a failure it tells the kind of error, and nothing else.
        """
        try:
            return self._run_due(study, may_open)
        except RunCancelledError as error:
            return DueRunOutcome("cancelled", str(error))
        except ConsortiumError as error:
            self.console.log(str(error), markup=False)
            return DueRunOutcome("failed", f"{error.code}: {type(error).__doc__}")
        except Exception as error:  # a traceback holds paths, and Prefect would keep it
            self.console.print_exception()
            message = f"{type(error).__name__}; the service's own log says more."
            return DueRunOutcome("failed", message)

    def _run_due(self, study: str, may_open: bool) -> DueRunOutcome:
        scheduled = load_scheduled(self.home, study)
        folder = unfinished_output(scheduled)
        if folder is None and not may_open:
            return DueRunOutcome("not opened", _UNSCHEDULED)
        if folder is None:
            reasons = not_covered(scheduled, self.today())
            if reasons:
                return DueRunOutcome("not opened", " ".join(reasons))
            folder = fresh_folder(scheduled)
        run_study(scheduled.files(folder), self.clock, self.console)
        low = self._uncovered(scheduled)
        return DueRunOutcome("complete", f"Run {folder.name} is complete.", low)

    def _uncovered(self, scheduled: ScheduledStudy) -> tuple[str, ...]:
        """Why the next run would not be opened; of trouble with that, the log alone is told."""
        try:
            return tuple(not_covered(scheduled, self.today()))
        except ConsortiumError as error:
            self.console.log(str(error), markup=False)
            return ()


def deploy(
    scheduled: ScheduledStudy,
    due: DueRuns,
    stop: Callable[[], bool] = lambda: False,
    *,
    on_demand: bool = False,
) -> None:
    """Schedule a study on the consortium's Prefect, and carry its runs out from here until stopped.

    Raises ConfigurationError if no Prefect server is named, it can't be reached, or the schedule is
    wrong. Raises OutputError if another service on this machine serves the study.

    Parameters
    ----------
    scheduled : ScheduledStudy
        Written to ``due.home`` first.
    stop : callable
        Asked between runs.
    on_demand : bool
        Whether a run that the schedule has no date for, as whoever reaches the Prefect server may
        order, opens a run of the study, too.
    """
    schedule = check_schedule(scheduled.cron, scheduled.timezone)
    check_server()
    with only_one(scheduled.out):
        since = last_date(due.home, scheduled) or datetime.now(UTC)
        save_scheduled(due.home, scheduled)
        resume = unfinished_output(scheduled) is not None
        serve_schedule(
            scheduled.name,
            schedule,
            due.run_due,
            due.clock,
            due.console,
            since,
            about=public_description(scheduled),
            on_demand=on_demand,
            resume=resume,
            stop=stop,
        )
