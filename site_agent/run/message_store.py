"""Messages that a site has received and sent, on its own disk.

A message is stored before it is sent. So a repeated request gets the same bytes, and noise is never
drawn twice for one question after a crash. Only the site's one agent writes here. So a missing
message is looked up on disk only once, although a waiting agent requests it at every look.
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from consortium.errors import LedgerError
from site_agent.ledger.disk import set_journal

_TABLE = """
CREATE TABLE IF NOT EXISTS messages (
    run TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name)
) WITHOUT ROWID"""

# No run has such a name.
_SITE = "(site)"
_HALTED = "halted"
_ACCOUNTED = "accounted "
_MOST_ABSENT = 256  # names of messages; a waiting agent requests few, again and again


class MessageStore:
    """Messages by run and name; a name is written once.

    A message that another process stored after this one found it missing is not seen by `load`.
    Storing another message under its name is an error in this case also. Raises LedgerError if it
    can't be made or opened.

    Parameters
    ----------
    path : Path
        The database; made if missing, readable by its owner only.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._absent: set[tuple[str, str]] = set()
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise LedgerError(
                f"{path} can't be made ({error.strerror}). Check the site's folder and rights."
            ) from error
        with self._using() as connection:
            connection.execute(_TABLE)

    def save(self, run: str, name: str, data: bytes) -> None:
        """Store a message.

        Raises LedgerError if the name has another message, or the disk can't be written.
        """
        self.save_all(run, {name: data})

    def save_all(self, run: str, messages: Mapping[str, bytes | memoryview]) -> None:
        """Store messages, all or none; raises as `save`."""
        rows = [(run, name, data) for name, data in messages.items()]
        with self._using() as connection, connection:
            connection.executemany("INSERT OR IGNORE INTO messages VALUES (?, ?, ?)", rows)
        self._absent.difference_update((run, name) for name in messages)
        for name, data in messages.items():
            if self.load(run, name) != data:
                raise LedgerError(
                    f"{name} of {run} had another answer before, so the site stops answering."
                )

    def load(self, run: str, name: str) -> bytes | None:
        """Fetch a message, or None."""
        if (run, name) in self._absent:
            return None
        found = self._read(run, name)
        if found is None:
            if len(self._absent) >= _MOST_ABSENT:
                self._absent.clear()
            self._absent.add((run, name))
        return found

    def _read(self, run: str, name: str) -> bytes | None:
        with self._using() as connection:
            row = connection.execute(
                "SELECT data FROM messages WHERE run = ? AND name = ?", (run, name)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def answered(self) -> list[str]:
        """Return the runs that were answered here, without those that the staff accounted for."""
        with self._using() as connection:
            rows = connection.execute(
                "SELECT DISTINCT run FROM messages "
                "WHERE name GLOB '[0-9]*/contribution' "
                "AND NOT EXISTS (SELECT 1 FROM messages AS known "
                "WHERE known.run = ? AND known.name = ? || messages.run) ORDER BY run",
                (_SITE, _ACCOUNTED),
            )
            return [str(run) for (run,) in rows.fetchall()]

    def account_for(self, runs: Sequence[str]) -> None:
        """Record that the staff have accounted for runs that the ledger does not have."""
        self.save_all(_SITE, {f"{_ACCOUNTED}{run}": b"" for run in runs})

    def halt(self, why: str) -> None:
        """Record permanently why the site stops all participation."""
        if self.halted is None:
            self.save(_SITE, _HALTED, why.encode())

    @property
    def halted(self) -> str | None:
        """Reason why the site stopped all participation; None if it did not.

        It is read from disk each time, in case another process wrote it.
        """
        why = self._read(_SITE, _HALTED)
        return None if why is None else why.decode()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Provide the one connection: opening it takes longer than a round's reads and writes."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                yield self._connection
            except sqlite3.Error as error:
                self.close()
                self._absent.clear()  # a failed write may still be on disk
                raise LedgerError(
                    f"{self._path} can't be used ({error}). Check disk space and rights."
                ) from error

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=30.0, check_same_thread=False)
        set_journal(connection, self._path)
        connection.execute("PRAGMA synchronous = FULL")
        # A round reads only the last entries. The usual 2 MB would fill up during a run.
        connection.execute("PRAGMA cache_size = -256")
        return connection
