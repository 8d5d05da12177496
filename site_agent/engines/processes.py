"""Processes of the agent's own machine."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import cast

from site_agent.engines.remote import LostError, compute_request

_WHY = "a worker died, for want of memory perhaps"


class Processes:
    """Workers on this machine; fits `Workers`."""

    def __init__(self, count: int) -> None:
        self.count = count
        context = multiprocessing.get_context("spawn")  # the agent has threads
        self._pool = ProcessPoolExecutor(count, context, follow_agent)

    def submit(self, kind: str, call: bytes) -> object:
        """Have a call answered."""
        try:
            return self._pool.submit(compute_request, kind, call)
        except RuntimeError as error:  # broken, or closed by who noticed that before
            raise LostError(_WHY) from error

    def collect(self, handle: object) -> bytes:
        """Wait for an answer."""
        try:
            return cast("Future[bytes]", handle).result()
        except (BrokenProcessPool, CancelledError) as error:
            raise LostError(_WHY) from error

    def cancel(self, handle: object) -> None:
        """Have an answer not computed, if nobody has begun."""
        cast("Future[bytes]", handle).cancel()

    def close(self) -> None:
        """End them, once they have finished what they are at."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def follow_agent() -> None:
    """Begin a worker: what stops the agent stops it, and Ctrl-C is the agent's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    agent = multiprocessing.parent_process()
    if agent is not None:
        agent.join()
        os._exit(1)
