"""A site's page: one HTML file that nobody but the site's own account can read, no script."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from consortium.base.atomic import write_bytes
from consortium.base.formatting import count
from consortium.privacy.gdp import ADDS_UP, FALSE_ALARMS, TWO_READERS, best_guess, detection_power
from consortium.report.statement import odds_sentence, protected_text
from consortium.report.templating import plain_environment
from consortium.study.spec import open_vectors
from site_agent.layout import PAGE, STORE
from site_agent.ledger.entries import EMPTY, LedgerEntry, standing_reservations
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.totals import UNITS, StudyRow, accounts, studies
from site_agent.page.course import ledger_course
from site_agent.page.state import Row, agent_activity, approved, count_left_out, worths
from site_agent.policy.policy import Policy
from site_agent.run.log_lines import read_log_lines
from site_agent.run.message_store import MessageStore
from site_agent.status import read_status

MOST_LINES = 300
"""Lines of the ledger that the page shows, the last ones; ``ledger --json`` has all."""


def write_site_page(folder: Path, now: datetime, to: Path | None = None) -> Path:
    """Write the page of a site's folder, for the folder's owner only.

    Parameters
    ----------
    folder : Path
        The site's.
    now : datetime
        Time that the page carries, with its time zone.
    to : Path, optional
        The HTML file, ``site.html`` in the folder by default; an earlier one is replaced.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ConfigurationError
        If a file of the folder can't be read.
    LedgerError
        If the ledger was altered: there is then nothing to show.
    OutputError
        If the page can't be written.
    """
    text = _environment().get_template("site.html.j2").render(**_content(folder, now))
    return write_bytes(to or folder / PAGE, text.encode(), mode=0o600)


def _content(folder: Path, now: datetime) -> dict[str, Any]:
    status, policy = read_status(folder), Policy.load(folder)
    config = status.config
    ledger = Ledger(config.ledger)
    try:
        entries = ledger.entries()
        held, rows = accounts(ledger, policy), approved(status, ledger, now.date())
        courses = [ledger_course(ledger, each, rows, policy.delta, now) for each in held]
    finally:
        ledger.close()
    store = MessageStore(folder / STORE)
    try:
        now_doing = agent_activity(status, entries, store)
        without = count_left_out(config, entries, store)
        worth = worths(entries, store)
    finally:
        store.close()
    return {
        "site": config.name,
        "at": now.isoformat(sep=" ", timespec="minutes"),
        "doing": now_doing,
        "rows": rows,
        "without": without,
        "told": list(reversed(read_log_lines(folder))),
        "policy": policy,
        "courses": [(each, each.account, each.draw()) for each in courses],
        "studies": [
            (each, _story(each, rows, worth.get((each.study, each.centre), "")))
            for each in studies(entries, policy)
        ],
        "entries": entries[-MOST_LINES:],
        "older": max(len(entries) - MOST_LINES, 0),
        "rounds": len(standing_reservations(entries)),
        "answered": _answered(entries),
        "head": entries[-1].head if entries else EMPTY,
        "units": UNITS,
        "adds_up": ADDS_UP,
        "two_readers": TWO_READERS,
        "false_alarms": FALSE_ALARMS,
    }


def _answered(entries: Sequence[LedgerEntry]) -> int:
    charges = (entry.charge for entry in entries if entry.event == "spend")
    return len({(each.site, each.centre, each.run, each.round) for each in charges})


def _story(row: StudyRow, rows: Sequence[Row], worth: str) -> tuple[str, ...]:
    """What a study released of this site, in plain words, a paragraph each."""
    known = next((each for each in rows if each.study.study == row.study), None)
    asked = ", ".join(name.replace("_", " ") for name in row.statistics)
    what = f"{known.study.heading}: {known.analysis}. " if known else ""
    sums = (
        f"{what}In {count(row.runs, 'run')}, this site answered {row.answered} of "
        f"{count(row.reserved, 'question')} ({asked}). Each answer is one vector of numbers over "
        "all its participants together, with noise; no scan and no single participant's numbers "
        "left it."
    )
    odds = odds_sentence(row.unit, row.cost.mu, row.outsider.mu)
    public = open_vectors(known.study) if known else ""
    return tuple(filter(None, (sums, worth, protected_text(row.unit), odds, public)))


@cache  # an agent writes its page at every step: compiling takes longer than filling in
def _environment() -> Environment:
    environment = plain_environment("site_agent.page", "consortium.report")
    environment.filters |= {"power": detection_power, "guess": best_guess}
    return environment
