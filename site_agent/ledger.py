"""The site's own account of what its data have cost, across all studies.

An append-only table in SQLite (write-ahead log, full synchronisation). Each
line holds the digest of the one before, so that an edit shows. A loss is
reserved before noise is drawn and marked as spent once the message is stored;
what is reserved counts. A round is charged once, however often it is repeated.

One file may serve several agents of a hospital, in several processes: whoever
writes holds SQLite's write lock from reading the sum to adding the line.
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consortium.errors import BudgetError, LedgerError
from consortium.privacy.gdp import compose
from site_agent.book import Book
from site_agent.chain import EMPTY, Charge, Entry, Head, follow

__all__ = ["LEDGER", "Charge", "Entry", "Head", "Ledger"]

LEDGER = "ledger.sqlite"
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
        self._book: Book | None = None
        self._answered: list[tuple[Charge, str]] = []
        self._settled = -math.inf
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise LedgerError(
                f"{path} can't be opened ({error.strerror}); check its folder and rights."
            ) from error
        with self._using() as book, _transaction(book):
            book.lay_out()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._book is not None:
                self._book.close()
            self._book = None

    def total(self, dataset: str, unit: str) -> float:
        """μ of everything reserved or spent on a data set, for one unit of privacy."""
        with self._writing() as book:
            return math.sqrt(book.square(dataset, unit))

    def outsider_total(self, dataset: str, unit: str) -> float:
        """μ of the same against somebody who sees only what the studies released."""
        with self._using() as book:
            rows = book.connection.execute(
                "SELECT outsider FROM entries WHERE event = 'reserve' AND dataset = ? AND unit = ?",
                (dataset, unit),
            )
            return compose(mu for (mu,) in rows)

    def study_total(self, dataset: str, unit: str, study: str, centre: str) -> float:
        """μ of what one consortium's study has cost a data set so far, over all its runs."""
        with self._using() as book:
            rows = book.connection.execute(
                "SELECT mu FROM entries WHERE event = 'reserve' AND dataset = ? AND unit = ? "
                "AND study = ? AND centre = ?",
                (dataset, unit, study, centre),
            )
            return compose(mu for (mu,) in rows)

    def runs(self, study: str, centre: str | None = None) -> set[str]:
        """Runs of a study that something was reserved for, on any data set.

        Parameters
        ----------
        study : str
        centre : str, optional
            Public key of the consortium's centre; runs of every consortium if left out.
        """
        with self._using() as book:
            rows = book.connection.execute(
                "SELECT DISTINCT run FROM entries WHERE study = ? AND centre = ifnull(?, centre)",
                (study, centre),
            )
            return {str(run) for (run,) in rows}

    def head(self) -> Head:
        """Return the number of lines and the last one's digest."""
        with self._writing() as book:
            return book.head

    def digest_at(self, seq: int) -> str | None:
        """Digest of a line, or None if the ledger has not come so far."""
        with self._using() as book:
            return book.digest_at(seq)

    def entries(self) -> list[Entry]:
        """All lines, oldest first.

        Raises
        ------
        LedgerError
            If a line was changed, removed or put in.
        """
        with self._using() as book:
            return list(follow(EMPTY, book.read(), str(self.path)))

    def verify(self) -> None:
        """Check every line anew; at the start and before a run, since it takes 20 µs a line.

        Raises
        ------
        LedgerError
            If a line was altered, or the ledger was closed.
        """
        self.entries()
        with self._writing() as book:
            book.check_halt()

    def check(self, dataset: str, unit: str, mu: float, limit: float) -> None:
        """Refuse a study whose whole loss ``mu`` would exceed the data set's limit.

        Raises
        ------
        BudgetError
            With what is spent, asked and allowed, as μ.
        LedgerError
            If a line of the ledger was altered, or the ledger was closed.
        """
        self.verify()  # an altered ledger allows nothing
        with self._writing() as book:
            _check_limit(math.sqrt(book.square(dataset, unit)), mu, limit)

    def reserve(self, charge: Charge, limit: float, at: str) -> bool:
        """Reserve a round's price; False if this very charge was reserved before.

        Parameters
        ----------
        charge : Charge
        limit : float
            μ that all charges of the data set and unit may come to.
        at : str
            Time, for people.

        Raises
        ------
        BudgetError
            If the limit does not cover it; nothing is written.
        LedgerError
            If the round is in the ledger with another price or question, or the ledger was
            closed.
        """
        with self._writing() as book:
            book.check_halt()
            self._write_answered(book)
            known = book.find(charge, "reserve")
            if known is None:
                total = math.sqrt(book.square(charge.dataset, charge.unit))
                _check_limit(total, charge.mu, limit)
                book.append(charge, "reserve", at)
            elif known != charge:
                raise LedgerError(
                    f"Round {charge.round} of {charge.run} was reserved at another price or for "
                    "another question, so the site answers no further; ask the study's people why."
                )
            return known is None

    def spend(self, charge: Charge, at: str) -> None:
        """Mark a reserved round as answered; once, however often it is called.

        Raises
        ------
        LedgerError
            If it was not reserved.
        """
        with self._writing() as book:
            _spend(book, charge, at)

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
        with self._writing() as book:
            self._write_answered(book)

    def halt(self, why: str) -> None:
        """Close the ledger for every agent that shares it: it can be read, but nothing reserved.

        Only a file that is put in its place opens it again.

        Parameters
        ----------
        why : str
            The sentence that everybody is told who wants to reserve.
        """
        with self._writing() as book:
            book.halt(why)

    def _write_answered(self, book: Book) -> None:
        """Within a transaction: mark what was answered since the last one.

        If that transaction fails, the marks are written by the next restart's replay.
        """
        due, self._answered = self._answered, []
        for charge, at in due:
            _spend(book, charge, at)
            book.catch_up()

    @contextmanager
    def _writing(self) -> Iterator[Book]:
        """Hold the write lock; what others added since the last time is read and checked first."""
        with self._using() as book:
            with _transaction(book):
                book.catch_up()
                yield book
            book.catch_up()  # what was just written must be there, too, the next time
            if time.monotonic() - self._settled > _SETTLE_EVERY:
                book.settle()
                self._settled = time.monotonic()

    @contextmanager
    def _using(self) -> Iterator[Book]:
        with self._lock:
            try:
                self._book = Book(self.path) if self._book is None else self._book.current()
                yield self._book
            except sqlite3.Error as error:
                raise LedgerError(
                    f"{self.path} can't be used ({error}); check the disk and restore a backup."
                ) from error


def _spend(book: Book, charge: Charge, at: str) -> None:
    if book.find(charge, "reserve") != charge:
        raise LedgerError(
            f"Round {charge.round} of {charge.run} is not reserved; reserve it first."
        )
    if book.find(charge, "spend") is None:
        book.append(charge, "spend", at)


@contextmanager
def _transaction(book: Book) -> Iterator[None]:
    """All or nothing, and nobody else writes meanwhile."""
    book.connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        book.connection.execute("COMMIT")
    finally:
        if book.connection.in_transaction:
            book.connection.execute("ROLLBACK")


def _check_limit(total: float, mu: float, limit: float) -> None:
    # Put so that what is not a number is refused.
    if not (mu >= 0.0 and total**2 + mu**2 <= limit**2 * (1 + 1e-9)):
        raise BudgetError(
            f"The ledger holds μ = {total:.4g} and this asks for {mu:.4g} more, over the limit of "
            f"{limit:.4g}; raise the limit in policy.yaml or decline the study."
        )
