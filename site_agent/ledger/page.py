"""The ledger as a page for an ethics board: one HTML file, no script, printable."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from jinja2 import Environment

from consortium.files.atomic import write_text
from consortium.privacy.gdp import FALSE_ALARMS, best_guess, detection_power
from consortium.report.templating import plain_environment
from site_agent.ledger.entries import EMPTY, standing
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.totals import accounts, studies
from site_agent.policy.policy import Policy

PAGE = "ledger.html"
UNITS = {"subject": "person", "timepoint": "single volume"}


def write_page(path: Path, ledger: Ledger, policy: Policy, *, site: str, day: date) -> Path:
    """Write the page.

    Parameters
    ----------
    path : Path
        The HTML file; an earlier one is replaced.
    ledger : Ledger
    policy : Policy
        Its limits and its δ.
    site : str
        The site's name.
    day : date
        Date that the page carries.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    LedgerError
        If the ledger was altered: there is then nothing to show.
    OutputError
        If the page can't be written.
    """
    entries = ledger.entries()
    answered = {
        (e.charge.site, e.charge.centre, e.charge.run, e.charge.round)
        for e in entries
        if e.event == "spend"
    }
    page = (
        _environment()
        .get_template("ledger.html.j2")
        .render(
            site=site,
            day=f"{day.day} {day:%B %Y}",
            policy=policy,
            accounts=accounts(ledger, policy),
            studies=studies(entries, policy),
            entries=entries,
            rounds=len(standing(entries)),
            answered=len(answered),
            head=entries[-1].head if entries else EMPTY,
            units=UNITS,
            false_alarms=FALSE_ALARMS,
        )
    )
    return write_text(path, page)


def _environment() -> Environment:
    environment = plain_environment("site_agent.ledger")
    environment.filters |= {"power": detection_power, "guess": best_guess}
    return environment
