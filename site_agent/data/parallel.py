"""Working on several subjects at once, without holding all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def map_ahead(work: Callable[[Item], Made], items: Iterable[Item], workers: int) -> Iterator[Made]:
    """Yield ``work(item)`` in the order of the items, made by threads that run ahead.

    At most ``workers`` results wait or are being made. With one worker nothing runs ahead.

    Parameters
    ----------
    work : callable
        Its errors are raised when its result is due.
    items : iterable
    workers : int
        1 or more. Unpacking, splines and products let other threads run.
    """
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
