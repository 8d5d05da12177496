"""An embedded Prefect for a centre that has none: set up before Prefect is imported.

One embedded server per study run, in the run's own folder, or one around several
that follow each other. With a Prefect of one's own (``PREFECT_API_URL`` set)
nothing of this is done.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows import UNTOLD
from flows.prefect_database import DATABASE, keep_database, take_database

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
    """Environment of the embedded server.

    The recorder's batches are large so that it keeps up.
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

    taken, server = take_database(home), SubprocessASGIServer()
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
    shutil.rmtree(home, ignore_errors=True)  # done: nobody asks it anything any more


def _at_work() -> bool:
    """Whether this process has started a server; to ask imports nothing of Prefect."""
    module = sys.modules.get("prefect.server.api.server")
    return module is not None and bool(module.SubprocessASGIServer().running)


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Let processes that are started meanwhile write their errors to a file.

    A server that is stopped while it writes says so in a traceback that means nothing to anybody.
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
    """Hand every record over and let the server write it, so that no task is lost."""
    from prefect.events.worker import EventsWorker

    EventsWorker.drain_all(timeout=10, at_exit=False)
    time.sleep(_FLUSH_SECONDS + 0.3)
