"""The command ``deploy``: scheduled runs from this machine's own records.

A deployment's files and folders are recorded here, under the study's name. Prefect receives only
the name. So it can neither show the paths to others nor set other ones.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import typer
from rich.console import Console

from consortium.base.frozen_model import FrozenModel
from consortium.base.lock import only_one
from consortium.base.strict_yaml import read_yaml, write_yaml
from consortium.coordinator.run import RunFiles, run_study
from consortium.coordinator.run_folder import RECORD, read_run
from consortium.engine.clock import Clock
from consortium.engine.closing import read_end
from consortium.errors import (
    AbsentError,
    ConfigurationError,
    ConsortiumError,
    OpenRunError,
    OutputError,
    RunCancelledError,
)
from consortium.exchange.base import Exchange
from consortium.membership.consent import uncovered_sites
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import SignedStudy, read_signed
from consortium.privacy.loss import boost_text
from consortium.study.reader import read_study
from consortium.study.spec import Name
from flows.deployment import DueRunOutcome, check_schedule, check_server, serve_schedule
from flows.polling import DeploymentInfo

HOME = "CONSORTIUM_HOME"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_NUMBER = re.compile(r"[0-9]{4}")
_REPORT = "privacy_report.json"
_UNSCHEDULED = (
    "no date of the schedule belongs to this run. Start 'consortium deploy' with --on-demand to "
    "allow runs that are ordered on the server."
)


class ScheduledStudy(FrozenModel):
    """A scheduled study: its files on this machine, and when it is due."""

    name: Name
    """The study's name, and the deployment's."""
    study: Path
    """Study file."""
    roster: Path
    """Roster file."""
    exchange: str
    """Where the sites and the centre leave their messages."""
    keys: Path
    """Folder with the centre's keys."""
    credentials: Path | None = None
    """File with the centre's credentials for the exchange."""
    out: Path
    """Folder that gets an output folder for every run: 0001, 0002, …"""
    url: str | None = None
    """Where people are served the folder out, for Prefect's links."""
    cron: str
    """When a run is due: minute, hour, day, month, weekday."""
    timezone: str = "UTC"
    """Time zone of cron, such as Europe/Berlin."""

    def files(self, out: Path) -> RunFiles:
        """Return the files of one run."""
        url = f"{self.url.rstrip('/')}/{out.name}" if self.url else None
        return RunFiles(
            study=self.study,
            roster=self.roster,
            exchange=self.exchange,
            keys=self.keys,
            out=out,
            credentials=self.credentials,
            url=url,
        )

    def open_exchange(self) -> Exchange:
        """Open the place that the sites share; raises as `consortium.exchange.open_exchange`."""
        return self.files(self.out).open_exchange()


def settings_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the coordinator's folder of settings: CONSORTIUM_HOME, or the platform's default."""
    return Path(environment.get(HOME) or typer.get_app_dir("cape-consortium"))


def new_schedule(files: RunFiles, cron: str, timezone: str = "UTC") -> ScheduledStudy:
    """Make a record of a study's files, with absolute paths; ``files.out`` contains all its runs.

    Raises StudyError if the study can't be used.
    """
    exchange = str(files.exchange)
    return ScheduledStudy(
        name=read_study(files.study).study,
        study=files.study.resolve(),
        roster=files.roster.resolve(),
        exchange=exchange if "://" in exchange else str(Path(exchange).resolve()),
        keys=files.keys.resolve(),
        out=files.out.resolve(),
        credentials=files.credentials and files.credentials.resolve(),
        url=files.url,
        cron=cron,
        timezone=timezone,
    )


def save_scheduled(folder: Path, record: ScheduledStudy) -> Path:
    """Write the record of a scheduled study under its name; returns its path.

    Raises ConfigurationError if it can't be written.
    """
    path = _path(folder, record.name)
    try:
        write_yaml(path, record.model_dump(mode="json"))
    except OutputError as error:
        raise ConfigurationError(f"{error} Or name another folder in {HOME}.") from error
    return path


def load_scheduled(folder: Path, study: str) -> ScheduledStudy:
    """Read the record of a scheduled study.

    Raises ConfigurationError if there is none, or the name is none, or the record is damaged.
    """
    if not _NAME.fullmatch(study):
        raise ConfigurationError(
            f"A study's name must have only lower-case letters, digits and hyphens, got "
            f"{study[:80]!r}. Correct it."
        )
    path = _path(folder, study)
    try:
        record = ScheduledStudy.model_validate(read_yaml(path))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"The study '{study}' is not scheduled on this machine. Schedule it with "
            "'consortium deploy'."
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} is damaged. Deploy the study again.") from error
    if record.name != study:
        raise ConfigurationError(f"{path} is of another study. Deploy '{study}' again.")
    return record


def last_date(folder: Path, record: ScheduledStudy) -> datetime | None:
    """Return when the newest run was opened, or the study was last deployed; None if never.

    A run that too few sites joined has no record any more, so its date may be tried again.
    """
    numbered = _numbered(record.out)
    files = [_path(folder, record.name)]
    files += [record.out / name / RECORD for name in numbered[-1:]]
    times = [file.stat().st_mtime for file in files if file.is_file()]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def not_covered(record: ScheduledStudy, today: date) -> dict[str, str]:
    """State why the next run would not be opened, a sentence by site; empty if it would be.

    It is opened if the approvals of at least the minimum number of sites cover it. Raises
    ConsortiumError if a file or the exchange can't be used, or the study is not the one that was
    deployed.
    """
    signed = _signed(record)
    exchange = record.open_exchange()
    study = signed.study
    missing = uncovered_sites(exchange, study, signed.keys, today)
    return missing if len(study.sites) - len(missing) < study.fewest else {}


def unfinished_output(record: ScheduledStudy) -> Path | None:
    """Return the output folder of a run that was opened and has not ended, or None.

    Raises ConsortiumError if its record or its final message is damaged.
    """
    numbered = _numbered(record.out)
    if not numbered:
        return None
    folder = record.out / numbered[-1]
    known = read_run(folder)
    if known is None:
        return None
    signed = _signed(record)
    end = read_end(record.open_exchange(), known.run, signed.keys)
    if end is None:
        return folder if known.study == signed.study.digest else None
    return folder if end.complete and not (folder / _REPORT).exists() else None


def fresh_folder(record: ScheduledStudy) -> Path:
    """Return the output folder of a schedule's next run: the last one if unused, or a new one."""
    numbered = _numbered(record.out)
    if numbered and not (record.out / numbered[-1] / RECORD).exists():
        return record.out / numbered[-1]
    return record.out / f"{int(numbered[-1]) + 1 if numbered else 1:04d}"


