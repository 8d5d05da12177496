"""The site's own account of the privacy losses of its data, across all studies.

An append-only table in SQLite (WAL mode, full synchronisation). Each line contains the
digest of the one before, so an edit is detected. A loss is reserved before noise is drawn and
marked as spent once the message is stored. A reserved loss counts, unless a later line makes it
void because nothing was sent. A round is charged once, however often it is repeated.

One file may serve several agents of a hospital, in several processes: a writer keeps SQLite's write
lock from reading the sum to adding the line.

The sum of its lines is reported for the most charged participant, and for each study.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from consortium.base.formatting import number, percent
from consortium.errors import LedgerError
from consortium.privacy.gdp import compose, epsilon_of, mu_of
from consortium.study.plan import promised_mu
from consortium.study.spec import Study
from site_agent.ledger.entries import Charge, Head, LedgerEntry, standing_reservations
from site_agent.ledger.file import LedgerFile
from site_agent.ledger.limits import (
    LedgerLimits,
    OneStudy,
    check_begin,
    check_covered,
    check_loss,
    counted,
)
from site_agent.ledger.reader import LedgerReader
from site_agent.ledger.states import STATE, State
from site_agent.policy.policy import Policy, SpentLoss

__all__ = ["Charge", "Head", "Ledger", "LedgerEntry", "LedgerLimits"]
UNITS = {"subject": "participant", "timepoint": "single volume"}
"""Protected data of each unit of privacy, in words."""
_ROUNDING = 1e-9  # of squares of μ


class Ledger(LedgerReader):
    """A site's ledger, as an agent writes it.

    Parameters and errors are those of `LedgerReader`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._answered: list[tuple[Charge, str]] = []

    def enroll(self, labels: Collection[str], group: str = "") -> str:
        """Record a group that is charged together, by marks that reveal no label; only once.

        Raises LedgerError if the key of the marks, which is stored next to the ledger, is lost.

        Parameters
        ----------
        group : str
            Digest of a group whose participants are added; empty for none.

        Returns
        -------
        str
            Digest of the group, as `Charge.persons` names it.
        """
        with self._writing() as file:
            return file.enroll(labels, group)

    def hold(
        self, charge: Charge, labels: Sequence[str], limits: LedgerLimits, at: str
    ) -> tuple[str, list[str]]:
        """Hold the loss of a whole run for the participants who have the budget; only once.

        Participants who lack the budget are excluded from the run, and no run is refused. The
        limits are compared in the transaction that writes the line. So two runs never count on the
        same budget. A second call for a run keeps its participants: none is added. Raises
        PrivacyError if no further run may begin; nothing is written. Raises LedgerError if the run
        already holds another loss, or was released, or the ledger was closed.

        Parameters
        ----------
        charge : Charge
            The run's loss, with the round 0 and no participants.
        labels : sequence of str
            Participants who qualify for the run.
        at : str
            Time, for people.

        Returns
        -------
        group : str
            Digest of the participants of the hold, as in `Charge.persons`.
        left_out : list of str
            Labels that are not among them.
        """
        with self._marking() as file:
            file.check_halt()
            check_loss(charge)
            held = file.find(charge, "hold")
            if held is None:
                check_begin(file.sums, charge, limits)
                own = OneStudy(charge.study, {charge.centre, *limits.centres}, limits.study)
                totals = {charge.unit: 0.0, **limits.totals}  # a unit without limit has no budget
                over = set(file.over_limit(labels, totals, charge.unit, charge.mu, own))
                group = file.enroll([label for label in labels if label not in over])
                file.append(replace(charge, persons=group), "hold", at)
                return group, sorted(over)
            if file.find(charge, "release") or replace(held, persons="") != charge:
                raise LedgerError(
                    f"{charge.run} has ended here, or held another loss before, so the site stops "
                    "answering. Take part in a new run."
                )
            inside = {*file.named_in(held.persons, labels)}
            return held.persons, [label for label in labels if label not in inside]

    def release(self, run: str, site: str, at: str) -> None:
        """End a run's hold: from now on only its charged rounds count; once, and for any run.

        Parameters
        ----------
        run : str
            Name of the run.
        site : str
            Public key of the site, in hexadecimal.
        at : str
            Time, for people.
        """
        with self._marking() as file:
            for charge in file.sums.holds:
                if (charge.run, charge.site) == (run, site):
                    file.append(charge, "release", at)
                    file.catch_up()

    def reserve(self, charge: Charge, at: str) -> bool:
        """Reserve a round's loss within its run's hold; False if this charge was reserved before.

        Only `hold` compares with limits. So no order of runs, agents or processes can exceed one.
        Raises BudgetError if the loss is not a number. Raises LedgerError if the run has no hold or
        its hold does not cover the round, the round is in the ledger with another loss or question,
        or the ledger was closed. Nothing is then written.

        Parameters
        ----------
        at : str
            Time, for people.
        """
        with self._marking() as file:
            file.check_halt()
            known = file.find(charge, "reserve")
            if file.find(charge, "void") is not None:
                raise LedgerError(
                    f"Round {charge.round} of {charge.run} was over before it was answered here, "
                    "and is not charged again. Take part in a new run."
                )
            if known is None:
                check_covered(file.sums, charge)
                file.append(charge, "reserve", at)
            elif known != charge:
                raise LedgerError(
                    f"Round {charge.round} of {charge.run} was reserved with another loss or for "
                    "another question, so the site stops answering. Ask the study's coordinator "
                    "why."
                )
            return known is None

    def record(self, state: State, at: str) -> None:
        """Record a state of the site's folder.

        Raises LedgerError if the ledger was closed.

        Parameters
        ----------
        state : State
            The present state of the folder.
        at : str
            Time, for people.
        """
        with self._marking() as file:
            file.check_halt()
            file.append(state.line(file.head.seq + 1), STATE, at)

    def holds(self, charge: Charge) -> bool:
        """Return whether a round is charged: reserved, and not made void since."""
        with self._using() as file:
            return file.find(charge, "reserve") is not None and file.find(charge, "void") is None

    def spend(self, charge: Charge, at: str) -> None:
        """Mark a reserved round as answered; once, however often it is called.

        Raises LedgerError if it was not reserved.
        """
        with self._writing() as file:
            _spend(file, charge, at)

    def take_back(self, charge: Charge, at: str) -> None:
        """Cancel a reservation whose answer was never sent; the round is never charged again.

        To be called only by the process that reserved it and that has sent nothing. After a restart
        this is unknown, and the reservation stays charged. Raises LedgerError if it was not
        reserved, or was answered.
        """
        with self._marking() as file:
            if file.find(charge, "reserve") != charge or file.find(charge, "spend") is not None:
                raise LedgerError(
                    f"Round {charge.round} of {charge.run} can't be cancelled, since it is not "
                    "reserved or was answered; its charge stays."
                )
            if file.find(charge, "void") is None:
                file.append(charge, "void", at)

    def spend_soon(self, charge: Charge, at: str) -> None:
        """Mark a reserved round as answered with the next reservation, or when `settle` is called.

        For use during a run, where waiting for the disk is most of a round. A reserved loss already
        counts as spent, and a restarted agent marks its stored answers again.
        """
        with self._lock:
            self._answered.append((charge, at))

    def settle(self) -> None:
        """Write the due marks, and write every line into the main file, at the end of a run.

        Raises LedgerError as `spend`.
        """
        self._settled = -math.inf  # so it is done when the lines are written
        with self._marking():
            pass

    def halt(self, why: str) -> None:
        """Close the ledger for every agent that shares it: it can be read, but reserves nothing.

        Only replacing the file opens it again.

        Parameters
        ----------
        why : str
            The error message of every later attempt to reserve.
        """
        with self._writing() as file:
            file.halt(why)

    @contextmanager
    def _marking(self) -> Iterator[LedgerFile]:
        """Hold the write lock, and mark the rounds answered since the last time together."""
        with self._lock:
            due = list(self._answered)
            with self._writing() as file:
                for charge, at in due:
                    _spend(file, charge, at)
                    file.catch_up()
                yield file
            self._answered = self._answered[len(due) :]


