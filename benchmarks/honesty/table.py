"""Shares over repetitions, and the one table."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

import benchmarks.honesty as package
from benchmarks.honesty.cells import Cell, Outcome
from consortium.algorithms import REGISTRY

Repetition = Callable[[Cell, np.random.Generator], Outcome]


@dataclass(frozen=True)
class Row:
    """All repetitions of one cell.

    Parameters
    ----------
    analysis : str
    cell : Cell
    outcomes : sequence of Outcome
    """

    analysis: str
    cell: Cell
    outcomes: Sequence[Outcome]

    @property
    def intervals(self) -> int:
        """Intervals that were told."""
        return sum(len(each.covered) for each in self.outcomes)

    @property
    def coverage(self) -> float:
        """Share of the intervals told that hold the truth; NaN if none was."""
        return _share(sum(sum(each.covered) for each in self.outcomes), self.intervals)

    @property
    def coverage_error(self) -> float:
        """Its standard error.

        The intervals of one repetition may all be wrong together, so that repetitions are
        counted, and not intervals; never less than one interval's worth of doubt.
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
        """Text of the columns."""
        held = "–"
        if self.intervals:
            held = f"{self.coverage:.3f} ± {self.coverage_error:.3f}"
        return (
            self.analysis,
            self.cell.data,
            f"{self.cell.epsilon:g}",
            f"{sum(self.cell.sizes):,}",
            f"{self.intervals:,}",
            held,
            f"{self.false:.2f}",
            *("–" if math.isnan(x) else f"{x:.2f}" for x in (self.power, self.power_pooled)),
        )


COLUMNS = (
    "analysis",
    "data",
    "ε",
    "persons",
    "intervals",
    "coverage",
    "false",
    "power",
    "without noise",
)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def analyses() -> tuple[str, ...]:
    """Those of the registry that have a file here."""
    files = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return tuple(sorted(files & REGISTRY.keys()))


def load(analysis: str) -> Repetition:
    """Find an analysis's repetition."""
    found: Repetition = importlib.import_module(f"{package.__name__}.{analysis}").repetition
    return found


def outcomes(analysis: str, cell: Cell, seeds: Sequence[int]) -> list[Outcome]:
    """Repeat a cell, once for each seed."""
    repetition = load(analysis)
    key = (round(10 * cell.epsilon), cell.persons, *map(ord, cell.data))
    return [repetition(cell, np.random.default_rng((seed, *key))) for seed in seeds]


def print_rows(rows: Sequence[Row]) -> None:
    """Print the one table."""
    table = Table(*COLUMNS, title="Every number with its own uncertainty")
    for row in rows:
        table.add_row(*row.cells())
    Console(width=120).print(table)
