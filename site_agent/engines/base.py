"""Interface of a site's engines: work on many items, in their order.

It also contains the engine of threads in the agent's own process.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class Engine(Protocol):
    """Threads, processes or a cluster on which a site computes."""

    memory: int | None
    """Bytes that may be taken by all items together that are worked on at a time; or no limit."""

    def map(
        self, work: Callable[[Item], Made], items: Iterable[Item], each: int = 0
    ) -> Iterator[Made]:
        """Yield ``work(item)`` in the order of the items, a few of which are computed in advance.

        Raises EngineError if workers are lost, again and again, or can't be reached.

        Parameters
        ----------
        work : callable
            A module's function, or a partial one: it may be sent to another process. Its errors
            are raised when its result is due.
        items : iterable
            Small descriptions of the work, for the same reason.
        each : int
            Maximum bytes that one item takes, from its beginning until its result is taken.
        """

    def close(self) -> None:
        """Let go of processes and connections; the engine may be used again."""


def most_at_once(many: int, memory: int | None, each: int) -> int:
    """Return how many of ``many`` items fit into memory at a time; one is always worked on.

    A site with too little memory for one item reports it to its owner (`site-agent check`), and
    answers if the machine can: a refusal would reveal to the centre how much memory there is.
    """
    if memory is None or each <= 0:
        return many
    return max(1, min(many, memory // each))


class Threads:
    """Engine for several items at once, without all items in memory; fits `Engine`.

    At most ``workers`` results wait or are being made. With one worker nothing is computed in
    advance.

    Parameters
    ----------
    workers : int
        1 or more. Unpacking, splines and products let other threads run.
    memory : int, optional
        Bytes that items may take together; fewer threads work on large ones.
    """

    def __init__(self, workers: int = 1, memory: int | None = None) -> None:
        self.workers = workers
        self.memory = memory

    def map(
        self, work: Callable[[Item], Made], items: Iterable[Item], each: int = 0
    ) -> Iterator[Made]:
        """Yield ``work(item)`` in the order of the items, computed in advance by threads."""
        workers = most_at_once(self.workers, self.memory, each)
        if workers <= 1:
            yield from map(work, items)
            return
        waiting: deque[Future[Made]] = deque()
        pool = ThreadPoolExecutor(workers)
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) == workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # also when the rest is not needed
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """Return without action: threads end with their work."""
