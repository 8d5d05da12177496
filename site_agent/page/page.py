"""A site's page: one HTML file without scripts that only the site's own account can read.

It shows the agent's activity, the approved studies and the number of excluded participants. It also
shows the ledger over time with its forecast, for the most charged participant.

Squares of μ add up. So a pace is a square of μ a day, and approved runs that have not begun add
their own squares, as if every run charged the same participants, which is an upper bound.
"""

import json
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from matplotlib.dates import date2num
from matplotlib.figure import Figure

from consortium.algorithms import REGISTRY
from consortium.base.atomic import write_bytes
from consortium.base.formatting import count, moment, number
from consortium.engine.clock import Waiting
from consortium.errors import ConsortiumError
from consortium.privacy.gdp import (
    ADDS_UP,
    FALSE_ALARMS,
    TWO_READERS,
    best_guess,
    compose,
    detection_power,
    epsilon_of,
    mu_of,
)
from consortium.report.pictures import DOTS, SIZE, Picture, to_picture
from consortium.report.statement import odds_sentence, protected_text
from consortium.report.templating import plain_environment
from consortium.secagg import CENTRE
from consortium.study.plan import promised_mu
from consortium.study.spec import Study, open_vectors
from site_agent.approval.approval import Approval, Terms
from site_agent.config import SiteConfig
from site_agent.data.people import read_left_out, site_tables
from site_agent.layout import ENDED, LEFT_OUT, PAGE, REFUSED, STORE, WORTH
from site_agent.ledger.entries import EMPTY, LedgerEntry, standing_reservations
from site_agent.ledger.held_runs import held_runs
from site_agent.ledger.ledger import UNITS, Account, Ledger, StudyRow, accounts, studies
from site_agent.ledger.limits import counted
from site_agent.policy.policy import Policy
from site_agent.run.message_store import MessageStore
from site_agent.run.site_log import read_log_lines
from site_agent.status import ListedApproval, SiteStatus, read_status

_HALTED = (
    "The agent has stopped for good: another copy of its folder has answered in its name. See "
    "its log for the remedy."
)
MOST_LINES = 300
"""Lines of the ledger that the page shows, the last ones; ``ledger --json`` has all."""


@dataclass(frozen=True)
class Row:
    """An approved study."""

    study: Study
    terms: Terms
    left: int
    """Runs that may still take place."""
    state: str
    """State of the approval, or why it no longer counts; a sentence."""
    price: float
    """Largest possible μ of all remaining runs."""

    @property
    def analysis(self) -> str:
        """Name of its analysis for readers."""
        return REGISTRY[self.study.algorithm].title


def approved(status: SiteStatus, ledger: Ledger, today: date) -> tuple[Row, ...]:
    """Return every approved study with the runs that are left."""
    return tuple(
        _row(each, _centres(status, each.approval), ledger, today) for each in status.approved
    )


def _centres(status: SiteStatus, approval: Approval) -> Collection[str]:
    known = status.trust.centres if status.trust else frozenset()
    return {approval.keys[CENTRE].hex(), *known}


def _row(yes: ListedApproval, centres: Collection[str], ledger: Ledger, today: date) -> Row:
    study = yes.approval.study
    terms = yes.approval.terms
    had = len(ledger.under_way(study.study, centres))
    left = max(terms.runs - had, 0)
    state = "The agent takes part when a run is announced."
    if terms.ended(today):
        left = 0
        state = "The last day has passed."
    elif not left:
        state = "All approved runs have begun or taken place."
    if yes.refused:
        left = 0
        state = f"Refused: {yes.refused}"
    price = math.sqrt(left) * promised_mu(study) if left else 0.0
    if terms.epsilon is not None:
        price = min(price, mu_of(terms.epsilon, study.privacy.delta))
    return Row(study, terms, left, state, price)


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
    text = _environment().get_template("site.html.j2").render(**_content(folder, now))
    return write_bytes(to or folder / PAGE, text.encode(), mode=0o600)


def _content(folder: Path, now: datetime) -> dict[str, Any]:
    status = read_status(folder)
    policy = Policy.load(folder)
    config = status.config
    ledger = Ledger(config.ledger)
    try:
        entries = ledger.entries()
        held = accounts(ledger, policy)
        rows = approved(status, ledger, now.date())
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
def _environment() -> Environment:
    environment = plain_environment("site_agent.page", "consortium.report")
    environment.filters |= {"power": detection_power, "guess": best_guess}
    return environment


_PACE_FROM = timedelta(days=30)
_FARTHEST = timedelta(days=3652)
_INK = "#0b5c6b"
_LIMIT = "#b3272d"
_AHEAD = "#8a5a00"


