"""A ledger's open file: its table, and the number of lines that were read and found valid."""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Self

import numpy as np

from consortium.errors import LedgerError
from site_agent.labels import canonical_label
from site_agent.ledger.disk import set_journal
from site_agent.ledger.entries import EMPTY, Charge, LedgerEntry, follow, next_entry
from site_agent.ledger.limits import OneStudy, Sums, counted
from site_agent.ledger.persons import (
    Ids,
    check_of,
    former_marks,
    group_digest,
    key_path,
    make_key,
    pack_ids,
    person_mark,
    read_key,
    unpack_ids,
)
from site_agent.ledger.states import STATE, Kind, State

_LAYOUT = 8
_WITHOUT_PERSONS = (3, 4)
_WITHOUT_SPELLINGS = (*_WITHOUT_PERSONS, 5, 6)
_OLDER = (*_WITHOUT_SPELLINGS, 7)
"""Layouts that are converted when they are opened: the lines stay unchanged."""
_TABLE = """
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL, study TEXT NOT NULL, run TEXT NOT NULL, round INTEGER NOT NULL,
    stage TEXT NOT NULL, statistic TEXT NOT NULL, unit TEXT NOT NULL, mu REAL NOT NULL,
    site TEXT NOT NULL, centre TEXT NOT NULL, query TEXT NOT NULL,
    outsider REAL NOT NULL, persons TEXT NOT NULL DEFAULT '',
    event TEXT NOT NULL CHECK (
        event IN ('reserve', 'spend', 'void', 'tell', 'state', 'hold', 'release')
    ),
    at TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL,
    UNIQUE (site, centre, run, round, event)
)"""
_HALTS = "CREATE TABLE halts (why TEXT NOT NULL)"
_PERSONS = (
    "CREATE TABLE participants (id INTEGER PRIMARY KEY, mark BLOB NOT NULL UNIQUE)",
    "CREATE TABLE groups (digest TEXT PRIMARY KEY, members BLOB NOT NULL)",
    "CREATE TABLE key (mark BLOB NOT NULL)",
)
_SPELLINGS = (
    "CREATE TABLE spellings (id INTEGER PRIMARY KEY, same_as INTEGER NOT NULL)",
    "CREATE TABLE former (last INTEGER NOT NULL)",
    "INSERT INTO former SELECT coalesce(max(id), 0) FROM participants",
)
"""Rows of one participant under several spellings, and the last row of an earlier version, which
marked labels as they were spelled."""
_CHARGE = (
    "dataset, study, run, round, stage, statistic, unit, mu, site, centre, query, outsider, persons"
)
_BEFORE = _CHARGE.removesuffix(", persons")
_ENTRY = f"seq, {_CHARGE}, event, at, previous, digest"
_PATIENCE = 30.0  # s to wait for another process's transaction


