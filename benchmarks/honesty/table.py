"""Shares over repetitions, and the one table."""

import importlib
import math
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

import benchmarks.honesty as package
from benchmarks.honesty.cells import Cell, Outcome
from consortium.algorithms import REGISTRY

_FEWEST = 8  # intervals of which a share is reported
Repetition = Callable[[Cell, np.random.Generator], Outcome]


@dataclass(frozen=True)
class Row:
    """All repetitions of one cell."""

    analysis: str
    cell: Cell
    outcomes: list[Outcome]

    @property
    def intervals(self) -> int:
        """Intervals that were reported."""
        return sum(len(each.covered) for each in self.outcomes)

    @property
    def coverage(self) -> float:
        """Return the fraction of the reported intervals that contain the truth; NaN if none."""
        return _share(sum(sum(each.covered) for each in self.outcomes), self.intervals)

    @property
    def coverage_error(self) -> float:
        """Return the standard error of the coverage.

        All intervals of one repetition may be wrong together. So repetitions are counted, not
        intervals. The error is never less than that of one interval.
        """
        told = [(sum(o.covered), len(o.covered)) for o in self.outcomes if o.covered]
        if not told:
            return math.nan
        held, sizes = np.array(told, dtype=np.float64).T
        spread = float(np.sum((held - self.coverage * sizes) ** 2)) / float(sizes.sum()) ** 2
        return math.sqrt(max(spread, 1.0 / float(sizes.sum()) ** 2))

    @property
    def false(self) -> float:
        """Share of repetitions in which anything without effect was announced."""
        return _share(sum(each.false for each in self.outcomes), len(self.outcomes))

    @property
    def power(self) -> float:
        """Share of the true effects that were found."""
        return _share(sum(o.found for o in self.outcomes), sum(o.true for o in self.outcomes))

    @property
    def power_pooled(self) -> float:
        """The same without noise."""
        found = sum(each.found_pooled for each in self.outcomes)
        return _share(found, sum(each.true for each in self.outcomes))

    def cells(self) -> tuple[str, ...]:
        """Return the text of the columns."""
        held = "–"
        if self.intervals >= _FEWEST:
            held = f"{_short(self.coverage, 3)} ± {_short(self.coverage_error, 3)}"
        return (
            self.analysis,
            self.cell.data,
            f"{self.cell.epsilon:g}",
            f"{sum(self.cell.sizes):,}",
            f"{len(self.outcomes):,}",
            held,
            *(_short(each) for each in (self.false, self.power, self.power_pooled)),
        )


COLUMNS = (
    "analysis",
    "data",
    "ε",
    "participants",
    "studies",
    "coverage",
    "false",
    "power",
    "power without noise",
)


def _short(share: float, digits: int = 2) -> str:
    """Write a fraction without the zero before the point, 0 if nothing, a dash if missing."""
    if math.isnan(share):
        return "–"
    return f"{share:.{digits}f}".removeprefix("0") if share else "0"


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def analyses() -> tuple[str, ...]:
    """Return the analyses of the registry that have a file here."""
    files = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return tuple(sorted(files & REGISTRY.keys()))


def load(analysis: str) -> Repetition:
    """Find an analysis's repetition."""
    found: Repetition = importlib.import_module(f"{package.__name__}.{analysis}").repetition
    return found


def outcomes(analysis: str, cell: Cell, seeds: Sequence[int]) -> list[Outcome]:
    """Repeat a cell, once for each seed."""
    return rows(analysis, [cell], seeds)[0].outcomes


def rows(
    analysis: str, cells: Sequence[Cell], seeds: Sequence[int], seconds: float = math.inf
) -> list[Row]:
    """Repeat cells that differ only in ε, once for each seed, until the given time is used.

    With one seed all cells use the same participants, if the analysis's file caches them.
    """
    repetition, start = load(analysis), process_time()
    found: list[list[Outcome]] = [[] for _ in cells]
    for seed in seeds:
        for cell, told in zip(cells, found, strict=True):
            rng = np.random.default_rng((seed, cell.persons, *map(ord, cell.data)))
            told.append(repetition(cell, rng))
        if process_time() - start > seconds:
            break
    return [Row(analysis, cell, told) for cell, told in zip(cells, found, strict=True)]


def print_markdown(rows: Sequence[Row]) -> None:
    """Print the table as `docs/replication/honesty.md` has it."""
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS))
    for row in rows:
        name, *rest = row.cells()
        print("| " + " | ".join([f"`{name}`", *rest]) + " |")


def print_rows(rows: Sequence[Row]) -> None:
    """Print the one table."""
    table = Table(*COLUMNS, title="Every number with its own uncertainty")
    for row in rows:
        table.add_row(*row.cells())
    Console(width=120).print(table)
