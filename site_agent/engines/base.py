"""The one thing that a site asks of what it computes on: work on many items, in their order."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class Engine(Protocol):
    """Threads, processes or a cluster."""

    memory: int | None
    """Bytes that may be taken by all items together that are worked on at a time; or no limit."""

    def map(
        self, work: Callable[[Item], Made], items: Iterable[Item], each: int = 0
    ) -> Iterator[Made]:
        """Yield ``work(item)`` in the order of the items, a few of which are worked on ahead.

        Raises EngineError if workers are lost, again and again, or can't be reached.

        Parameters
        ----------
        work : callable
            A module's function, or a partial one: it may be sent to another process. Its errors
            are raised when its result is due.
        items : iterable
            As little as names the work, for the same reason.
        each : int
            Bytes that one item takes at the most, from its beginning until its result is taken.
        """

    def close(self) -> None:
        """Let go of processes and connections; the engine may be used again."""


def most_at_once(many: int, memory: int | None, each: int) -> int:
    """How many of ``many`` items fit into memory at a time; one is always worked on.

    A site with too little memory for one says so to its owner (`site-agent check`), and answers
    as far as the machine can: a refusal would tell the centre how much memory there is.
    """
    if memory is None or each <= 0:
        return many
    return max(1, min(many, memory // each))
