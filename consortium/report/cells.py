"""A cell of a result's table as the page, a TSV file and JSON write it.

What is not told is written as these words everywhere, and never as a number.
"""

from consortium.algorithms.base import Table
from consortium.algorithms.findings import WITHHELD, Cell, Finding
from consortium.base.formatting import number

Plain = float | int | str
INTERVAL = "low", "high", "state"


def cell_text(cell: Cell) -> str:
    """Write a cell for people: 0.31 (0.12 to 0.5)."""
    if isinstance(cell, Finding):
        if not cell.reported:
            return WITHHELD
        interval = f" ({_number(cell.low)} to {_number(cell.high)})" if cell.bounded else ""
        found = "" if cell.state == "found" else ", not found"
        return f"{_number(cell.value)}{interval}{found}"
    return _number(cell) if isinstance(cell, float) else str(cell)


def cell_json(cell: Cell) -> Plain | dict[str, Plain]:
    """Write a cell for JSON: a finding with an interval is an object."""
    if not isinstance(cell, Finding):
        return cell
    if not cell.reported:
        return WITHHELD
    if not cell.bounded:
        return cell.value
    return {"value": cell.value, "low": cell.low, "high": cell.high, "state": cell.state}


def plain_table(table: Table) -> Table:
    """Write a table for TSV, without findings.

    A column of findings of which any has an interval becomes four: the values, ``low``, ``high``
    and ``state`` after the column's heading. Any other keeps one column.
    """
    wide = [_has_intervals(table, k) for k in range(len(table.columns))]
    columns = [
        each
        for name, spread in zip(table.columns, wide, strict=True)
        for each in ((name, *(f"{name} {end}" for end in INTERVAL)) if spread else (name,))
    ]
    rows = [
        tuple(x for cell, spread in zip(row, wide, strict=True) for x in _plain_cells(cell, spread))
        for row in table.rows
    ]
    return Table(table.caption, tuple(columns), tuple(rows))


def _has_intervals(table: Table, column: int) -> bool:
    cells = (row[column] for row in table.rows)
    return any(isinstance(cell, Finding) and cell.bounded for cell in cells)


def _plain_cells(cell: Cell, spread: bool) -> tuple[Plain, ...]:
    if not isinstance(cell, Finding):
        return (cell, "n/a", "n/a", "n/a") if spread else (cell,)
    if not cell.reported:
        return (WITHHELD,) * (4 if spread else 1)
    ends = (cell.low, cell.high) if cell.bounded else (WITHHELD, WITHHELD)
    return (cell.value, *ends, cell.state) if spread else (cell.value,)


def _number(value: float) -> str:
    return number(value).replace("-", "−")
