"""Work in other processes of the site, here or on its cluster: sent, computed, checked, repeated.

Calls and answers are pickles between machines that the hospital trusts with its data anyway.
Nothing else of the site leaves the agent: no key, no ledger, no noise, no message.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Protocol, cast

from consortium.base.one_thread import one_thread
from consortium.errors import EngineError, SoftwareError
from site_agent.engines.base import Item, Made, most_at_once

_TRIES = 3
_HELD = 2  # calls for each worker, so none waits for the next
_REST = 3.0  # times as long as an attempt without answer took
_LONGEST_REST = 60.0  # s
_WHY = "a worker died, perhaps from lack of memory"


class LostError(Exception):
    """Loss of a worker, or of the connection to the whole cluster; calls may be repeated."""


class Workers(Protocol):
    """Other processes of a site that answer calls."""

    @property
    def count(self) -> int:
        """Number of calls that are answered at a time."""

    def submit(self, kind: str, call: bytes) -> object:
        """Submit a call of `compute_request`, and return a handle of its answer, or LostError."""

    def collect(self, handle: object) -> bytes:
        """Wait for an answer; may raise LostError."""

    def cancel(self, handle: object) -> None:
        """Cancel an answer that is no longer awaited.

        It raises nothing and waits for nothing, not even a lock.
        """

    def close(self) -> None:
        """Let go of them, alive or not."""


@dataclass
class _Call:
    """A sent call, and its recipient."""

    text: bytes
    workers: Workers | None = None
    handle: object = None


class RemoteEngine:
    """Engine that works on items in other processes; fits `Engine`.

    A worker that dies, or a cluster that is restarted, costs only time: unanswered calls are
    repeated. Threads may share it.

    Parameters
    ----------
    name : str
        The engine's in ``site.yaml``.
    start : callable
        Starts workers or connects to them; may raise LostError.
    memory : int, optional
        Bytes that items may take together, wherever they are worked on.
    """

    def __init__(self, name: str, start: Callable[[], Workers], memory: int | None = None) -> None:
        self._name = name
        self._start = start
        self.memory = memory
        self._lock = threading.Lock()
        self._workers: Workers | None = None
        self._trouble = ""  # error of the last start
        self._again = 0.0  # end of the pause

    def map(
        self, work: Callable[[Item], Made], items: Iterable[Item], each: int = 0
    ) -> Iterator[Made]:
        """Yield ``work(item)`` in the order of the items, computed elsewhere.

        Raises EngineError if workers can't be reached, or were lost three times in a row over one
        item, or compute with other software or another processor than the agent.
        """
        waiting: deque[_Call] = deque()
        try:
            for item in items:
                waiting.append(_Call(pickle.dumps((work, item), protocol=5)))
                count = self._tried(waiting, lambda workers: workers.count)
                if len(waiting) >= most_at_once(_HELD * count, self.memory, each):
                    yield cast("Made", self._due(waiting))
            while waiting:
                yield cast("Made", self._due(waiting))
        finally:
            self._cancel(waiting)

    def close(self) -> None:
        """Let go of the workers."""
        self._drop(self._workers)

    def _drop(self, workers: Workers | None) -> None:
        with self._lock:
            if workers is not None and workers is self._workers:
                workers.close()
                self._workers = None

    def _cancel(self, waiting: Iterable[_Call]) -> None:
        """Let go of calls; takes no lock, since a generator may end in any thread at any time."""
        for call in waiting:
            workers = self._workers
            if workers is not None and call.workers is workers:
                workers.cancel(call.handle)

    def _due(self, waiting: deque[_Call]) -> object:
        """Return the answer to the oldest call, which is repeated if it got lost."""
        answered = self._tried(waiting, lambda workers: workers.collect(waiting[0].handle))
        waiting.popleft()
        made, error = pickle.loads(answered)  # noqa: S301 - of the hospital's own machines
        if error is not None:
            raise error
        return made

    def _tried(self, waiting: deque[_Call], act: Callable[[Workers], Made]) -> Made:
        """Act with workers that received all waiting calls, or with others if they are lost."""
        for left in reversed(range(_TRIES)):
            workers = self._present()
            try:
                self._submit(workers, waiting)
                return act(workers)
            except LostError as error:
                self._drop(workers)
                if not left:
                    raise EngineError(
                        f"site.yaml: engine {self._name} lost its workers {_TRIES} times in the "
                        f"same part of the work ({error}). Nothing is charged. Give them more "
                        "memory or repair them; the agent tries again."
                    ) from error
        raise AssertionError  # not reached

    @staticmethod
    def _submit(workers: Workers, waiting: Iterable[_Call]) -> None:
        """Send the calls that these workers have not received yet."""
        for call in waiting:
            if call.workers is not workers:
                call.handle = workers.submit(one_thread(), call.text)
                call.workers = workers

    def _present(self) -> Workers:
        with self._lock:
            if self._workers is None:
                self._workers = self._begun()
            return self._workers

    def _begun(self) -> Workers:
        """Start workers, with a pause between attempts, since the agent waits meanwhile."""
        begin = time.monotonic()
        if begin >= self._again:
            try:
                return self._start()
            except LostError as error:
                end = time.monotonic()
                rest = min(_REST * (end - begin), _LONGEST_REST)
                self._trouble = str(error)
                self._again = end + rest
        raise EngineError(
            f"site.yaml: engine {self._name} can't be used now ({self._trouble}). Nothing is "
            "charged. Start it or correct its address; the agent tries again."
        )


def compute_request(kind: str, call: bytes) -> bytes:
    """Compute a call in a worker of the site's engine. Its error is also an answer.

    Parameters
    ----------
    kind : str
        The agent's `one_thread`: sums of workers of another kind would differ in their last bits.
    call : bytes
        Work and item.

    Returns
    -------
    bytes
        The result and no error, or nothing and the error.
    """
    found: tuple[Any, Exception | None]
    if kind != one_thread():
        message = (
            f"A worker of the site's engine has {one_thread()}, and the agent {kind}. Give all "
            "workers the same software and processor."
        )
        return pickle.dumps((None, EngineError(message)), protocol=5)
    try:
        work, item = pickle.loads(call)  # noqa: S301 - of the hospital's own agent
        found = work(item), None
    except Exception as error:  # raised when the result is due, as with threads
        found = None, error
    try:
        pickled = pickle.dumps(found, protocol=5)
        pickle.loads(pickled)  # noqa: S301 - made here: some errors can't be made again
    except Exception:
        fault = SoftwareError.of(found[1] or TypeError("an answer can't be sent"))
        pickled = pickle.dumps((None, fault), protocol=5)
    return pickled


class Processes:
    """Workers of an engine on this machine; fits `Workers`."""

    def __init__(self, count: int) -> None:
        self.count = count
        context = multiprocessing.get_context("spawn")  # the agent has threads
        self._pool = ProcessPoolExecutor(count, context, follow_agent)

    def submit(self, kind: str, call: bytes) -> object:
        """Submit a call to a worker."""
        try:
            return self._pool.submit(compute_request, kind, call)
        except RuntimeError as error:  # broken, or already closed for that reason
            raise LostError(_WHY) from error

    def collect(self, handle: object) -> bytes:
        """Wait for an answer."""
        try:
            return cast("Future[bytes]", handle).result()
        except (BrokenProcessPool, CancelledError) as error:
            raise LostError(_WHY) from error

    def cancel(self, handle: object) -> None:
        """Cancel an answer that no worker has begun."""
        cast("Future[bytes]", handle).cancel()

    def close(self) -> None:
        """End the workers once they have finished their calls."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def follow_agent() -> None:
    """Begin a worker of an engine. It stops with the agent, and only the agent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    agent = multiprocessing.parent_process()
    if agent is not None:
        agent.join()
        os._exit(1)
