"""A site's page: one HTML file without scripts that only the site's own account can read.

It shows the agent's activity, the approved studies and the number of excluded participants. It also
shows the ledger over time with its forecast, for the most charged participant.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from consortium.base.atomic import write_bytes
from consortium.base.formatting import count, moment
from consortium.engine.clock import Waiting
from consortium.errors import ConsortiumError
from consortium.privacy.gdp import (
    ADDS_UP,
    FALSE_ALARMS,
    TWO_READERS,
    best_guess,
    detection_power,
)
from consortium.report.statement import odds_sentence, protected_text
from consortium.report.templating import plain_environment
from consortium.study.spec import open_vectors
from site_agent.approval.folder import SiteFolder
from site_agent.approval.offers import read_offers
from site_agent.config import SiteConfig
from site_agent.data.people import read_left_out, site_tables
from site_agent.layout import ENDED, LEFT_OUT, PAGE, REFUSED, STORE, WORTH
from site_agent.ledger.entries import EMPTY, LedgerEntry, standing_reservations
from site_agent.ledger.held_runs import held_runs
from site_agent.ledger.ledger import UNITS, Ledger, StudyRow, accounts, studies
from site_agent.page.course import Row, approved, ledger_course
from site_agent.policy.policy import Policy
from site_agent.run.message_store import MessageStore
from site_agent.run.site_log import read_log_lines
from site_agent.status import SiteStatus, read_status

_HALTED = (
    "The agent has stopped for good: another copy of its folder has answered in its name. See "
    "its log for the remedy."
)
MOST_LINES = 300
"""Lines of the ledger that the page shows, the last ones; ``ledger --json`` has all."""


def agent_activity(
    status: SiteStatus, entries: Sequence[LedgerEntry], store: MessageStore
) -> tuple[str, ...]:
    """Return the agent's current activities, a sentence each."""
    if store.halted is not None:
        return (_HALTED,)
    if not status.running:
        return ("The agent is not running; nothing is answered until it is started.",)
    found = ["The agent is running."]
    if status.waiting is not None:
        found.append(_waiting(status.waiting))
    under_way = _open_round(entries, store)
    if under_way:
        found.append(under_way)
    elif status.waiting is None:
        found.append("It waits for the coordinator to start a run of an approved study.")
    return tuple(found)


def _waiting(waiting: Waiting) -> str:
    """Return the recorded wait, such as 'loading 3 of 24' or the awaited sites."""
    own = waiting.sites.get("this site")
    if own:
        return f"{waiting.step}: {own}."
    who = ", ".join(waiting.sites.values())
    return f"{waiting.step}: it waits for {who}, since {moment(waiting.since)}."


def _open_round(entries: Sequence[LedgerEntry], store: MessageStore) -> str:
    """Return the last charged round of a run that has not ended here."""
    paid = standing_reservations(entries)
    if not paid:
        return ""
    last = paid[-1]
    run = last.charge.run
    number = last.charge.round
    if store.load(run, ENDED) is not None or store.load(run, REFUSED) is not None:
        return ""
    study = last.charge.study
    return f"It takes part in {run} of {study}, where round {number} was the last one charged."


def count_left_out(
    config: SiteConfig, entries: Sequence[LedgerEntry], store: MessageStore
) -> tuple[str, ...]:
    """Return the number of excluded participants by rule, but never their labels."""
    found = []
    if config.left_out is not None:
        try:
            many = len(read_left_out(config.left_out, site_tables(config)))
            found.append(
                f"{count(many, 'participant')} by the hospital's own table, in every study."
            )
        except ConsortiumError:  # which may name a participant, and is reported by doctor
            found.append(
                "The hospital's own table can't be read; 'site-agent doctor' reports the reason."
            )
    for run in dict.fromkeys(entry.charge.run for entry in entries):
        stored = store.load(run, LEFT_OUT)
        many = len(json.loads(stored)) if stored else 0
        if many:
            found.append(f"{count(many, 'participant')} of {run}, whose budget was used up.")
    return tuple(found)


def worths(entries: Sequence[LedgerEntry], store: MessageStore) -> dict[tuple[str, str], str]:
    """Return the worth of the last run of each study and centre for the site, where known."""
    charges = (entry.charge for entry in entries)
    found = {}
    for study, centre, run in dict.fromkeys((c.study, c.centre, c.run) for c in charges):
        stored = store.load(run, WORTH)
        if stored is not None:
            found[study, centre] = stored.decode()
    return found


def write_site_page(folder: Path, now: datetime, to: Path | None = None) -> Path:
    """Write the page of a site's folder, for the folder's owner only.

    Raises ConfigurationError if a file of the folder can't be read. Raises LedgerError if the
    ledger was altered: there is then nothing to show. Raises OutputError if the page can't be
    written.

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
    """
    text = page_environment().get_template("site.html.j2").render(**page_content(folder, now))
    return write_bytes(to or folder / PAGE, text.encode(), mode=0o600)


def page_content(folder: Path, now: datetime) -> dict[str, Any]:
    """Return the values that the page's templates use. Raises errors as `write_site_page`."""
    status = read_status(folder)
    policy = Policy.load(folder)
    config = status.config
    ledger = Ledger(config.ledger)
    try:
        entries = ledger.entries()
        held = accounts(ledger, policy)
        rows = approved(status, now.date())
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
    offers = read_offers(SiteFolder.open(folder))
    return {
        "site": config.name,
        "folder": folder.resolve(),
        "offers": offers,
        "waiting": [each for each in offers if each.is_waiting],
        "at": now.isoformat(sep=" ", timespec="minutes"),
        "doing": now_doing,
        "rows": rows,
        "without": without,
        "told": list(reversed(read_log_lines(folder))),
        "policy": policy,
        "courses": [(each, each.account, each.draw()) for each in courses],
        "held": [(each.unit, each.sentence) for each in held_runs(entries, policy)],
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
    """Yield paragraphs that explain in plain words a study's releases about this site."""
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
def page_environment(*before: str) -> Environment:
    """Return the environment of the page's templates, after those of other packages."""
    environment = plain_environment(*before, "site_agent.page", "consortium.report")
    environment.filters |= {"power": detection_power, "guess": best_guess}
    return environment
