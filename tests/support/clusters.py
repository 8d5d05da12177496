"""Real clusters on this machine, as a hospital has them: a scheduler and two worker processes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.patience import PATIENCE

_QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextmanager
def dask_cluster(folder: Path, port: int | None = None) -> Iterator[str]:
    """Run a Dask scheduler with two workers; yields its address."""
    address = f"tcp://127.0.0.1:{port or free_port()}"
    common = ["--no-dashboard", "--local-directory", str(folder)]
    number = address.rpartition(":")[2]
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", number, "--no-dashboard"]
    workers = ["worker", address, "--nworkers", "2", "--nthreads", "1", *common]
    with _running(["-m", "dask", *scheduler]), _running(["-m", "dask", *workers]):
        _await_dask(address)
        yield address


@contextmanager
def ray_cluster() -> Iterator[str]:
    """Run a Ray node with two processors; yields its address."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # short: names of sockets have a hundred letters
    node = [
        *("-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus", "2"),
        *("--node-ip-address", "127.0.0.1", "--port", str(port), "--include-dashboard", "false"),
        *("--temp-dir", str(folder), "--object-store-memory", "100000000"),
        *("--disable-usage-stats",),
    ]
    try:
        with _running(node):
            _await_port(port)
            yield f"127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def _running(words: list[str]) -> Iterator[None]:
    """Run a process, with all that it starts, until the block ends."""
    process = subprocess.Popen([sys.executable, *words], start_new_session=True, **_QUIET)
    try:
        yield
    finally:
        for sign, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)


def _await_port(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def _await_dask(address: str) -> None:
    from distributed import Client

    until = time.monotonic() + PATIENCE
    with Client(address, timeout=PATIENCE, set_as_default=False) as client:
        while len(client.nthreads()) < 2:
            if time.monotonic() > until:
                raise TimeoutError(address)
            time.sleep(0.05)