@dataclass(frozen=True)
class Course:
    """One account over time."""

    account: Account
    points: tuple[tuple[datetime, float], ...]
    """Time at which each run ended here, and μ at that time."""
    ahead: float
    """μ if every run that is approved takes place."""
    runs: int
    """Number of these runs."""
    delta: float
    """δ at which ε is reported."""
    now: datetime

    @property
    def sentences(self) -> tuple[str, ...]:
        """Forecast, in words."""
        return tuple(filter(None, (self._approved(), self._pace())))

    def _approved(self) -> str:
        if not self.runs:
            return "No approved run of this unit remains."
        limit = self.account.allowed.epsilon
        epsilon = epsilon_of(self.ahead, self.delta)
        text = (
            f"If {'the one run' if self.runs == 1 else f'all {self.runs} runs'} that "
            f"{'is' if self.runs == 1 else 'are'} approved and left took place, with the same "
            f"participants each time, the loss would be ε = {number(epsilon)}"
        )
        if self.ahead > self.account.allowed.mu:
            return f"{text}, over the limit of {number(limit)}: the agent would refuse the last."
        return f"{text} of {number(limit)}."

    def _pace(self) -> str:
        """Return when the limit is reached at the pace so far; empty if too little is known."""
        if len(self.points) < 2 or self.now - self.points[0][0] < _PACE_FROM:
            return ""
        spent = self.account.spent.mu
        allowed = self.account.allowed.mu
        if spent >= allowed:
            return "The limit is reached."
        past = self.now - self.points[0][0]
        factor = (allowed**2 - spent**2) / spent**2 if spent else math.inf
        if factor * past.days > _FARTHEST.days:
            return "At the pace since the first run, the limit is not reached within ten years."
        full = self.now + factor * past
        return f"At the pace since the first run, the limit is reached in {full:%B %Y}."

    def draw(self) -> Picture | None:
        """Draw the spent percentage of the most charged participant's budget over time.

        The drawing has the limit, and the level after the approved runs. It is None before the
        first run.
        """
        if not self.points:
            return None
        figure = Figure(figsize=SIZE, dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        last = self.now + max((self.now - self.points[0][0]) / 4, timedelta(days=7))
        *days, today, last_day = date2num([*(at for at, _ in self.points), self.now, last])
        levels = [self._part(mu) for _, mu in self.points]
        axes.step([*days, today], [*levels, levels[-1]], where="post", color=_INK, label="spent")
        axes.plot(days, levels, "o", color=_INK, markersize=4)
        if self.runs:
            ahead = [levels[-1], self._part(self.ahead)]
            label = f"with {count(self.runs, 'approved run')} to come"
            axes.plot([today, last_day], ahead, "--s", color=_AHEAD, markersize=4, label=label)
        axes.xaxis_date()
        axes.axhline(100.0, color=_LIMIT, linewidth=1.2, linestyle=(0, (6, 2)), label="limit")
        axes.set_ylim(0, None)
        axes.set_ylabel("% of the budget", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        figure.legend(fontsize=7, loc="outside upper left", ncols=3, frameon=False)
        return to_picture(figure, self._said(levels))

    def _part(self, mu: float) -> float:
        """Return the percent of the limit, in squares."""
        return 100.0 * (mu / self.account.allowed.mu) ** 2

    def _said(self, levels: Sequence[float]) -> str:
        """Return the picture in words."""
        first, early = self.points[0]
        last, late = self.points[-1]
        text = (
            f"In the budget of the most charged participant, {number(levels[0])} % (ε = "
            f"{number(epsilon_of(early, self.delta))}) was spent after the run that ended on "
            f"{first:%Y-%m-%d}, {number(levels[-1])} % (ε = "
            f"{number(epsilon_of(late, self.delta))}) after that of {last:%Y-%m-%d}; the limit is "
            f"ε = {number(self.account.allowed.epsilon)}."
        )
        return f"{text} {self._approved()}" if self.runs else text


def ledger_course(
    ledger: Ledger, account: Account, rows: Iterable[Row], delta: float, now: datetime
) -> Course:
    """Follow an account from its first run to the approved ones.

    Parameters
    ----------
    rows : iterable of Row
        Approved studies.
    delta : float
        The policy's.
    """
    course: list[tuple[datetime, float]] = []
    for at, mu in ledger.course(account.unit):
        when = _when(at)
        if when is not None:
            course.append((when, mu))
        elif course:  # with an unreadable time, but also a loss
            course[-1] = course[-1][0], mu
    left = [row for row in rows if row.study.privacy.unit in counted(account.unit) and row.left]
    ahead = compose([account.spent.mu, *(row.price for row in left)])
    runs = sum(row.left for row in left)
    return Course(
        account=account, points=tuple(course), ahead=ahead, runs=runs, delta=delta, now=now
    )


def _when(at: str) -> datetime | None:
    """Time of a line; None if it is unknown, as in a manually edited ledger."""
    try:
        return datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError):
        return None