def _spend(file: LedgerFile, charge: Charge, at: str) -> None:
    if file.find(charge, "reserve") != charge:
        raise LedgerError(
            f"Round {charge.round} of {charge.run} is not reserved. Reserve it first."
        )
    if file.find(charge, "void") is not None:
        raise LedgerError(
            f"Round {charge.round} of {charge.run} was cancelled and can't be answered. A copy of "
            "this site's folder may be at work. Stop it."
        )
    if file.find(charge, "spend") is None:
        file.append(charge, "spend", at)


@dataclass(frozen=True)
class Amount:
    """A loss in a ledger, as μ and as ε at the policy's δ."""

    mu: float
    epsilon: float


@dataclass(frozen=True)
class Account:
    """Remaining budget of the most charged participant, in one unit and over all data sets.

    The account of single volumes also counts studies that protect whole participants, which cost a
    volume as much. ``spent`` includes losses held by runs that have not ended. ``charged`` has only
    rounds. ``left`` is the largest single loss that the limit still covers: squares of μ add up,
    and neither μ nor ε do. ``outsider`` is the loss against a party that sees only the releases,
    and ``last`` the loss of the newest study, all its runs together.
    """

    unit: str
    allowed: Amount
    spent: Amount
    left: Amount
    outsider: Amount
    charged: Amount
    last: Amount | None = None

    @property
    def used(self) -> float:
        """Fraction of the limit that is spent, in squares of μ, which add up."""
        return (self.spent.mu / self.allowed.mu) ** 2 if self.allowed.mu else 1.0

    @property
    def more(self) -> int | None:
        """Number of further studies with the last one's loss that the limit covers."""
        if self.last is None or not self.last.mu:
            return None
        return math.floor((self.left.mu / self.last.mu) ** 2 * (1.0 + _ROUNDING))

    @property
    def sentence(self) -> str:
        """The summary in a sentence, the same in every report."""
        spent = "spent"
        rounds = ""
        if self.spent.mu**2 > self.charged.mu**2 * (1.0 + _ROUNDING):
            spent = "spent or reserved"
            rounds = f"without reserved losses ε = {number(self.charged.epsilon)}, "
        return (
            f"At most ε = {number(self.spent.epsilon)} of {self.allowed.epsilon:g} is {spent} for "
            f"each {UNITS.get(self.unit, self.unit)}, {percent(self.used)} of the budget "
            f"({rounds}against outsiders ε = {number(self.outsider.epsilon)}); one more study of "
            f"ε = {number(self.left.epsilon)} would use it up{self._like_last}."
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
    """Loss of one data set in one consortium's study."""

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
    """Compute the account of each unit that the policy allows, or that was ever charged.

    Raises LedgerError if the ledger can't be read.
    """
    entries = ledger.entries()
    charged = standing_reservations(entries)
    lines = (entry.charge.unit for entry in entries if entry.event in ("reserve", "hold"))
    units = sorted({*policy.units, *lines})
    return [_account(unit, ledger, charged, policy) for unit in units]  # participants come first


def studies(entries: Sequence[LedgerEntry], policy: Policy) -> list[StudyRow]:
    """Compute the loss of each study, in the order of their first lines."""
    groups: dict[tuple[str, str, str, str], list[LedgerEntry]] = defaultdict(list)
    for entry in (each for each in entries if each.is_of_round):
        c = entry.charge
        groups[c.study, c.centre, c.dataset, c.unit].append(entry)
    return [_row(*key, lines, policy) for key, lines in groups.items()]


def _account(unit: str, ledger: Ledger, charged: Sequence[LedgerEntry], policy: Policy) -> Account:
    spent = ledger.most_charged(unit)
    limit = policy.subject if unit == "subject" else policy.timepoint
    allowed = mu_of(limit.total, policy.delta)
    left = math.sqrt(max(allowed**2 - spent**2, 0.0))
    return Account(
        unit=unit,
        allowed=Amount(allowed, limit.total),
        spent=amount_of(spent, policy),
        left=amount_of(left, policy),
        outsider=amount_of(ledger.outsider_total(unit), policy),
        charged=amount_of(ledger.charged_total(unit), policy),
        last=_last(unit, charged, policy),
    )


def _last(unit: str, charged: Sequence[LedgerEntry], policy: Policy) -> Amount | None:
    """Return the loss of the newest study that counts for a unit."""
    lines = [entry.charge for entry in charged if entry.charge.unit in counted(unit)]
    if not lines:
        return None
    newest = (lines[-1].study, lines[-1].centre, lines[-1].dataset)
    own = (c.mu for c in lines if (c.study, c.centre, c.dataset) == newest)
    return amount_of(compose(own), policy)


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
        cost=amount_of(compose(line.charge.mu for line in reserved), policy),
        outsider=amount_of(compose(line.charge.outsider for line in reserved), policy),
        first=lines[0].at,
        last=lines[-1].at,
    )


