"""What the command ``deploy`` does: runs as they fall due, from this machine's own records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.console import Console

from consortium.coordinator.run import run_study
from consortium.coordinator.schedule import (
    ScheduledStudy,
    fresh_folder,
    load_scheduled,
    not_covered,
    save_scheduled,
    unfinished,
)
from consortium.engine.clock import Clock
from consortium.errors import ConsortiumError
from consortium.files.lock import only_one
from flows.deployment import Outcome, check_schedule, check_server, serve


@dataclass(frozen=True)
class DueRuns:
    """Carries out the runs of scheduled studies.

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

    def run_due(self, study: str) -> Outcome:
        """Go on with a study's unfinished run, or open a new one if every site's consent covers it.

        Returns
        -------
        Outcome
            Of a failure it tells the kind of error, and nothing else.
        """
        try:
            return self._run_due(study)
        except ConsortiumError as error:
            self.console.log(str(error), markup=False)
            return Outcome("failed", f"{error.code}: {type(error).__doc__}")
        except Exception as error:  # a traceback holds paths, and Prefect would keep it
            self.console.print_exception()
            message = f"{type(error).__name__}; the service's own log says more."
            return Outcome("failed", message)

    def _run_due(self, study: str) -> Outcome:
        scheduled = load_scheduled(self.home, study)
        folder = unfinished(scheduled)
        if folder is None:
            reasons = not_covered(scheduled, self.today())
            if reasons:
                return Outcome("not opened", " ".join(reasons))
            folder = fresh_folder(scheduled)
        run_study(scheduled.files(folder), self.clock, self.console)
        return Outcome("complete", f"Run {folder.name} is complete.")


def deploy(
    scheduled: ScheduledStudy, due: DueRuns, stop: Callable[[], bool] = lambda: False
) -> None:
    """Schedule a study on the consortium's Prefect, and carry its runs out from here until stopped.

    Parameters
    ----------
    scheduled : ScheduledStudy
        Written to ``due.home`` first.
    due : DueRuns
    stop : callable
        Asked between runs.

    Raises
    ------
    ConfigurationError
        If no Prefect server is named, it can't be reached, or the schedule is wrong.
    OutputError
        If another service on this machine serves the study.
    """
    schedule = check_schedule(scheduled.cron, scheduled.timezone)
    check_server()
    with only_one(scheduled.out):
        save_scheduled(due.home, scheduled)
        resume = unfinished(scheduled) is not None
        serve(
            scheduled.name,
            schedule,
            due.run_due,
            due.clock,
            due.console,
            resume=resume,
            stop=stop,
        )