class LedgerFile:
    """An open ledger.

    Parameters
    ----------
    path : Path
        The database; it must exist, and may be empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head = EMPTY
        self.groups: dict[str, Ids] = {}
        self._marks: list[bytes] = [b""]  # by row; row 0 is unused
        self._rows: dict[bytes, int] = {}
        self._former: dict[bytes, frozenset[int]] = {}  # rows of other spellings
        self._searched: set[tuple[bytes, str]] = set()
        self._same: dict[int, int] = {}
        self.sums = Sums(self.members)
        self._where = _whereabouts(path)
        # One connection for the ledger's lifetime: opening one costs as much as a round.
        self.connection = sqlite3.connect(
            path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        set_journal(self.connection, path)
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA cache_size = -256")  # KiB; the last lines are read again
        # Writing every line at once into the main file would take most of a round's time.
        self.connection.execute("PRAGMA wal_autocheckpoint = 0")

    def current(self) -> Self:
        """Return this book, or a new one after a fork or if its file was replaced.

        The new one must contain all lines that were read in the old.
        """
        if self._where == _whereabouts(self.path):
            return self
        file = type(self)(self.path)
        file.head = self.head
        file.sums = self.sums
        file.groups = self.groups
        file.sums.read_members(file.members)
        return file

    def settle(self) -> None:
        """Write every line into the main file. So a backup needs no separate log."""
        self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Close the connection, unless it is another process's."""
        if self._where[0] == os.getpid():
            self.connection.close()

    def lay_out(self) -> None:
        """Make the table in an empty file; raises LedgerError if the file has another layout."""
        (layout,) = self.connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if layout == 0 and not tables:
            self.connection.execute(_TABLE)
            self.connection.execute(_HALTS)
            self._add_persons()
            self._add_spellings()
            self.connection.execute(f"PRAGMA user_version = {_LAYOUT}")
        elif layout in _OLDER:
            self._bring_up_to_date(layout)
        elif layout != _LAYOUT:
            raise LedgerError(
                f"{self.path} has layout {layout}, which this version can't read (it reads "
                f"{_LAYOUT}). Install the version that wrote it."
            )

    def _bring_up_to_date(self, layout: int) -> None:
        """Convert the lines of an older table, in the transaction that reads the layout."""
        without_persons = layout in _WITHOUT_PERSONS
        self.connection.execute("ALTER TABLE entries RENAME TO older")
        self.connection.execute(_TABLE)
        columns = f"seq, {_BEFORE}, event, at, previous, digest" if without_persons else _ENTRY
        lines = f"INSERT INTO entries ({columns}) SELECT {columns} FROM older ORDER BY seq"  # noqa: S608
        self.connection.execute(lines)
        if without_persons:
            self._add_persons()
        elif layout in _WITHOUT_SPELLINGS:
            # An agent of an earlier version that still runs can't mark labels any more.
            self.connection.execute("ALTER TABLE persons RENAME TO participants")
        if layout in _WITHOUT_SPELLINGS:
            self._add_spellings()
        self.connection.execute("DROP TABLE older")
        self.connection.execute(f"PRAGMA user_version = {_LAYOUT}")

    def _add_persons(self) -> None:
        for table in _PERSONS:
            self.connection.execute(table)

    def _add_spellings(self) -> None:
        for statement in _SPELLINGS:
            self.connection.execute(statement)

    def enroll(self, labels: Collection[str], group: str = "") -> str:
        """Store a group of participants, unless it is stored, and return its digest.

        Raises LedgerError if the key of the participants' marks is lost or is another ledger's.

        Parameters
        ----------
        group : str
            Digest of a group whose participants are added; empty for none.
        """
        key = self._key()
        by_mark = {person_mark(key, canonical_label(label)): label for label in labels}
        self._read_persons()
        more = {self._marks[row] for row in self._raw_members(group)} if group else set()
        marks = sorted({*by_mark, *more})
        digest = group_digest(key, marks)
        if self.connection.execute("SELECT 1 FROM groups WHERE digest = ?", (digest,)).fetchone():
            self._link(by_mark)
            return digest
        rows = [(mark,) for mark in marks if mark not in self._rows]
        self.connection.executemany("INSERT INTO participants (mark) VALUES (?)", rows)
        self._read_persons()
        ids = np.array(sorted(self._rows[mark] for mark in marks), dtype=np.uint32)
        self.connection.execute("INSERT INTO groups VALUES (?, ?)", (digest, pack_ids(ids)))
        self._link(by_mark)
        return digest

    def rows(self, labels: Sequence[str]) -> Ids:
        """Return the row of each participant, and 0 for those that are in no group.

        All spellings of a label have one row.
        """
        if not self._kept():
            return np.zeros(len(labels), np.uint32)
        self._read_persons()
        key = self._key()
        by_mark = {person_mark(key, canonical_label(label)): label for label in labels}
        self._link(by_mark)
        own = {label: self._row(mark) for mark, label in by_mark.items()}
        marks = (person_mark(key, canonical_label(label)) for label in labels)
        return np.array([own[by_mark[mark]] for mark in marks], dtype=np.uint32)

    def _row(self, mark: bytes) -> int:
        """Return the row of a canonical mark, or 0."""
        row = self._rows.get(mark) or min(self._former.get(mark, ()), default=0)
        return self._same.get(row, row)

    def _link(self, by_mark: Mapping[bytes, str]) -> None:
        """Find the rows of labels that earlier versions marked as they were spelled.

        A participant who was charged under two spellings has one account from then on, with the
        losses of both. Only rows of an earlier version are searched.
        """
        row = self.connection.execute("SELECT last FROM former").fetchone()
        if row is None:
            raise LedgerError(
                f"{self.path}: the number of the last participant of an earlier version is "
                "missing. Restore the ledger from a backup."
            )
        last = row[0]
        if not last:
            return
        key = self._key()
        accounts = _Accounts(self._same)
        for mark, label in by_mark.items():
            if (mark, label) not in self._searched:
                self._searched.add((mark, label))
                found = {self._rows.get(each, 0) for each in former_marks(key, label)}
                self._former[mark] = self._former.get(mark, frozenset()) | {
                    row for row in found if 0 < row <= last
                }
            accounts.join({*self._former[mark], self._rows.get(mark, 0)} - {0})
        if accounts.joined:
            insert = "INSERT OR REPLACE INTO spellings VALUES (?, ?)"
            self.connection.executemany(insert, accounts.joined.items())
            self._read_spellings()

    def _read_spellings(self) -> None:
        """Read which rows are one participant's, and count all charges again if that changed."""
        query = "SELECT count(*), total(same_as) FROM spellings"
        (many, total) = self.connection.execute(query).fetchone()
        if (many, total) == (len(self._same), sum(self._same.values())):
            return
        self._same = dict(self.connection.execute("SELECT id, same_as FROM spellings"))
        self.groups.clear()
        self.sums.clear()
        self.head = EMPTY
        self.catch_up()

    def _read_persons(self) -> None:
        """Read the participants that were added since the last time; rows are given in order."""
        added = self.connection.execute(
            "SELECT id, mark FROM participants WHERE id >= ? ORDER BY id", (len(self._marks),)
        )
        for row, mark in added:
            self._marks += [b""] * (row - len(self._marks))
            self._marks.append(bytes(mark))
            self._rows[bytes(mark)] = row

    def _kept(self) -> bytes | None:
        row = self.connection.execute("SELECT mark FROM key").fetchone()
        return None if row is None else bytes(row[0])

    def _key(self) -> bytes:
        """Return the key next to this file, which must be the one of its participants' marks."""
        kept = self._kept()
        key = read_key(self.path)
        if kept is None:
            key = key or make_key(self.path)
            self.connection.execute("INSERT INTO key VALUES (?)", (check_of(key),))
        elif key is None or check_of(key) != kept:
            raise LedgerError(
                f"{key_path(self.path)} is not the key that the participants of this ledger were "
                "marked with, so their individual losses are unknown. Restore it from a backup."
            )
        return key

    def members(self, digest: str) -> Ids:
        """Return the participants of a group, as sorted rows.

        Raises LedgerError if they are not the participants who were charged.
        """
        if digest not in self.groups:
            same = [self._same.get(row, row) for row in self._raw_members(digest)]
            self.groups[digest] = np.unique(np.array(same, dtype=np.uint32))
        return self.groups[digest]

    def named_in(self, digest: str, labels: Sequence[str]) -> list[str]:
        """Return those of some labels, in any spelling, who are in a group."""
        rows = self.rows(labels)  # first, since it joins spellings
        inside = np.isin(rows, self.members(digest))
        return [label for label, known in zip(labels, inside, strict=True) if known]

    def _raw_members(self, digest: str) -> list[int]:
        """Return the rows of a group as they were stored. Several may be one participant's."""
        found = self.connection.execute("SELECT members FROM groups WHERE digest=?", (digest,))
        row = found.fetchone()
        ids: list[int] = unpack_ids(row[0]).tolist() if row else []
        self._read_persons()
        last = len(self._marks)
        marks = [self._marks[i] if i < last else b"" for i in ids]
        if row is None or group_digest(self._key(), marks) != digest:
            raise LedgerError(
                f"{self.path}: the participants of a charge were altered. Restore the ledger "
                "from a backup and ask who changed it."
            )
        return ids

    def over_limit(
        self,
        labels: Sequence[str],
        totals: Mapping[str, float],
        unit: str,
        price: float,
        study: OneStudy | None,
    ) -> list[str]:
        """Return participants without budget for a loss, as `LedgerReader.over_limit`."""
        rows = self.rows(labels)
        over = np.zeros(len(rows), np.bool_)
        if study is not None:
            over |= self.sums.over_study(rows, unit, price, study)
        for held, limit in totals.items():
            if unit in counted(held):
                over |= self.sums.over(rows, held, price, limit)
        return sorted(label for label, is_over in zip(labels, over, strict=True) if is_over)

    def catch_up(self) -> None:
        """Read and check the lines that were added since the last time.

        So a round need not read all lines, but every line is checked once. Raises
        LedgerError if a line was altered, or the file is not the one that was read before.
        """
        if self.head != EMPTY and self.digest_at(self.head.seq) != self.head.digest:
            raise LedgerError(
                f"{self.path}: line {self.head.seq} differs from the one that was read before: "
                "the ledger was replaced. Restore the newest one and start the agent again."
            )
        self._read_spellings()
        for entry in follow(self.head, self.read(self.head.seq), str(self.path)):
            self.sums.add(entry)
            self.head = entry.head

    def read(self, after: int = 0) -> Iterator[LedgerEntry]:
        """Yield the lines after a line, unchecked."""
        rows = self.connection.execute(
            f"SELECT {_ENTRY} FROM entries WHERE seq > ? ORDER BY seq",  # noqa: S608 - constants
            (after,),
        )
        for row in rows:
            yield LedgerEntry(row[0], Charge(*row[1:14]), *row[14:])

    def digest_at(self, seq: int) -> str | None:
        """Return the digest of a line, or None if there are fewer."""
        found = self.connection.execute("SELECT digest FROM entries WHERE seq = ?", (seq,))
        row = found.fetchone()
        return str(row[0]) if row else None

    def find(self, charge: Charge, event: str) -> Charge | None:
        """Return the entry for a charge's round, site and centre, or None."""
        row = self.connection.execute(
            f"SELECT {_CHARGE} FROM entries "  # noqa: S608 - constants
            "WHERE site = ? AND centre = ? AND run = ? AND round = ? AND event = ?",
            (charge.site, charge.centre, charge.run, charge.round, event),
        ).fetchone()
        return Charge(*row) if row else None

    def states(self, kind: Kind, sites: Collection[str]) -> list[State]:
        """Return the states of a kind that sites with these public keys recorded, oldest first."""
        rows = self.connection.execute(
            "SELECT site, centre, study, round, statistic, query, persons FROM entries "
            "WHERE event = ? AND stage = ? ORDER BY seq",
            (STATE, kind),
        )
        return [State(kind, *row) for row in rows.fetchall() if row[0] in sites]

    def halt(self, why: str) -> None:
        """Close the ledger for further reservations."""
        self.connection.execute(
            "INSERT INTO halts SELECT ? WHERE NOT EXISTS (SELECT 1 FROM halts)", (why,)
        )

    def check_halt(self) -> None:
        """Refuse a ledger that was closed; raises LedgerError with the reason that was given."""
        row = self.connection.execute("SELECT why FROM halts LIMIT 1").fetchone()
        if row is not None:
            raise LedgerError(str(row[0]))

    def append(self, charge: Charge, event: str, at: str) -> None:
        """Add a line; once it is committed, `catch_up` reads it like any other."""
        entry = next_entry(self.head, charge, event, at)
        values = (entry.seq, *astuple(charge), event, at, entry.previous, entry.digest)
        marks = ", ".join("?" * len(values))
        self.connection.execute(f"INSERT INTO entries ({_ENTRY}) VALUES ({marks})", values)  # noqa: S608


class _Accounts:
    """Rows of the ledger by participant. Joined rows are never separated again."""

    def __init__(self, same: Mapping[int, int]) -> None:
        self._same = dict(same)
        self._rows: dict[int, set[int]] = defaultdict(set)
        for row, account in same.items():
            self._rows[account].add(row)
        self.joined: dict[int, int] = {}
        """Account of each row whose account has changed."""

    def join(self, rows: set[int]) -> None:
        """Join some rows, and all rows that are joined to them, to one account."""
        accounts = {self._same.get(row, row) for row in rows}
        if len(accounts) < 2:
            return
        first = min(accounts)
        whole = rows.union(accounts, *(self._rows.pop(each, set()) for each in accounts))
        changed = {row: first for row in whole if self._same.get(row, row) != first}
        self._rows[first] = whole
        self._same |= changed
        self.joined |= changed


def _whereabouts(path: Path) -> tuple[int, int, int]:
    """Process, device and file: a connection is valid for only one of each."""
    try:
        status = path.stat()
    except OSError as error:
        raise LedgerError(
            f"{path} can't be opened ({error.strerror}). Restore it from a backup."
        ) from error
    return os.getpid(), status.st_dev, status.st_ino
