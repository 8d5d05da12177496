"""The result's tables, with their numbers written out."""

from __future__ import annotations

from dataclasses import dataclass

from consortium.algorithms.base import Table
from consortium.report.cells import cell_text
from consortium.report.finished import Finished
from consortium.report.sections.base import Section


@dataclass(frozen=True)
class ShownTable:
    """A table in words; ``numeric`` are the columns that hold numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...]


def section(run: Finished) -> Section | None:
    """Show every table."""
    tables = [_shown(table) for table in run.result.tables.values()]
    return Section("tables", {"tables": tables}) if tables else None


def _shown(table: Table) -> ShownTable:
    rows = tuple(tuple(cell_text(cell) for cell in row) for row in table.rows)
    numeric = tuple(
        k
        for k in range(len(table.columns))
        if k and all(not isinstance(row[k], str) for row in table.rows)
    )
    return ShownTable(table.caption, table.columns, rows, numeric)
