"""What a ledger's lines come to: for whoever was charged most, and per study."""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from consortium.base.formatting import number, percent
from consortium.privacy.gdp import compose, epsilon_of, mu_of
from consortium.study.plan import promised_mu
from consortium.study.spec import Study
from site_agent.ledger.entries import LedgerEntry, standing_reservations
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.limits import counted
from site_agent.policy.policy import Policy
from site_agent.policy.refusals import SpentLoss

UNITS = {"subject": "participant", "timepoint": "single volume"}
"""What each unit of privacy protects, in words."""
_ROUNDING = 1e-9  # of squares of μ


@dataclass(frozen=True)
class Amount:
    """A loss, as μ and as ε at the policy's δ."""

    mu: float
    epsilon: float


@dataclass(frozen=True)
class Account:
    """What whoever was charged most has left, in one unit of privacy and over all data sets.

    That of single volumes counts what protects whole persons, too: it costs a volume as much.
    ``left`` is the largest single loss that the limit still covers: squares of μ add up, and
    neither μ nor ε do. ``outsider`` is what was spent against who sees only the releases, and
    ``last`` what the newest study has cost, all its runs together.
    """

    unit: str
    allowed: Amount
    spent: Amount
    left: Amount
    outsider: Amount
    last: Amount | None = None

    @property
    def used(self) -> float:
        """Part of the limit that is spent, in what adds up: squares of μ."""
        return (self.spent.mu / self.allowed.mu) ** 2 if self.allowed.mu else 1.0

    @property
    def more(self) -> int | None:
        """How many more studies that cost as much as the last one the limit covers."""
        if self.last is None or not self.last.mu:
            return None
        return math.floor((self.left.mu / self.last.mu) ** 2 * (1.0 + _ROUNDING))

    @property
    def sentence(self) -> str:
        """All of it in a sentence, the same wherever it is told."""
        return (
            f"ε = {number(self.spent.epsilon)} of {self.allowed.epsilon:g} is spent for each "
            f"{UNITS.get(self.unit, self.unit)} at the most, {percent(self.used)} of the budget "
            f"(against outsiders ε = {number(self.outsider.epsilon)}); "
            f"one more study of ε = {number(self.left.epsilon)} would use it up{self._like_last}."
        )

    @property
    def _like_last(self) -> str:
        if self.last is None or self.more is None:
            return ""
        few = {0: "no more study", 1: "1 more study"}
        studies = few.get(self.more, f"{self.more:,} more studies")
        return f", and {studies} like the last one (ε = {number(self.last.epsilon)}) would fit"


@dataclass(frozen=True)
class StudyRow:
    """What one consortium's study has cost one data set."""

    study: str
    centre: str
    dataset: str
    unit: str
    runs: int
    reserved: int
    answered: int
    statistics: tuple[str, ...]
    cost: Amount
    outsider: Amount
    first: str
    last: str


def accounts(ledger: Ledger, policy: Policy) -> list[Account]:
    """Work out the account of each unit that the policy allows, or that was ever charged.

    Raises LedgerError if the ledger can't be read.
    """
    charged = standing_reservations(ledger.entries())
    units = sorted({*policy.units, *(entry.charge.unit for entry in charged)})
    return [_account(unit, ledger, charged, policy) for unit in units]  # persons come first


def studies(entries: Sequence[LedgerEntry], policy: Policy) -> list[StudyRow]:
    """Work out what each study has cost, in the order of their first lines."""
    groups: dict[tuple[str, str, str, str], list[LedgerEntry]] = defaultdict(list)
    for entry in entries:
        c = entry.charge
        groups[c.study, c.centre, c.dataset, c.unit].append(entry)
    return [_row(*key, lines, policy) for key, lines in groups.items()]


def _account(unit: str, ledger: Ledger, charged: Sequence[LedgerEntry], policy: Policy) -> Account:
    spent = ledger.most_charged(unit)
    limit = policy.subject if unit == "subject" else policy.timepoint
    allowed = mu_of(limit.total, policy.delta)
    left = math.sqrt(max(allowed**2 - spent**2, 0.0))
    return Account(
        unit,
        Amount(allowed, limit.total),
        _amount(spent, policy),
        _amount(left, policy),
        _amount(ledger.outsider_total(unit), policy),
        _last(unit, charged, policy),
    )


def _last(unit: str, charged: Sequence[LedgerEntry], policy: Policy) -> Amount | None:
    """What the newest study that counts for a unit has cost."""
    lines = [entry.charge for entry in charged if entry.charge.unit in counted(unit)]
    if not lines:
        return None
    newest = (lines[-1].study, lines[-1].centre, lines[-1].dataset)
    own = (c.mu for c in lines if (c.study, c.centre, c.dataset) == newest)
    return _amount(compose(own), policy)


def _row(
    study: str, centre: str, dataset: str, unit: str, lines: list[LedgerEntry], policy: Policy
) -> StudyRow:
    reserved = standing_reservations(lines)
    return StudyRow(
        study,
        centre,
        dataset,
        unit,
        runs=len({line.charge.run for line in reserved}),
        reserved=len(reserved),
        answered=sum(line.event == "spend" for line in lines),
        statistics=tuple(dict.fromkeys(line.charge.statistic for line in reserved)),
        cost=_amount(compose(line.charge.mu for line in reserved), policy),
        outsider=_amount(compose(line.charge.outsider for line in reserved), policy),
        first=lines[0].at,
        last=lines[-1].at,
    )


def _amount(mu: float, policy: Policy) -> Amount:
    return Amount(mu, epsilon_of(mu, policy.delta))


def over_limit(ledger: Ledger, policy: Policy, study: Study, labels: Sequence[str]) -> list[str]:
    """Which persons have no budget left for one run, at the most that the study promises.

    The promise is public and known before any size is, so that the plan is made with those who
    stay, and nobody's data decide.
    """
    unit = study.privacy.unit
    return ledger.over_limit(labels, policy.totals(), unit, promised_mu(study))


def left_out(ledger: Ledger, policy: Policy, study: Study, labels: Sequence[str]) -> list[str]:
    """Who is left out of a study's next run: nobody, unless the policy wants it."""
    if policy.persons_over_limit == "refuse":
        return []
    return over_limit(ledger, policy, study, labels)


def spent_in(
    ledger: Ledger,
    dataset: str,
    study: Study,
    centres: Collection[str],
    labels: Sequence[str],
) -> SpentLoss:
    """Look up what a ledger holds of the most charged person before another run of a study.

    Parameters
    ----------
    dataset : str
        Name of the data set in the ledger.
    centres : collection of str
        Public keys that the study's consortium has or had, in hexadecimal.
    labels : sequence of str
        The persons whom the run would take.
    """
    unit = study.privacy.unit
    return SpentLoss(
        ledger.study_total(dataset, unit, study.study, centres, labels),
        ledger.total(dataset, unit, labels),
        ledger.total(dataset, "timepoint", labels),
    )
