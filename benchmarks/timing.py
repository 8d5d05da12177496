"""What benchmarks share: times side by side in one run, printed tables, and tallies of runs."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from pydantic import validate_call
from rich.console import Console
from rich.table import Table

Found = TypeVar("Found")


def command(main: Callable[..., int | None]) -> None:
    """Run a benchmark with the words of its command line, read as its annotations say."""
    sys.exit(validate_call(main)(*sys.argv[1:]))


def best(
    act: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the shortest of several runs, in seconds: the least disturbed one."""
    times = []
    for _ in range(repeats):
        start = clock()
        act()
        times.append(clock() - start)
    return min(times)


def processor(act: Callable[[], object], repeats: int = 3) -> float:
    """Return the least processor time of several runs, which other work disturbs less."""
    return best(act, repeats, time.process_time)


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def heading(columns: str) -> None:
    """Print the beginning of a table in Markdown."""
    print(f"| {columns} |\n|{' --- |' * (columns.count(' | ') + 1)}", flush=True)


def line(*cells: str) -> None:
    """Print a row in Markdown as soon as it is known."""
    print(f"| {' | '.join(cells)} |", flush=True)


def in_processes(one_run: Callable[[int], Found], runs: int) -> Iterator[Found]:
    """Return the results of all runs, with a process for every usable core."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(one_run, range(runs))


@dataclass
class Tally:
    """What runs add up to: a list of each run's numbers by name."""

    found: dict[str, list[float]] = field(default_factory=dict)

    def add(self, **numbers: float) -> None:
        """Note a run."""
        for name, value in numbers.items():
            self.found.setdefault(name, []).append(float(value))

    def mean(self, name: str) -> float:
        """Return the mean over the runs that have the number."""
        return float(np.nanmean(self.found[name]))

    def root(self, name: str) -> float:
        """Return the root of the mean."""
        return float(np.sqrt(self.mean(name)))

    def texts(self, *names: str, digits: int = 3) -> list[str]:
        """Return means as cells of a table, a dash if no run has the number."""
        known = (np.isfinite(self.found.get(name, np.nan)).any() for name in names)
        return [
            f"{self.mean(n):.{digits}f}" if k else "–" for n, k in zip(names, known, strict=True)
        ]

    def over(self, whole: float, *names: str, digits: int = 3) -> list[str]:
        """Return roots over a number as cells of a table, a dash if no run has one."""
        present = (name in self.found for name in names)
        return [
            f"{self.root(n) / whole:.{digits}f}" if t else "–"
            for n, t in zip(names, present, strict=True)
        ]
