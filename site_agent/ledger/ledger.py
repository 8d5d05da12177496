"""The site's own account of what its data have cost, across all studies.

An append-only table in SQLite (write-ahead log, full synchronisation). Each
line holds the digest of the one before, so that an edit shows. A loss is
reserved before noise is drawn and marked as spent once the message is stored;
what is reserved counts, unless a later line makes it void, since nothing was sent.
A round is charged once, however often it is repeated.

One file may serve several agents of a hospital, in several processes: whoever
writes holds SQLite's write lock from reading the sum to adding the line.
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from consortium.errors import LedgerError
from site_agent.ledger.entries import EMPTY, Charge, Entry, Head, follow, standing
from site_agent.ledger.exact import exact_root, exact_square
from site_agent.ledger.file import LedgerFile
from site_agent.ledger.limits import Limits, Sums, check_charge, counted
from site_agent.ledger.person_sums import PersonSums

__all__ = ["Charge", "Entry", "Head", "Ledger", "Limits"]

_SETTLE_EVERY = 1.0  # s between two times that the main file is brought up to date


class Ledger:
    """A site's ledger; safe to share among threads and processes.

    Parameters
    ----------
    path : Path
        The database; made if missing, readable by its owner only.

    Raises
    ------
    LedgerError
        If it can't be opened or has another layout. Altered lines show at the first use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._book: LedgerFile | None = None
        self._answered: list[tuple[Charge, str]] = []
        self._settled = -math.inf
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise LedgerError(
                f"{path} can't be opened ({error.strerror}); check its folder and rights."
            ) from error
        with self._using() as file, _transaction(file):
            file.lay_out()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._book is not None:
                self._book.close()
            self._book = None

    def enroll(self, labels: Collection[str]) -> str:
        """Write down who is charged together, by marks that tell nobody's label; once.

        Returns
        -------
        str
            Digest of the group, as `Charge.persons` names it.

        Raises
        ------
        LedgerError
            If the key of the marks, which lies beside the ledger, is lost.
        """
        with self._writing() as file:
            return file.enroll(labels)

    def total(self, dataset: str, unit: str, labels: Sequence[str] | None = None) -> float:
        """μ of everything reserved or spent that counts for the most charged person.

        That of single volumes counts what protects whole persons, too.

        Parameters
        ----------
        dataset, unit : str
        labels : sequence of str, optional
            The persons; without them, whoever was ever charged.
        """
        with self._writing() as file:
            return file.sums.total(dataset, unit, "" if labels is None else file.rows(labels))

    def most_charged(self, unit: str) -> float:
        """μ of the same for the most charged of all persons, over all data sets."""
        with self._writing() as file:
            return file.sums.total("", unit, file.sums.everybody)

    def course(self, unit: str) -> list[tuple[str, float]]:
        """When each run's last line was written, and μ of whoever had been charged most by then.

        The most charged person may be another one each time; nothing tells who.
        """
        with self._writing() as file:  # no longer than copying takes: an agent may wait meanwhile
            lines = list(file.read())
            groups = {line.charge.persons for line in lines if line.charge.persons}
            members = {group: file.members(group).copy() for group in groups}
        sums, found = Sums(members.__getitem__), []
        last = {line.charge.run: place for place, line in enumerate(lines)}
        for place, line in enumerate(lines):
            sums.add(line)
            if last[line.charge.run] == place:
                found.append((line.at, sums.total("", unit, sums.everybody)))
        return found

    def outsider_total(self, unit: str, labels: Sequence[str] | None = None) -> float:
        """μ of the same against somebody who sees only what the studies released.

        Parameters
        ----------
        unit : str
        labels : sequence of str, optional
            The persons; without them, whoever was ever charged.
        """
        with self._writing() as file:
            persons, before = PersonSums(file.members), 0
            for charge in (line.charge for line in standing(file.read())):
                if charge.unit in counted(unit):
                    square = exact_square(charge.outsider)
                    if charge.persons:
                        persons.add(unit, charge.persons, square)
                    else:  # of before losses were kept by person
                        before += square
            ids = persons.everybody if labels is None else file.rows(labels)
            return exact_root(before + persons.most([unit], ids))

    def over_limit(
        self, labels: Sequence[str], totals: Mapping[str, float], unit: str, price: float
    ) -> list[str]:
        """Which persons could not pay another price any more.

        It follows from labels and earlier charges alone, never from anybody's data.

        Parameters
        ----------
        labels : sequence of str
        totals : mapping of str to float
            μ by unit, as in `Limits`.
        unit : str
            What the price is for.
        price : float
            μ.
        """
        with self._writing() as file:
            rows, over = file.rows(labels), set()
            for held, limit in totals.items():
                if unit in counted(held):
                    found = file.sums.over(rows, held, price, limit)
                    over |= {label for label, is_over in zip(labels, found, strict=True) if is_over}
        return sorted(over)

    def study_total(
        self,
        dataset: str,
        unit: str,
        study: str,
        centres: Collection[str],
        labels: Sequence[str] | None = None,
    ) -> float:
        """μ of what one consortium's study has cost the most charged person, over all its runs.

        Parameters
        ----------
        dataset, unit, study : str
        centres : collection of str
            Public keys that the consortium has or had, in hexadecimal.
        labels : sequence of str, optional
            The persons; without them, whoever was ever charged.
        """
        with self._writing() as file:
            persons = "" if labels is None else file.rows(labels)
            return file.sums.study(dataset, unit, study, centres, persons)

    def runs(self, study: str, centres: Collection[str]) -> set[tuple[str, str]]:
        """Runs of a study that something was reserved for, on any data set.

        Each is the consortium's key at that time and the run's name; the parameters are those
        of `study_total`.
        """
        with self._writing() as file:
            return file.sums.runs(study, centres)

    def has_answered(self, sites: Collection[str]) -> bool:
        """Whether a round was answered by an agent with one of these public keys (hexadecimal)."""
        with self._using() as file:
            rows = file.connection.execute("SELECT DISTINCT site FROM entries WHERE event='spend'")
            return any(site in sites for (site,) in rows)

    def head(self) -> Head:
        """Return the number of lines and the last one's digest."""
        with self._writing() as file:
            return file.head

    def digest_at(self, seq: int) -> str | None:
        """Digest of a line, or None if the ledger has not come so far."""
        with self._using() as file:
            return file.digest_at(seq)

    def entries(self) -> list[Entry]:
        """All lines, oldest first.

        Raises
        ------
        LedgerError
            If a line was changed, removed or put in.
        """
        with self._using() as file:
            return list(follow(EMPTY, file.read(), str(self.path)))

    def verify(self) -> None:
        """Check every line anew; at the start and before a run, since it takes 20 µs a line.

        Raises
        ------
        LedgerError
            If a line was altered, or the ledger was closed.
        """
        self.entries()
        with self._writing() as file:
            file.check_halt()

    def reserve(self, charge: Charge, limits: Limits, at: str) -> bool:
        """Reserve a round's price; False if this very charge was reserved before.

        Every limit is held in the transaction that writes the line, so that no order of runs,
        agents or processes passes one.

        Parameters
        ----------
        charge : Charge
        limits : Limits
        at : str
            Time, for people.

        Raises
        ------
        BudgetError, PrivacyError
            If a limit does not cover it; nothing is written.
        LedgerError
            If the round is in the ledger with another price or question, or the ledger was
            closed.
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

    def holds(self, charge: Charge) -> bool:
        """Whether a round is charged: reserved, and not made void since."""
        with self._using() as file:
            return file.find(charge, "reserve") is not None and file.find(charge, "void") is None

    def spend(self, charge: Charge, at: str) -> None:
        """Mark a reserved round as answered; once, however often it is called.

        Raises
        ------
        LedgerError
            If it was not reserved.
        """
        with self._writing() as file:
            _spend(file, charge, at)

    def take_back(self, charge: Charge, at: str) -> None:
        """Make a reservation void whose answer was never sent; the round is never paid for again.

        To be called by who reserved it and knows that nothing left the site. After a restart
        nobody knows, and what is reserved stays charged.

        Raises
        ------
        LedgerError
            If it was not reserved, or was answered.
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

        Raises
        ------
        LedgerError
            As `spend`.
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

    @contextmanager
    def _writing(self) -> Iterator[LedgerFile]:
        """Hold the write lock; what others added since the last time is read and checked first."""
        with self._using() as file:
            try:
                with _transaction(file):
                    file.catch_up()
                    yield file
            except BaseException:  # what was read in it may be undone: all is read anew
                self.close()
                raise
            file.catch_up()  # what was just written must be there, too, the next time
            if time.monotonic() - self._settled > _SETTLE_EVERY:
                file.settle()
                self._settled = time.monotonic()

    @contextmanager
    def _using(self) -> Iterator[LedgerFile]:
        with self._lock:
            try:
                self._book = LedgerFile(self.path) if self._book is None else self._book.current()
                yield self._book
            except sqlite3.Error as error:
                raise LedgerError(
                    f"{self.path} can't be used ({error}); check the disk and restore a backup."
                ) from error


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


@contextmanager
def _transaction(file: LedgerFile) -> Iterator[None]:
    """All or nothing, and nobody else writes meanwhile."""
    file.connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.connection.execute("COMMIT")
    finally:
        if file.connection.in_transaction:
            file.connection.execute("ROLLBACK")
