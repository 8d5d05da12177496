"""What a ledger's lines come to: for whoever was charged most, and per study."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from consortium.privacy.gdp import compose, epsilon_of, mu_of
from consortium.study.plan import promised_mu
from consortium.study.spec import Study
from site_agent.ledger.entries import Entry, standing
from site_agent.ledger.ledger import Ledger
from site_agent.policy.policy import Policy
from site_agent.policy.refusals import Spent


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
    neither μ nor ε do. ``outsider`` is what was spent against who sees only the releases.
    """

    unit: str
    allowed: Amount
    spent: Amount
    left: Amount
    outsider: Amount


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

    Raises
    ------
    LedgerError
        If the ledger can't be read.
    """
    charged = {entry.charge.unit for entry in standing(ledger.entries())}
    units = sorted({*policy.units, *charged})  # persons come before single volumes
    return [_account(unit, ledger, policy) for unit in units]


def studies(entries: Sequence[Entry], policy: Policy) -> list[StudyRow]:
    """Work out what each study has cost, in the order of their first lines."""
    groups: dict[tuple[str, str, str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        c = entry.charge
        groups[c.study, c.centre, c.dataset, c.unit].append(entry)
    return [_row(*key, lines, policy) for key, lines in groups.items()]


def _account(unit: str, ledger: Ledger, policy: Policy) -> Account:
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
    )


def _row(
    study: str, centre: str, dataset: str, unit: str, lines: list[Entry], policy: Policy
) -> StudyRow:
    reserved = standing(lines)
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
) -> Spent:
    """Look up what a ledger holds of the most charged person before another run of a study.

    Parameters
    ----------
    ledger : Ledger
    dataset : str
        Name of the data set in the ledger.
    study : Study
    centres : collection of str
        Public keys that the study's consortium has or had, in hexadecimal.
    labels : sequence of str
        The persons whom the run would take.
    """
    unit = study.privacy.unit
    return Spent(
        ledger.study_total(dataset, unit, study.study, centres, labels),
        ledger.total(dataset, unit, labels),
        ledger.total(dataset, "timepoint", labels),
    )