def _signed(record: ScheduledStudy) -> SignedStudy:
    signed = read_signed(record.study, read_roster(record.roster))
    if signed.study.study != record.name:
        raise ConfigurationError(
            f"{record.study} is now the study '{signed.study.study}', not '{record.name}'. "
            "Deploy it under its new name."
        )
    return signed


def _numbered(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if _NUMBER.fullmatch(path.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"{folder} can't be read ({error.strerror}). Check --out.") from error


def _path(folder: Path, study: str) -> Path:
    return folder / "deployments" / f"{study}.yaml"


def public_description(scheduled: ScheduledStudy) -> DeploymentInfo:
    """Describe a study with public information, for its deployment's page.

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
        "boost": boost_text(privacy.boost),
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
    """Folder of the records, see `consortium.coordinator.deploy.settings_folder`."""
    today: Callable[[], date]
    """Day in UTC."""
    clock: Clock
    console: Console
    """Gets what Prefect doesn't: paths, and errors in full."""

    def run_due(self, study: str, may_open: bool = False) -> DueRunOutcome:
        """Continue a study's unfinished run, or open a new one if every site's consent covers it.

        Parameters
        ----------
        may_open : bool
            Whether a new one may be opened: by a date of the schedule, or on demand.

        Returns
        -------
        Outcome
            For a failure only the kind of error.
        """
        try:
            return self._run_due(study, may_open)
        except RunCancelledError as error:
            return DueRunOutcome("cancelled", str(error))
        except OpenRunError as error:  # with public names only
            return self._not_opened(study, str(error))
        except AbsentError as error:  # with sites' public names, and not with their words
            self.console.log(str(error), markup=False)
            return DueRunOutcome("absent", f"{error.code}: {type(error).__doc__}")
        except ConsortiumError as error:
            self.console.log(str(error), markup=False)
            return DueRunOutcome("failed", f"{error.code}: {type(error).__doc__}")
        except Exception as error:  # a traceback contains paths, and Prefect would store it
            self.console.print_exception()
            message = f"{type(error).__name__}; the service's own log says more."
            return DueRunOutcome("failed", message)

    def _run_due(self, study: str, may_open: bool) -> DueRunOutcome:
        scheduled = load_scheduled(self.home, study)
        folder = unfinished_output(scheduled)
        if folder is None and not may_open:
            return self._not_opened(study, _UNSCHEDULED)
        if folder is None:
            reasons = not_covered(scheduled, self.today())
            if reasons:
                return self._not_opened(study, " ".join(reasons.values()), reasons)
            folder = fresh_folder(scheduled)
        try:
            run_study(scheduled.files(folder), self.clock, self.console)
        except AbsentError:
            (folder / RECORD).unlink(missing_ok=True)  # its date and its folder are free again
            raise
        done = f"Run {folder.name} is complete."
        return DueRunOutcome("complete", done, self._uncovered(scheduled))

    def _not_opened(
        self, study: str, why: str, uncovered: Mapping[str, str] | None = None
    ) -> DueRunOutcome:
        self.console.log(f"{study}: not opened: {why}", markup=False)
        return DueRunOutcome("not opened", why, uncovered or {})

    def _uncovered(self, scheduled: ScheduledStudy) -> Mapping[str, str]:
        """Return why the next run would not be opened; errors of the check go only to the log."""
        try:
            return not_covered(scheduled, self.today())
        except ConsortiumError as error:
            self.console.log(str(error), markup=False)
            return {}


def deploy(
    scheduled: ScheduledStudy,
    due: DueRuns,
    stop: Callable[[], bool] = lambda: False,
    *,
    on_demand: bool = False,
    again: timedelta = timedelta(),
) -> None:
    """Schedule a study on the consortium's Prefect, and execute its runs here until stopped.

    Raises ConfigurationError if no Prefect server is named, it can't be reached, or the schedule is
    wrong. Raises OutputError if another service on this machine serves the study.

    Parameters
    ----------
    scheduled : ScheduledStudy
        Written to ``due.home`` first.
    stop : callable
        Asked between runs.
    on_demand : bool
        Whether a run that is ordered on the Prefect server also opens a run of the study, without a
        date of the schedule.
    again : timedelta
        How long a date is tried again for which too few sites were there.
    """
    schedule = check_schedule(scheduled.cron, scheduled.timezone)
    check_server()
    with only_one(scheduled.out):
        since = last_date(due.home, scheduled) or datetime.now(UTC)
        save_scheduled(due.home, scheduled)
        resume = unfinished_output(scheduled) is not None
        serve_schedule(
            name=scheduled.name,
            schedule=schedule,
            run_due=due.run_due,
            clock=due.clock,
            console=due.console,
            since=since,
            about=public_description(scheduled),
            on_demand=on_demand,
            resume=resume,
            again=again,
            stop=stop,
        )
