"""One table: what is claimed, each row beside its peer or its limit, all in one run.

A row-maker is a function without arguments that returns rows; `ROWS` in ``__main__`` lists them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

Act = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    work : str
        What is done, with its sizes.
    ours, peer : float
        What was measured, in ``unit``.
    beside : str
        What the peer is.
    reach : str
        What was aimed at, as a bound on ``ratio``.
    unit : str
    inverse : bool
        Show peer / ours, for a reach that says how many times faster.
    """

    work: str
    ours: float
    beside: str
    peer: float
    reach: str
    unit: str = "ms"
    inverse: bool = False

    @property
    def ratio(self) -> float:
        """Ours over the peer's, or the inverse."""
        return self.peer / self.ours if self.inverse else self.ours / self.peer

    def cells(self) -> tuple[str, ...]:
        """Text of the columns."""
        ours, peer = (f"{value:.3g} {self.unit}" for value in (self.ours, self.peer))
        return self.work, ours, self.beside, peer, f"{self.ratio:.2f}", self.reach


RowMaker = Callable[[], Sequence[Row]]


def alternate(*acts: Act, repeats: int = 5) -> list[float]:
    """Shortest time of each act in milliseconds, all acts taking turns.

    What disturbs the machine for a while then disturbs all of them, and the minimum none.
    """
    found = [float("inf")] * len(acts)
    for _ in range(repeats):
        for place, act in enumerate(acts):
            start = time.perf_counter()
            act()
            found[place] = min(found[place], 1e3 * (time.perf_counter() - start))
    return found


def print_table(makers: Sequence[RowMaker]) -> None:
    """Make all rows and print them together."""
    table = Table("work", "ours", "beside", "peer", "ratio", "reach", title="Beside the limits")
    console = Console(width=150)
    with console.status("measuring") as status:
        for maker in makers:
            status.update(f"measuring: {maker.__module__}.{maker.__name__}")
            for row in maker():
                table.add_row(*row.cells())
    console.print(table)
