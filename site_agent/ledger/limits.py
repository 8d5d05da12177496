"""Limits of charges to a ledger, and the sums that every hold is compared with.

Before its first round, the whole privacy loss of a run's participants is held, and this counts as
charged. A round is charged only if its run's hold covers it. So it can't fail because another run
was charged meanwhile. The release at the run's end leaves the losses of the rounds.

A charge of unit ``subject`` also counts in the account of single volumes: protection of all of a
participant's scans protects each of them only as well. The converse is bounded only by group
privacy, so a charge of unit ``timepoint`` counts in its own account only.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consortium.errors import BudgetError, LedgerError, PrivacyError
from site_agent.ledger.entries import Charge, LedgerEntry
from site_agent.ledger.persons import Ids, PersonSums, exact_float, exact_root, exact_square

_ROUNDING = 1 + 1e-9
Account = tuple[str, str, str]
"""Unit, study, and public key of the centre."""


class OneStudy(NamedTuple):
    """A study's account in a site's ledger, over all its runs."""

    study: str
    """Name of the study."""
    centres: Collection[str]
    """Public keys that its consortium has or had, in hexadecimal."""
    limit: float
    """Largest loss of a participant in the study, as μ."""


@dataclass(frozen=True)
class LedgerLimits:
    """Conditions that must be met after a run's hold; every loss is a μ."""

    totals: Mapping[str, float]
    """Limit by unit of all charges that count in a participant's account. A missing account has no
    limit, except that of the run's own unit, whose limit is then 0."""
    study: float = math.inf
    """Largest loss of a participant in the study, all its runs together, by the site's policy."""
    runs: float = math.inf
    """Maximum number of charged runs of the study, by the approval."""
    centres: frozenset[str] = frozenset()
    """Public keys, in hexadecimal, that the consortium has or had. Its study is the same, whichever
    of them signed it."""
    ended: str = ""
    """Reason why no run may begin any more; empty if one may."""


@dataclass
class _Hold:
    """The loss held for a run, and its charged rounds."""

    charge: Charge
    rounds: list[Charge] = field(default_factory=list)

    def covers(self, charge: Charge) -> bool:
        """Return whether a round of the same participants fits into the rest of the hold."""
        ours = self.charge
        theirs = charge
        if (ours.persons, ours.unit, ours.study) != (theirs.persons, theirs.unit, theirs.study):
            return False
        spent = sum(each.mu**2 for each in self.rounds)
        return spent + charge.mu**2 <= ours.mu**2 * _ROUNDING


