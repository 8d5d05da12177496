"""What a site has received and sent, on its own disk.

A message is stored before it is sent, so that asking again gets the same bytes
and a crash never draws noise twice for one question.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consortium.errors import LedgerError

_TABLE = """
CREATE TABLE IF NOT EXISTS messages (
    run TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name)
) WITHOUT ROWID"""


class Store:
    """Messages by run and name; a name is written once.

    Parameters
    ----------
    path : Path
        The database; made if missing, readable by its owner only.

    Raises
    ------
    LedgerError
        If it can't be made or opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise LedgerError(
                f"{path} can't be made ({error.strerror}); check the site's folder and rights."
            ) from error
        with self._connect() as connection:
            connection.execute(_TABLE)

    def save(self, run: str, name: str, data: bytes) -> None:
        """Store a message.

        Raises
        ------
        LedgerError
            If the name holds another message, or the disk can't be written.
        """
        with self._connect() as connection, connection:
            connection.execute("INSERT OR IGNORE INTO messages VALUES (?, ?, ?)", (run, name, data))
        if self.load(run, name) != data:
            raise LedgerError(
                f"{name} of {run} was answered otherwise before; the site answers no further."
            )

    def load(self, run: str, name: str) -> bytes | None:
        """Fetch a message, or None."""
        with self._connect() as connection:
            row = connection.execute(
                "SELECT data FROM messages WHERE run = ? AND name = ?", (run, name)
            ).fetchone()
        return None if row is None else bytes(row[0])

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self._path, timeout=30.0)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise LedgerError(
                f"{self._path} can't be used ({error}); check disk space and rights."
            ) from error
