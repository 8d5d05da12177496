"""An embedded Prefect for a centre that has none: set up before Prefect is imported.

One embedded server per study run, in the run's own folder, or one around several
that follow each other. If ``PREFECT_API_URL`` names a Prefect, no server is started.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from consortium.base.kept_arrays import cache_folder
from flows import UNTOLD

_FLUSH_SECONDS = 1

# Kills the server when its owner is gone: a killed owner runs no exit handlers.
_WATCH = """
import os, signal, sys, time
owner, server = int(sys.argv[1]), int(sys.argv[2])
while os.getppid() == owner:
    time.sleep(0.5)
try:
    os.kill(server, signal.SIGTERM)
except ProcessLookupError:
    pass
"""


def settings(home: Path) -> dict[str, str]:
    """Return the environment of the embedded server.

    The recorder needs large batches to keep up.
    """
    recorder = "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER"
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_PROFILES_PATH": str(home / "profiles.toml"),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / DATABASE}",
        f"{recorder}_BATCH_SIZE": "100",
        f"{recorder}_READ_BATCH_SIZE": "100",
        f"{recorder}_FLUSH_INTERVAL": str(_FLUSH_SECONDS),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        **UNTOLD,
    }


@contextmanager
def embedded_prefect(home: Path) -> Iterator[None]:
    """Provide a Prefect API for the duration, unless the environment names one.

    Inside another such block its server serves this one as well.

    Parameters
    ----------
    home : Path
        Folder for its database; made if missing, and removed when the work ended well.
    """
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    if _at_work():
        yield
        _drain()
        return
    home.mkdir(parents=True, exist_ok=True)
    os.environ.update(settings(home.resolve()))
    from prefect.server.api.server import SubprocessASGIServer

    taken = take_database(home)
    server = SubprocessASGIServer()
    with _errors_to(home / "server.log"):
        server.start()
    if not taken:
        keep_database(home)
    process = server.server_process
    assert process is not None  # noqa: S101 - started above
    watch = subprocess.Popen([sys.executable, "-c", _WATCH, str(os.getpid()), str(process.pid)])  # noqa: S603
    try:
        yield
        _drain()
    finally:
        watch.terminate()
        watch.wait()
        server.stop()
    shutil.rmtree(home, ignore_errors=True)  # done: the server is no longer used


def _at_work() -> bool:
    """Return whether this process has started a server, without importing Prefect."""
    module = sys.modules.get("prefect.server.api.server")
    return module is not None and bool(module.SubprocessASGIServer().running)


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Write the errors of processes that are started meanwhile to a file.

    A server that is stopped while it writes prints an irrelevant traceback.
    """
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _drain() -> None:
    """Submit every record and wait until the server writes it, to lose no task."""
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=10, at_exit=False)
    time.sleep(_FLUSH_SECONDS + 0.3)


DATABASE = "prefect:memory:.db"
"""A file name with ``:memory:`` makes Prefect use one connection, which prevents lock stalls of
two seconds."""


def kept_database() -> Path:
    """Return the path of an empty database of this Prefect, in the user's folder of caches."""
    return cache_folder() / f"prefect-{version('prefect')}.db"


def take_database(home: Path) -> bool:
    """Put a copy of the kept database into a server's home, before the server starts.

    Returns
    -------
    bool
        Whether the home has a database now; if not, the server makes its own.
    """
    if (home / DATABASE).exists():  # a resumed run has one
        return True
    try:
        kept = kept_database()
        with closing(sqlite3.connect(f"file:{kept}?immutable=1", uri=True)) as known:
            known.execute("SELECT version_num FROM alembic_version").fetchone()
            if known.execute("PRAGMA quick_check").fetchone() != ("ok",):
                return False
        shutil.copyfile(kept, home / DATABASE)
    except (OSError, RuntimeError, sqlite3.Error):
        return False
    return True


def keep_database(home: Path) -> None:
    """Keep a server's database for the next one, right after its start, while it has no run.

    If it can't be kept, the next server makes its own.
    """
    with suppress(OSError, RuntimeError, sqlite3.Error):
        kept = kept_database()
        kept.parent.mkdir(parents=True, exist_ok=True)
        copy_database(home / DATABASE, kept)


def copy_database(source: Path, target: Path) -> Path:
    """Copy a database that may be in use, whole or not at all."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(part)) as other:
            one.backup(other)
            other.execute("PRAGMA journal_mode=DELETE")  # one file, without a journal next to it
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target