class Sums:
    """Sums of a ledger's reservations, updated with each line."""

    def __init__(self, members: Callable[[str], Ids]) -> None:
        self.read_members(members)
        self.clear()

    def clear(self) -> None:
        """Forget every line."""
        self._persons = PersonSums(lambda group: self._members(group))
        self._accounts: dict[tuple[str, str], int] = defaultdict(int)
        self._studies: dict[tuple[str, str, str, str], int] = defaultdict(int)
        self._runs: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._holds: dict[tuple[str, str, str], _Hold] = {}

    def add(self, entry: LedgerEntry) -> None:
        """Count a reservation or hold, or subtract one that was made void or released.

        A reservation of a run with hold counts from the release on. Other lines cost
        nothing.
        """
        charge = entry.charge
        key = charge.site, charge.centre, charge.run
        match entry.event:
            case "hold":
                self._holds[key] = _Hold(charge)
                self._count(charge, 1)
            case "release":
                hold = self._holds.pop(key)
                self._count(hold.charge, -1)
                for each in hold.rounds:
                    self._count(each, 1)
            case "reserve" | "void":
                sign = 1 if entry.event == "reserve" else -1
                self._runs[charge.study, charge.centre][charge.run] += sign
                self._add_round(key, charge, sign)

    def _add_round(self, key: tuple[str, str, str], charge: Charge, sign: int) -> None:
        """Count a round, or note that its run's hold covers it."""
        hold = self._holds.get(key)
        if hold is None:
            self._count(charge, sign)
        elif sign > 0:
            hold.rounds.append(charge)
        else:
            hold.rounds.remove(charge)

    def _count(self, charge: Charge, sign: int) -> None:
        """Add a charge to its accounts, or subtract it."""
        square = sign * exact_square(charge.mu)
        if charge.persons:
            self._persons.add(charge.unit, charge.persons, square)
            account = charge.unit, charge.study, charge.centre
            self._persons.add(account, charge.persons, square)
        else:
            self._accounts[charge.dataset, charge.unit] += square
            self._studies[charge.dataset, charge.unit, charge.study, charge.centre] += square

    @property
    def everybody(self) -> Ids:
        """All participants who were charged anything."""
        return self._persons.everybody

    def read_members(self, members: Callable[[str], Ids]) -> None:
        """Request the participants of a group from this function from now on."""
        self._members = members

    def total(self, dataset: str, unit: str, persons: Ids | None = None) -> float:
        """Return the μ of the participant among these who was charged most.

        Lines that name no group count for all participants of all data sets. Without participants
        the sum is of the data set's lines without a group, and of the most charged participant.
        """
        units = counted(unit)
        before = self._before(dataset, persons is not None, units)
        return exact_root(before + self._persons.most(units, self._ids(persons)))

    def study(
        self,
        dataset: str,
        unit: str,
        study: str,
        centres: Collection[str],
        persons: Ids | None = None,
    ) -> float:
        """Return μ of one consortium's study for the same participant, over all its runs."""
        held = _held(unit, study, centres)
        before = self._of_study(dataset if persons is None else "", held)
        return exact_root(before + self._persons.most(held, self._ids(persons)))

    def over(self, ids: Ids, unit: str, price: float, limit: float) -> NDArray[np.bool_]:
        """Return which participants would exceed the total limit with a loss, by row."""
        before = exact_float(self._before("", True, counted(unit)))
        return _over(before + self._persons.of(counted(unit), ids), price, limit)

    def over_study(self, ids: Ids, unit: str, price: float, study: OneStudy) -> NDArray[np.bool_]:
        """Return which participants would exceed one study's limit with a loss, by row."""
        held = _held(unit, study.study, study.centres)
        before = exact_float(self._of_study("", held))
        return _over(before + self._persons.of(held, ids), price, study.limit)

    def _of_study(self, dataset: str, held: Collection[Account]) -> int:
        """Return the sum of a study's lines without a group, of one data set or (if empty) all."""
        keys = [key for key in self._studies if dataset in ("", key[0]) and key[1:] in held]
        return sum(self._studies[key] for key in keys)

    def _before(self, dataset: str, everywhere: bool, units: Collection[str]) -> int:
        """Return the sum of the lines that name no group, of one data set or of all."""
        keys = [key for key in self._accounts if everywhere or key[0] == dataset]
        return sum(self._accounts[key] for key in keys if key[1] in units)

    def _ids(self, persons: Ids | None) -> Ids:
        return self._persons.everybody if persons is None else persons

    def runs(self, study: str, centres: Collection[str]) -> set[tuple[str, str]]:
        """Return the keys and names of a study's runs with reservations, on any data set."""
        runs = {key: self._runs.get((study, key), Counter[str]()) for key in centres}
        return {(key, run) for key, had in runs.items() for run, lines in had.items() if lines}

    def under_way(self, study: str, centres: Collection[str]) -> set[tuple[str, str]]:
        """Return keys and names of a study's runs that were charged or have a hold."""
        held = {(x.centre, x.run) for x in self.holds if x.study == study and x.centre in centres}
        return self.runs(study, centres) | held

    def used(self, study: str, centres: Collection[str]) -> int:
        """Return the number of runs of a study that were charged."""
        return len({run for _, run in self.runs(study, centres)})

    def hold(self, charge: Charge) -> _Hold | None:
        """Return the hold of the charge's run at its site, or None."""
        return self._holds.get((charge.site, charge.centre, charge.run))

    @property
    def holds(self) -> list[Charge]:
        """Holds of runs that were not released."""
        return [hold.charge for hold in self._holds.values()]


def _held(unit: str, study: str, centres: Collection[str]) -> list[Account]:
    """Return the accounts of one study whose charges count for a unit."""
    return [(each, study, centre) for each in counted(unit) for centre in set(centres)]


def _over(spent: NDArray[np.float64], price: float, limit: float) -> NDArray[np.bool_]:
    return np.asarray(~(spent + price**2 <= limit**2 * _ROUNDING))


def counted(unit: str) -> tuple[str, ...]:
    """Return the units whose charges count in a unit's account of the ledger."""
    return ("subject", "timepoint") if unit == "timepoint" else (unit,)


def check_covered(sums: Sums, charge: Charge) -> None:
    """Require that a round's charge is covered by its run's hold.

    Raises BudgetError if its loss is not a number. Raises LedgerError if its run has no hold, or
    one of another loss than the round needs.
    """
    check_loss(charge)
    hold = sums.hold(charge)
    if hold is None:
        raise LedgerError(
            f"{charge.run} has no hold in the ledger, since it has ended here or never began, so "
            "the site stops answering. Take part in a new run."
        )
    if not hold.covers(charge):
        raise LedgerError(
            f"Round {charge.round} of {charge.run} costs more than the run's hold in the ledger, "
            "or is charged to other participants. Take part in a new run."
        )


def no_run_left(study: str, runs: float) -> PrivacyError:
    """Return the ledger's sentence that a study's approved runs are used up."""
    return PrivacyError(
        f"'{study}' was approved for {runs:g} run{'' if runs == 1 else 's'} and had as many; "
        "another costs again, so approve it again if you agree."
    )


def check_loss(charge: Charge) -> None:
    """Raise BudgetError if a ledger's charge has a μ that is not a finite number of at least 0."""
    if not 0.0 <= charge.mu < math.inf:
        raise BudgetError(
            f"μ = {charge.mu} is not a privacy loss. Ask the coordinator of the study."
        )


def check_begin(sums: Sums, charge: Charge, limits: LedgerLimits) -> None:
    """Raise PrivacyError if no further run of the charge's study may begin."""
    runs = sums.under_way(charge.study, {charge.centre, *limits.centres})
    # Two agents of a hospital may answer one run.
    if (charge.centre, charge.run) not in runs and len(runs) >= limits.runs:
        raise no_run_left(charge.study, limits.runs)
    if limits.ended:
        raise PrivacyError(limits.ended)
