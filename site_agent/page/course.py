"""A site's approved studies, and its accounts over time with the forecast of these studies.

Squares of μ add up. So a pace is a square of μ a day, and approved runs that have not begun add
their own squares, as if every run charged the same participants, which is an upper bound.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from matplotlib.dates import date2num
from matplotlib.figure import Figure

from consortium.algorithms import REGISTRY
from consortium.base.formatting import count, number
from consortium.privacy.gdp import (
    compose,
    epsilon_of,
    mu_of,
)
from consortium.report.pictures import DOTS, SIZE, Picture, to_picture
from consortium.study.plan import promised_mu
from consortium.study.spec import Study
from site_agent.approval.approval import Terms
from site_agent.ledger.ledger import Account, Ledger
from site_agent.ledger.limits import counted
from site_agent.status import ListedApproval, SiteStatus

_PACE_FROM = timedelta(days=30)
_FARTHEST = timedelta(days=3652)
_INK = "#0b5c6b"
_LIMIT = "#b3272d"
_AHEAD = "#8a5a00"


@dataclass(frozen=True)
class Row:
    """An approved study in a row of the site's page."""

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


def approved(status: SiteStatus, today: date) -> tuple[Row, ...]:
    """Return every approved study with the runs that are left."""
    return tuple(_row(each, today) for each in status.approved)


def _row(yes: ListedApproval, today: date) -> Row:
    study = yes.approval.study
    terms = yes.approval.terms
    left = yes.left
    state = "The agent takes part when a run is announced."
    if terms.ended(today):
        left = 0
        state = "The last day has passed."
    elif not left:
        state = "All approved runs have begun or taken place."
    if yes.refused:
        state = f"Refused: {yes.refused}"
    price = math.sqrt(left) * promised_mu(study) if left else 0.0
    if terms.epsilon is not None:
        price = min(price, mu_of(terms.epsilon, study.privacy.delta))
    return Row(study, terms, left, state, price)


@dataclass(frozen=True)
class Course:
    """The privacy loss of one account over time, for the site's page."""

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
    asked: str = ""
    """Name of a study that is not approved, one run of which is among the runs; may be empty."""

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
            f"If {self._which()} took place, with the same participants each time, the loss would "
            f"be ε = {number(epsilon)}"
        )
        if self.ahead > self.account.allowed.mu:
            return f"{text}, over the limit of {number(limit)}: the agent would refuse the last."
        return f"{text} of {number(limit)}."

    def _which(self) -> str:
        """Return the runs that are assumed to take place, in words."""
        others = self.runs - 1 if self.asked else self.runs
        left = f"{'the one run' if others == 1 else f'all {others} runs'} that "
        left += f"{'is' if others == 1 else 'are'} approved and left"
        if not self.asked:
            return left
        return f"one run of {self.asked} and {left}" if others else f"one run of {self.asked}"

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
            label = f"with {count(self.runs, 'run' if self.asked else 'approved run')} to come"
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
    ledger: Ledger,
    account: Account,
    rows: Iterable[Row],
    delta: float,
    now: datetime,
    asked: str = "",
) -> Course:
    """Follow an account from its first run to the approved ones.

    Parameters
    ----------
    rows : iterable of Row
        Approved studies.
    delta : float
        The policy's.
    now : datetime
        The time, with its time zone.
    asked : str
        As in `Course`.
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
    is_asked = any(row.study.study == asked for row in left)
    return Course(
        account=account,
        points=tuple(course),
        ahead=ahead,
        runs=runs,
        delta=delta,
        now=now,
        asked=asked if is_asked else "",
    )


def _when(at: str) -> datetime | None:
    """Time of a line; None if it is unknown, as in a manually edited ledger."""
    try:
        return datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError):
        return None
