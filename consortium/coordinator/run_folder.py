"""State of a run, read only from the exchange and the output folder.

Site by site: whether it is awaited, since when, and until when.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.lock import in_use
from consortium.base.work import work_folder
from consortium.coordinator.open_runs import (
    check_none_open,
    read_announced,
    run_number,
    runs_of,
)
from consortium.engine.clock import read_waiting
from consortium.engine.closing import read_end, seems_complete
from consortium.engine.mailbox import NOT_APPROVED
from consortium.engine.names import MOST_NOTICE, Names
from consortium.engine.unit_counts import COUNTS, is_far_below
from consortium.errors import OutputError, StudyError
from consortium.exchange.base import Exchange
from consortium.study.spec import Study

RECORD = "run.json"
_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}-[0-9]{4,9}")
NEVER = "never"
"""Placeholder of a site without any message."""
LOADS = "set-up (loading)"
"""Last message of a site that is loading its data."""


@dataclass(frozen=True)
class RunRecord:
    """Which run an output folder belongs to."""

    run: str
    study: str
    """Digest of the study."""

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return json.dumps({"run": self.run, "study": self.study}).encode()


def claim_run(
    folder: Path,
    study: Study,
    exchange: Exchange,
    keys: Mapping[str, bytes],
    resumed: str | None = None,
) -> RunRecord:
    """Resume the folder's run of this study, or name a new one if none can continue.

    A complete run is also resumed: its outputs are then written again from its transcript. Raises
    OutputError if the folder has another study whose run was not aborted. Raises OpenRunError if a
    run of the study that is not the folder's is open on the exchange.

    Parameters
    ----------
    resumed : str, optional
        Run on the exchange whose output folder is lost; the folder becomes its own.
    """
    known = read_run(folder)
    if resumed is not None and (known is None or known.run != resumed):
        _check_lost(folder, known, resumed)
        _check_announced(exchange, resumed, study, keys)
        known = RunRecord(resumed, study.digest)
        write_bytes(folder / RECORD, known.data)
    if known is not None:
        if not _given_up(exchange, known.run, keys):
            if known.study != study.digest:
                raise OutputError(
                    f"{folder} is the output folder of another study. Choose another with --out."
                )
            return known
        archive = folder / "transcript"
        if archive.exists():
            _put_aside(archive, work_folder(folder) / f"transcript-{known.run}")
    check_none_open(exchange, study.study, keys)
    record = RunRecord(f"{study.study}-{_last_number(exchange, study) + 1:04d}", study.digest)
    write_bytes(folder / RECORD, record.data)
    return record


def _check_lost(folder: Path, known: RunRecord | None, run: str) -> None:
    """Require that a folder is free for a run whose own folder is lost."""
    if known is not None:
        raise OutputError(
            f"{folder} contains the run {known.run}. Choose a new folder for {run} with --out."
        )


def _check_announced(exchange: Exchange, run: str, study: Study, keys: Mapping[str, bytes]) -> None:
    """Require that a run on the exchange is one of this study and was not given up."""
    announced = read_announced(exchange, run, keys)
    if announced is None or _given_up(exchange, run, keys):
        raise OutputError(
            f"{run} can't be resumed: the exchange has no such run of this study that is open. "
            "See 'consortium status'."
        )
    if announced.get("study") != study.model_dump(mode="json"):
        raise StudyError(
            f"{run} is of another version of the study '{study.study}'. Give the study file and "
            "the roster with which it was opened, or end it with 'consortium end'."
        )


def _put_aside(archive: Path, place: Path) -> None:
    try:
        place.parent.mkdir(exist_ok=True)
        archive.replace(place)
    except OSError as error:
        raise OutputError(
            f"{archive} can't be moved to {place} ({error.strerror}). Choose another output folder."
        ) from error


def _last_number(exchange: Exchange, study: Study) -> int:
    """Return the largest number of the study's runs, since a count could reuse a removed name."""
    return max((run_number(run) for run in runs_of(exchange, study.study)), default=0)


def _given_up(exchange: Exchange, run: str, keys: Mapping[str, bytes]) -> bool:
    end = read_end(exchange, run, keys)
    return end is not None and not end.complete


def read_run(folder: Path) -> RunRecord | None:
    """Return the run that a folder belongs to, or None.

    Raises OutputError if the record is damaged.
    """
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        record = RunRecord(str(content["run"]), str(content["study"]))
        if not _RUN.fullmatch(record.run):
            raise ValueError(record.run)
        return record
    except DAMAGED as error:
        raise OutputError(f"{path} is damaged. Choose another output folder.") from error


