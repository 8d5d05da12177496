"""Times of things side by side in one run, as ratios."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table


def best(act: Callable[[], object], repeats: int = 5) -> float:
    """Shortest of several runs, in seconds: the least disturbed one."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def processor(act: Callable[[], object], repeats: int = 3) -> float:
    """Least processor time of several runs, which other work on the machine disturbs less."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return min(times)


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table."""
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
