"""Threads of the agent's own process."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from site_agent.engines.base import Item, Made, most_at_once


class Threads:
    """Work on several items at once, without holding all of them; fits `Engine`.

    At most ``workers`` results wait or are being made. With one worker nothing runs ahead.

    Parameters
    ----------
    workers : int
        1 or more. Unpacking, splines and products let other threads run.
    memory : int, optional
        Bytes that items may take together; fewer threads work on large ones.
    """

    def __init__(self, workers: int = 1, memory: int | None = None) -> None:
        self.workers, self.memory = workers, memory

    def map(
        self, work: Callable[[Item], Made], items: Iterable[Item], each: int = 0
    ) -> Iterator[Made]:
        """Yield ``work(item)`` in the order of the items, made by threads that run ahead."""
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
        finally:  # also when nobody wants the rest
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """Nothing: threads end with their work."""
