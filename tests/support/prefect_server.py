"""A real Prefect server in a process of its own, and a proxy that alters its answers."""

import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from flows.embedded import DATABASE, keep_database, settings, take_database
from tests.support.patience import PATIENCE

Found = TypeVar("Found")


@dataclass(frozen=True)
class Server:
    """Address and files of a server.

    Parameters
    ----------
    url : str
    database : Path
    home : Path
    """

    url: str
    database: Path
    home: Path

    def environment(self, url: str = "", **more: str) -> dict[str, str]:
        """Return the environment of a process that uses this server, or another URL instead."""
        plain = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        quiet = {k: v for k, v in settings(self.home).items() if "LOGGING" not in k}
        quiet |= {"PREFECT_API_URL": url or self.url, "OMP_NUM_THREADS": "1"}
        quiet["PREFECT_LOGGING_LEVEL"] = "DEBUG"  # shows everything that Prefect could log
        return {**plain, **quiet, **more}

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Read the database."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10) as connection:
            return list(connection.execute(query))

    def now(self) -> str:
        """Return the present moment, as the database writes it."""
        ((now,),) = self.rows("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')")
        return str(now)

    def once_there(self, query: str) -> list[tuple[object, ...]]:
        """Read the database as soon as it has such rows: much is written down by and by."""
        return self._once(lambda: self.rows(query), bool)

    def once_gone(self, query: str) -> list[tuple[object, ...]]:
        """Read until no such rows remain, or patience ends; return the remaining rows."""
        return self._once(lambda: self.rows(query), lambda found: not found)

    def events(self, *awaited: str, since: str) -> dict[str, str]:
        """Return the last event of each name since a moment, once all exist."""
        query = (
            "SELECT event, payload FROM events WHERE event LIKE 'consortium.%'"
            f" AND occurred > '{since}' ORDER BY occurred"
        )
        return self._once(
            lambda: {str(event): str(payload) for event, payload in self.rows(query)},
            lambda found: found.keys() >= set(awaited),
        )

    def _once(self, read: Callable[[], Found], enough: Callable[[Found], bool]) -> Found:
        deadline = time.monotonic() + PATIENCE
        while not enough(found := read()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def written_since(self, moment: str) -> str:
        """Return all rows of all tables that were made since a moment, as text."""
        tables = self.rows(
            "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"
            " WHERE m.type = 'table' AND c.name = 'created'"
        )
        made = (self.rows(f"SELECT * FROM {t} WHERE created > '{moment}'") for (t,) in tables)
        return "\n".join(str(row) for rows in made for row in rows)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def prefect_server(home: Path) -> Iterator[Server]:
    """Start a server on the loopback; it is gone afterwards."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    environment |= settings(home) | {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "1"}
    command = [sys.executable, "-m", "prefect", "server", "start"]
    taken = take_database(home)
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        _await(url, process, home / "server.log")
        if not taken:
            keep_database(home)
        yield Server(url, home / DATABASE, home)
    finally:
        process.terminate()
        process.wait(15)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())
