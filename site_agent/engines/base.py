"""The one thing that a site asks of what it computes on: work on many items, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import version
from platform import python_version
from typing import Protocol, TypeVar

import numpy as np
import scipy
import scipy.linalg.blas
from threadpoolctl import threadpool_info, threadpool_limits

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

        Parameters
        ----------
        work : callable
            A module's function, or a partial one: it may be sent to another process. Its errors
            are raised when its result is due.
        items : iterable
            As little as names the work, for the same reason.
        each : int
            Bytes that one item takes at the most, from its beginning until its result is taken.

        Raises
        ------
        EngineError
            If workers are lost, again and again, or can't be reached.
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


@cache
def one_thread() -> str:
    """Have BLAS use one thread from now on, and return what its results' last bits depend on.

    How a product is split between threads decides how it is rounded, and the noise of a site's
    message is bound to its bytes. Workers do the work of threads.

    Returns
    -------
    str
        Versions of the software, and the instructions that BLAS and NumPy were chosen for.
    """
    threadpool_limits(1, user_api="blas")
    blas = {
        f"{each['internal_api']} {each.get('version')} for {each.get('architecture')}"
        for each in threadpool_info()
        if each["user_api"] == "blas"
    }
    known = f"NumPy {np.__version__}, SciPy {scipy.__version__}"  # whose BLAS are loaded by now
    vectors = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    others = ", ".join(f"{name} {version(name)}" for name in ("cape-consortium", "nibabel"))
    software = f"Python {python_version()}, {known}, {others}"
    return ", ".join([software, *sorted(blas), f"NumPy for {' '.join(vectors) or 'no vectors'}"])
