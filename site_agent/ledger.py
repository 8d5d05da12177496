"""The site's own account of what its data have cost, across all studies.

An append-only table in SQLite (write-ahead log, full synchronisation). Each
entry holds the digest of the one before, so that an edit shows. A loss is
reserved before noise is drawn and marked as spent once the message is stored;
what is reserved counts. A round is charged once, however often it is repeated.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from consortium.errors import BudgetError, LedgerError

LEDGER = "ledger.sqlite"

_TABLE = """
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL, study TEXT NOT NULL, run TEXT NOT NULL, round INTEGER NOT NULL,
    stage TEXT NOT NULL, statistic TEXT NOT NULL, unit TEXT NOT NULL, mu REAL NOT NULL,
    event TEXT NOT NULL CHECK (event IN ('reserve', 'spend')),
    at TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL,
    UNIQUE (run, round, event)
)"""
_FIELDS = "dataset, study, run, round, stage, statistic, unit, mu"
_START = "0" * 64


@dataclass(frozen=True)
class Charge:
    """One round's price.

    ``mu`` is the loss against the worst coalition that the study allows for.
    """

    dataset: str
    study: str
    run: str
    round: int
    stage: str
    statistic: str
    unit: str
    mu: float


@dataclass(frozen=True)
class Entry:
    """A line of the ledger."""

    seq: int
    charge: Charge
    event: str
    at: str
    previous: str
    digest: str


class Ledger:
    """A site's ledger.

    Parameters
    ----------
    path : Path
        The database; made if missing.

    Raises
    ------
    LedgerError
        If it can't be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._connect() as connection:
            connection.execute(_TABLE)

    def total(self, dataset: str, unit: str) -> float:
        """μ of everything reserved or spent on a data set, for one unit of privacy."""
        with self._connect() as connection:
            return self._total(connection, dataset, unit)

    def runs(self, study: str) -> set[str]:
        """Runs of a study that something was reserved for, on any data set."""
        with self._connect() as connection:
            rows = connection.execute("SELECT DISTINCT run FROM entries WHERE study = ?", (study,))
            return {str(run) for (run,) in rows}

    def check(self, dataset: str, unit: str, mu: float, limit: float) -> None:
        """Refuse a study whose whole loss ``mu`` would exceed the data set's limit.

        Raises
        ------
        BudgetError
            With what is spent, asked and allowed, as μ.
        LedgerError
            If a line of the ledger was altered.
        """
        self.entries()  # an altered ledger allows nothing
        _check_limit(self.total(dataset, unit), mu, limit)

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
            If the round is in the ledger with another price.
        """
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            known = self._find(connection, charge, "reserve")
            if known is not None:
                if known != charge:
                    raise LedgerError(
                        f"Round {charge.round} of {charge.run} was reserved at another price; "
                        "the question was changed, so the site answers no further."
                    )
                return False
            _check_limit(self._total(connection, charge.dataset, charge.unit), charge.mu, limit)
            self._append(connection, charge, "reserve", at)
            return True

    def spend(self, charge: Charge, at: str) -> None:
        """Mark a reserved round as answered; once, however often it is called.

        Raises
        ------
        LedgerError
            If it was not reserved.
        """
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if self._find(connection, charge, "reserve") != charge:
                raise LedgerError(
                    f"Round {charge.round} of {charge.run} is not reserved; reserve it first."
                )
            if self._find(connection, charge, "spend") is None:
                self._append(connection, charge, "spend", at)

    def entries(self) -> list[Entry]:
        """All lines, oldest first.

        Raises
        ------
        LedgerError
            If a line was changed, removed or put in.
        """
        with self._connect() as connection:
            rows = connection.execute(
                f"SELECT seq, {_FIELDS}, event, at, previous, digest FROM entries ORDER BY seq"  # noqa: S608
            ).fetchall()
        previous, found = _START, []
        for place, row in enumerate(rows, start=1):
            entry = Entry(row[0], Charge(*row[1:9]), *row[9:])
            expected = _digest(entry.charge, entry.event, entry.at, previous)
            if entry.seq != place or (entry.previous, entry.digest) != (previous, expected):
                raise LedgerError(
                    f"{self._path}: line {place} was altered; restore the ledger from a backup "
                    "and ask who changed it."
                )
            found.append(entry)
            previous = entry.digest
        return found

    def _append(self, connection: sqlite3.Connection, charge: Charge, event: str, at: str) -> None:
        last = connection.execute("SELECT seq, digest FROM entries ORDER BY seq DESC").fetchone()
        seq, previous = (last[0] + 1, last[1]) if last else (1, _START)
        values = (seq, *asdict(charge).values(), event, at, previous)
        marks = ", ".join("?" * (len(values) + 1))
        connection.execute(
            f"INSERT INTO entries VALUES ({marks})",  # noqa: S608 - marks only
            (*values, _digest(charge, event, at, previous)),
        )

    @staticmethod
    def _find(connection: sqlite3.Connection, charge: Charge, event: str) -> Charge | None:
        row = connection.execute(
            f"SELECT {_FIELDS} FROM entries WHERE run = ? AND round = ? AND event = ?",  # noqa: S608
            (charge.run, charge.round, event),
        ).fetchone()
        return Charge(*row) if row else None

    @staticmethod
    def _total(connection: sqlite3.Connection, dataset: str, unit: str) -> float:
        rows = connection.execute(
            "SELECT mu FROM entries WHERE dataset = ? AND unit = ? AND event = 'reserve'",
            (dataset, unit),
        )
        return math.sqrt(math.fsum(mu * mu for (mu,) in rows))

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self._path, timeout=30.0, isolation_level=None)
        except sqlite3.Error as error:
            raise LedgerError(f"{self._path} can't be opened; check its folder.") from error
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
            if connection.in_transaction:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(
                f"{self._path} can't be used ({error}); check the disk and restore a backup."
            ) from error
        finally:
            connection.close()  # rolls back what was not committed


def _check_limit(total: float, mu: float, limit: float) -> None:
    # Put so that what is not a number is refused.
    if not (mu >= 0.0 and total**2 + mu**2 <= limit**2 * (1 + 1e-9)):
        raise BudgetError(
            f"The ledger holds μ = {total:.4g} and this asks for {mu:.4g} more, over the limit of "
            f"{limit:.4g}; raise the limit in site.yaml or decline the study."
        )


def _digest(charge: Charge, event: str, at: str, previous: str) -> str:
    content = json.dumps([*asdict(charge).values(), event, at, previous])
    return hashlib.sha256(content.encode()).hexdigest()
