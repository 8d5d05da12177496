"""A table of claims: each row has its peer or its limit, all in one run.

A row-maker is a function without arguments that returns rows; `ROWS` in ``__main__`` lists them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

Act = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    """Measured act, with its sizes."""
    ours: float
    """Measured value, in ``unit``."""
    beside: str
    """Name of the peer."""
    peer: float | None
    """The same; None for a peer that is not installed."""
    reach: str
    """Aim, as a bound on ``ratio``."""
    unit: str = "ms"
    inverse: bool = False
    """Show peer / ours, for a reach that says how many times faster."""

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's, or the inverse; nothing without a peer."""
        if self.peer is None:
            return None
        return self.peer / self.ours if self.inverse else self.ours / self.peer

    def cells(self) -> tuple[str, ...]:
        """Return the text of the columns."""
        ours, peer = (_cell(value, self.unit) for value in (self.ours, self.peer))
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return self.work, ours, self.beside, peer, ratio, self.reach


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "not installed"
    digits = f"{value:.3g}"
    return f"{f'{float(digits):,.0f}' if 'e+' in digits else digits} {unit}".strip()


RowMaker = Callable[[], Sequence[Row]]


def alternate(
    *acts: Act, repeats: int = 5, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Return each act's least processor time in milliseconds, all acts taking turns.

    A disturbance of the machine then affects all acts, and the minimum of none. Other work on the
    machine is not counted. With ``time.perf_counter`` as ``clock`` it is the wall time, for acts
    whose threads work side by side.
    """
    found = [float("inf")] * len(acts)
    for _ in range(repeats):
        for place, act in enumerate(acts):
            start = clock()
            act()
            found[place] = min(found[place], 1e3 * (clock() - start))
    return found


COLUMNS = ("work", "ours", "compared with", "peer", "ratio", "reach")


def print_table(makers: Sequence[RowMaker]) -> list[Row]:
    """Make all rows, print them together, and return them."""
    table, rows = Table(*COLUMNS, title="Compared with the limits"), []
    console = Console(width=150)
    with console.status("measuring") as status:
        for maker in makers:
            status.update(f"measuring: {maker.__module__}.{maker.__name__}")
            for row in maker():
                table.add_row(*row.cells())
                rows.append(row)
    console.print(table)
    return rows
