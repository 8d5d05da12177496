"""A Ray cluster of the hospital. This machine is one of its nodes.

Ray ends the process that uses it when its node dies. So the agent connects to it through a separate
process: if that process ends, the agent continues and tries again.
"""

import multiprocessing
import threading
from collections import deque
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, cast

from site_agent.engines.remote import LostError, compute_request, follow_agent

_PATIENCE = 60.0  # s to connect, and between two looks whether any processors are left


class RayCluster:
    """Workers of a hospital's Ray cluster; fits `Workers`.

    Ray itself gives a dead worker's calls to others, once.

    Parameters
    ----------
    address : str
        Such as 10.0.0.5:6379, or auto for the cluster that runs on this machine.
    """

    def __init__(self, address: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._lock = threading.Lock()
        self._numbers = count()
        self._unwanted: deque[object] = deque()
        self._process = context.Process(target=_serve, args=(theirs, address), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_PATIENCE):
            self.close()
            raise LostError(f"no cluster answers at {address}")
        try:
            self.count = max(1, int(self._received()))
        except LostError:
            self.close()
            raise

    def submit(self, kind: str, call: bytes) -> object:
        """Submit a call to the cluster."""
        with self._lock:
            number = next(self._numbers)
            self._send((number, kind, call))
            return number

    def collect(self, handle: object) -> bytes:
        """Wait for an answer."""
        with self._lock:
            self._send((handle,))
            return cast("bytes", self._received())

    def cancel(self, handle: object) -> None:
        """Cancel an answer that no worker has begun."""
        self._unwanted.append(handle)  # reported with the next message

    def close(self) -> None:
        """Leave the cluster."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _send(self, message: tuple[object, ...]) -> None:
        try:
            while self._unwanted:
                self._pipe.send((self._unwanted.popleft(), None))
            self._pipe.send(message)
        except OSError as error:
            raise LostError("the connection to the cluster ended") from error

    def _received(self) -> Any:
        try:
            made, trouble = self._pipe.recv()
        except (OSError, EOFError) as error:
            raise LostError("the connection to the cluster ended") from error
        if trouble is not None:
            raise LostError(trouble)
        return made


def _serve(pipe: Connection, address: str) -> None:
    """Forward calls to the cluster and answers back, until the agent ends."""
    import ray

    follow_agent()
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
        pipe.send((_processors(), None))
    except Exception as error:  # of many kinds
        pipe.send((None, _words(error)))
        return
    begin = ray.remote(num_cpus=1, max_retries=1)(compute_request).remote
    begun: dict[int, Any] = {}
    while True:
        number, *call = pipe.recv()
        if call == [None]:
            with suppress(Exception):  # it was fetched, or the cluster does not exist any more
                ray.cancel(begun.pop(number))
            continue
        if call:
            begun[number] = begin(*call)
            continue
        try:
            pipe.send((_fetched(begun.pop(number)), None))
        except Exception as error:  # Ray's own: `compute_request` raises nothing
            pipe.send((None, _words(error)))


def _fetched(reference: Any) -> bytes:
    """Wait for an answer for as long as there are processors."""
    import ray

    while True:
        try:
            return bytes(ray.get(reference, timeout=_PATIENCE))
        except ray.exceptions.GetTimeoutError:
            if not _processors():
                raise


def _processors() -> int:
    import ray

    return int(ray.cluster_resources().get("CPU", 0))


def _words(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