@dataclass(frozen=True)
class SiteCount:
    """Number of a site's participants or volumes, estimated from the releases of a run."""

    units: int
    deviation: float
    """Standard deviation of the noise in ``units``."""
    nominal: int
    few: bool
    """Whether the number is clearly less than half of the nominal one."""


@dataclass(frozen=True)
class SiteStanding:
    """State of a site in a run."""

    name: str
    heard: str
    """Its last message on the exchange."""
    state: str
    """``awaited``, ``loading``, ``not approved``, ``answered``, ``refused``,
    ``left out``, or ``missing`` if the run ended without the site."""
    since: float | None = None
    until: float | None = None
    """Unix times: since when it is awaited, and until when."""
    count: SiteCount | None = None
    """Estimated number of its participants, or volumes, so far; None before the first round."""


@dataclass(frozen=True)
class RunStatus:
    """State of a run, as the exchange and the output folder show it."""

    run: str
    step: str
    ended: bool
    running: bool
    """Whether the centre is at work now."""
    sites: tuple[SiteStanding, ...]


def run_status(exchange: Exchange, run: str, study: Study, folder: Path) -> RunStatus:
    """Return the state of a run, from messages on the exchange and its centre's notes.

    Raises ExchangeError if the exchange can't be read. Raises OutputError if the centre's note is
    damaged.
    """
    place = f"runs/{run}"
    running = in_use(folder)
    waiting = read_waiting(folder) if running else None  # a dead centre's deadlines mean nothing
    present = exchange.children(place)
    ended = "end" in present
    counts = read_counts(folder)
    step, kind = _step(exchange, run, present)
    answered = exchange.children(kind) if kind else []
    refused = exchange.children(Names(run).refusals())
    started = _started(exchange, run, study)
    sites = []
    for name in study.sites:
        heard = _heard(exchange, run, present, name)
        state = "answered" if name in answered else "awaited"
        if ended:
            state = "missing" if heard in (NEVER, LOADS) else "answered"
        state = "loading" if state == "awaited" and heard == LOADS else state
        state = "left out" if name not in started else state
        state = "refused" if name in refused else state
        since = until = None
        if state in ("awaited", "loading") and waiting is not None and name in waiting.sites:
            state = "not approved" if waiting.sites[name] == NOT_APPROVED else state
            since = waiting.since
            until = waiting.deadlines.get(name, waiting.until)
        standing = SiteStanding(name, heard, state, since, until)
        sites.append(replace(standing, count=counts.get(name)))
    if ended:
        step += " (complete)" if seems_complete(exchange, run) else " (given up)"
    return RunStatus(run, step, ended, running, tuple(sites))


def read_counts(folder: Path) -> dict[str, SiteCount]:
    """Return the estimated number of units of each site so far; empty before the first round.

    Raises OutputError if the centre's note is damaged.
    """
    path = work_folder(folder) / COUNTS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        deviation = float(content["deviation"])
        return {
            str(name): SiteCount(
                round(units), deviation, int(nominal), is_far_below(units, deviation, nominal)
            )
            for name, (units, nominal) in content["units and nominal"].items()
        }
    except FileNotFoundError:
        return {}
    except DAMAGED as error:
        raise OutputError(f"{path} is damaged. Remove it.") from error


def _step(exchange: Exchange, run: str, present: list[str]) -> tuple[str, str]:
    """Return a run's step in words, and the folder of the awaited messages."""
    place = f"runs/{run}"
    if "end" in present:
        return "ended", ""
    rounds = [name for name in present if name.isdigit()]
    if rounds:
        last = f"{place}/{rounds[-1]}"
        kind = "unmasking" if "unmask" in exchange.children(last) else "contribution"
        return f"round {int(rounds[-1])} ({kind})", f"{last}/{kind}"
    kind = "share" if "keys" in present else "advertise" if "start" in present else "present"
    return f"set-up ({kind})", f"{place}/{kind}"


def _heard(exchange: Exchange, run: str, present: list[str], site: str) -> str:
    """Return a site's last message: in the last two rounds, or in the set-up."""
    place = f"runs/{run}"
    for number in [name for name in present if name.isdigit()][:-3:-1]:
        for kind in ("unmasking", "contribution"):
            if site in exchange.children(f"{place}/{number}/{kind}"):
                return f"round {int(number)} ({kind})"
    for kind in ("share", "advertise", "present", "loading"):
        if kind in present and site in exchange.children(f"{place}/{kind}"):
            return f"set-up ({kind})"
    return NEVER


def _started(exchange: Exchange, run: str, study: Study) -> list[str]:
    """Return the sites in the centre's list, unchecked; all sites before it exists."""
    message = exchange.get(Names(run).start(), MOST_NOTICE)
    return [s for s in study.sites if message is None or json.dumps(s).encode() in message]