def amount_of(mu: float, policy: Policy) -> Amount:
    """Return a loss with its ε at the policy's δ."""
    return Amount(mu, epsilon_of(mu, policy.delta))


def over_limit(
    ledger: Ledger,
    policy: Policy,
    study: Study,
    centres: Collection[str],
    labels: Sequence[str],
) -> list[str]:
    """Return the participants who have no budget left for one run, and are excluded from it.

    The loss is the largest that the study promises, which is public before the run. It depends on
    no participant's data.

    Parameters
    ----------
    centres : collection of str
        As in `spent_in`.
    """
    unit = study.privacy.unit
    price = promised_mu(study)
    own = OneStudy(study.study, frozenset(centres), policy.study_limit(unit))
    return ledger.over_limit(labels, policy.totals(), unit, price, own)


def spent_in(
    ledger: Ledger,
    dataset: str,
    study: Study,
    centres: Collection[str],
    labels: Sequence[str],
) -> SpentLoss:
    """Look up the most charged participant's loss before another run of a study.

    Parameters
    ----------
    dataset : str
        Name of the data set in the ledger.
    centres : collection of str
        Public keys that the study's consortium has or had, in hexadecimal.
    labels : sequence of str
        The participants whom the run would include.
    """
    unit = study.privacy.unit
    return SpentLoss(
        ledger.study_total(dataset, unit, study.study, centres, labels),
        ledger.total(dataset, unit, labels),
        ledger.total(dataset, "timepoint", labels),
    )
