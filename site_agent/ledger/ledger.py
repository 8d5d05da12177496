"""The site's own account of what its data have cost, across all studies.

An append-only table in SQLite (write-ahead log, full synchronisation). Each
line holds the digest of the one before, so that an edit shows. A loss is
reserved before noise is drawn and marked as spent once the message is stored;
what is reserved counts, unless a later line makes it void, since nothing was sent.
A round is charged once, however often it is repeated.

One file may serve several agents of a hospital, in several processes: whoever
writes holds SQLite's write lock from reading the sum to adding the line.
"""

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from consortium.errors import LedgerError, PrivacyError
from site_agent.ledger.entries import Charge, Head, LedgerEntry
from site_agent.ledger.file import LedgerFile
from site_agent.ledger.limits import LedgerLimits, check_charge, no_run_left
from site_agent.ledger.reader import LedgerReader, check_reported
from site_agent.ledger.sizes import Sizes

__all__ = ["Charge", "Head", "Ledger", "LedgerEntry", "LedgerLimits"]


class Ledger(LedgerReader):
    """A site's ledger, as an agent writes it.

    Parameters and errors are those of `LedgerReader`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._answered: list[tuple[Charge, str]] = []

    def enroll(self, labels: Collection[str]) -> str:
        """Write down who is charged together, by marks that tell nobody's label; once.

        Raises LedgerError if the key of the marks, which lies beside the ledger, is lost.

        Returns
        -------
        str
            Digest of the group, as `Charge.persons` names it.
        """
        with self._writing() as file:
            return file.enroll(labels)

    def reserve(self, charge: Charge, limits: LedgerLimits, at: str) -> bool:
        """Reserve a round's price; False if this very charge was reserved before.

        Every limit is held in the transaction that writes the line, so that no order of runs,
        agents or processes passes one. Raises BudgetError, PrivacyError if a limit does not cover
        it; nothing is written. Raises LedgerError if the round is in the ledger with another price
        or question, or the ledger was closed.

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
                    "and is not paid for again; take part in a new run."
                )
            if known is None:
                check_charge(file.sums, charge, limits)
                file.append(charge, "reserve", at)
            elif known != charge:
                raise LedgerError(
                    f"Round {charge.round} of {charge.run} was reserved at another price or for "
                    "another question, so the site answers no further; ask the study's people why."
                )
            return known is None

    def tell(self, charge: Charge, sizes: Sizes, least: int, limits: LedgerLimits, at: str) -> bool:
        """Write down that a run is told how many take part, and who they are; False if it was.

        Raises PrivacyError if the numbers would tell of a few persons, the approved runs are used
        up, or the run was told of others; nothing is written. Raises LedgerError if the ledger was
        closed.

        Parameters
        ----------
        charge : Charge
            Of round 0 and no price; the number of volumes and who takes part are filled in.
        least : int
            The policy's ``fewest_subjects_chosen``.
        at : str
            Time, for people.
        """
        with self._marking() as file:
            file.check_halt()
            known = file.find(charge, "tell")
            if known is None:
                check_reported(file, sizes, least)
            recordings = file.enroll(sizes.recordings) if sizes.recordings else ""
            persons, statistic = file.enroll(sizes.persons), f"sizes, {sizes.samples} volumes"
            charge = replace(charge, statistic=statistic, persons=persons, query=recordings)
            if known is None:
                centres = {charge.centre, *limits.centres}
                if file.sums.used(charge.study, centres, asked=charge) > limits.runs:
                    raise no_run_left(charge.study, limits.runs)
                file.append(charge, "tell", at)
            elif known != charge:
                raise PrivacyError(
                    f"Other participants or volumes than {charge.run} was informed of would take "
                    "part now, so the site answers no further; take part in a new run."
                )
            return known is None

    def decline(self, charge: Charge, at: str) -> None:
        """Write down that a run is refused for who would take part; it uses a run up.

        Nothing is written of a run that was told its numbers, which used one up before.
        """
        with self._marking() as file:
            if file.find(charge, "tell") is None:
                file.append(charge, "tell", at)

    def holds(self, charge: Charge) -> bool:
        """Whether a round is charged: reserved, and not made void since."""
        with self._using() as file:
            return file.find(charge, "reserve") is not None and file.find(charge, "void") is None

    def spend(self, charge: Charge, at: str) -> None:
        """Mark a reserved round as answered; once, however often it is called.

        Raises LedgerError if it was not reserved.
        """
        with self._writing() as file:
            _spend(file, charge, at)

    def take_back(self, charge: Charge, at: str) -> None:
        """Make a reservation void whose answer was never sent; the round is never paid for again.

        To be called by who reserved it and knows that nothing left the site. After a restart nobody
        knows, and what is reserved stays charged. Raises LedgerError if it was not reserved, or was
        answered.
        """
        with self._marking() as file:
            if file.find(charge, "reserve") != charge or file.find(charge, "spend") is not None:
                raise LedgerError(
                    f"Round {charge.round} of {charge.run} can't be taken back, since it is not "
                    "reserved or was answered; its charge stays."
                )
            if file.find(charge, "void") is None:
                file.append(charge, "void", at)

    def spend_soon(self, charge: Charge, at: str) -> None:
        """Mark a reserved round as answered with the next reservation, or when `settle` is called.

        For the midst of a run, where waiting for the disk is most of a round. What is reserved
        counts as spent already, and a restarted agent marks its stored answers anew.
        """
        with self._lock:
            self._answered.append((charge, at))

    def settle(self) -> None:
        """Write what is due, and bring every line into the main file; at the end of a run.

        Raises LedgerError as `spend`.
        """
        self._settled = -math.inf  # so that it is done when the lines are written
        with self._marking():
            pass

    def halt(self, why: str) -> None:
        """Close the ledger for every agent that shares it: it can be read, but nothing reserved.

        Only a file that is put in its place opens it again.

        Parameters
        ----------
        why : str
            The sentence that everybody is told who wants to reserve.
        """
        with self._writing() as file:
            file.halt(why)

    @contextmanager
    def _marking(self) -> Iterator[LedgerFile]:
        """Hold the write lock, and mark what was answered since the last time in one go."""
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
            f"Round {charge.round} of {charge.run} is not reserved; reserve it first."
        )
    if file.find(charge, "void") is not None:
        raise LedgerError(
            f"Round {charge.round} of {charge.run} was taken back and can't be answered; a copy of "
            "this site's folder may be at work, so stop it."
        )
    if file.find(charge, "spend") is None:
        file.append(charge, "spend", at)
