"""Tables of a finished study as TSV files, each with a sidecar.

Source: BIDS 1.11, derivatives; the suffixes are not in the standard (see `dataset.NOT_IN_BIDS`).
A withheld number is the word "withheld" on the page and in JSON. In a TSV file it is a missing
value (n/a), and the column of its state has the word.
"""

import io
import math
from collections.abc import Sequence
from csv import writer
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from consortium.algorithms.base import Array, Table
from consortium.algorithms.findings import WITHHELD, Cell, Finding
from consortium.base.atomic import write_json, write_text
from consortium.base.formatting import number
from consortium.report.bids import about_study, label
from consortium.report.finished import Finished
from consortium.space.study_space import AnyViewSpace, Space

Plain = float | int | str
INTERVAL = "low", "high", "state"
_ENTRY = "entry"
_MISSING = "n/a"
_AXES = {"x": "right", "y": "front", "z": "top"}
"""Columns of a voxel's place, and where their numbers grow."""
_DIGITS = 3  # decimal places of a coordinate in mm
Entries = tuple[Sequence[str], Sequence[tuple[str, ...]]]
"""Headings of the columns that name an entry, and the names of each."""


def cell_text(cell: Cell) -> str:
    """Return a result table's cell for people: 0.31 (0.12 to 0.5)."""
    if isinstance(cell, Finding):
        if not cell.reported:
            return WITHHELD
        interval = f" ({_number(cell.low)} to {_number(cell.high)})" if cell.bounded else ""
        found = "" if cell.state == "found" else ", not found"
        return f"{_number(cell.value)}{interval}{found}"
    return _number(cell) if isinstance(cell, float) else str(cell)


def cell_json(cell: Cell) -> Plain | dict[str, Plain]:
    """Write a table's cell for JSON: a finding with an interval is an object."""
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
    and ``state`` after the column's heading. One without intervals of which any is withheld becomes
    two: the values and ``state``. Any other keeps one column.
    """
    ends = [_more_columns(table, k) for k in range(len(table.columns))]
    columns = [
        each
        for name, more in zip(table.columns, ends, strict=True)
        for each in (name, *(f"{name} {end}" for end in more))
    ]
    rows = [
        tuple(x for cell, more in zip(row, ends, strict=True) for x in _plain_cells(cell, more))
        for row in table.rows
    ]
    return Table(table.caption, tuple(columns), tuple(rows))


def _more_columns(table: Table, column: int) -> tuple[str, ...]:
    """Return the ends of the headings of further columns that a column of findings needs."""
    findings = [cell for row in table.rows if isinstance(cell := row[column], Finding)]
    if any(each.bounded for each in findings):
        return INTERVAL
    return () if all(each.reported for each in findings) else ("state",)


def _plain_cells(cell: Cell, more: tuple[str, ...]) -> tuple[Plain, ...]:
    if not isinstance(cell, Finding):
        return (cell, *(_MISSING for _ in more))
    fields = [getattr(cell, name) for name in ("value", *more)]
    return tuple(_MISSING if is_missing(each) else each for each in fields)


def is_missing(cell: Plain) -> bool:
    """Return whether a result table's cell is not a number although it is a float."""
    return isinstance(cell, float) and math.isnan(cell)


def _number(value: float) -> str:
    return number(value).replace("-", "−")


def write_tables(folder: Path, run: Finished) -> list[Path]:
    """Write the result's tables; raises OutputError if the folder can't be written."""
    written = []
    for title, table in run.result.tables.items():
        name = f"desc-{label(run.study.study + run.study.algorithm + title)}_results"
        path = folder / "tables" / f"{name}.tsv"
        placed = _is_placed(run, table)
        write_json(path.with_suffix(".json"), _about(run, table, placed=placed))
        written.append(_write_tsv(path, with_places(table, run.space) if placed else table))
    return written


def with_places(table: Table, space: Space) -> Table:
    """Add columns x, y and z after ``entry`` of a result's table: the place of each row in mm.

    Parameters
    ----------
    table : Table
        With ``voxels_of``; their entries are numbers of voxels, or of a mesh's vertices, from 1.
    """
    at = table.columns.index(_ENTRY) + 1
    voxels = space.grid
    places = {view: (space.mesh_of(view) or voxels).coordinates for view in table.voxels_of}
    rows = (
        (*row[:at], *_place(row[at - 1], places.get(str(row[0]))), *row[at:]) for row in table.rows
    )
    return replace(table, columns=(*table.columns[:at], *_AXES, *table.columns[at:]), rows=(*rows,))


def _place(entry: Cell, coordinates: Array | None) -> tuple[Cell, ...]:
    if coordinates is None:
        return (_MISSING,) * len(_AXES)
    return tuple(np.round(coordinates[int(str(entry)) - 1], _DIGITS).tolist())


def _is_placed(run: Finished, table: Table) -> bool:
    """Return whether rows are voxels or vertices, and not the regions of an atlas."""
    if not table.voxels_of or _ENTRY not in table.columns:
        return False
    on_meshes = all(run.space.mesh_of(view) is not None for view in table.voxels_of)
    return run.space.regions is None or on_meshes


def _about(run: Finished, table: Table, *, placed: bool) -> dict[str, Any]:
    """Return the sidecar of a table: its description, and those of its columns."""
    columns: dict[str, Any] = {name: {"Description": text} for name, text in table.about.items()}
    if placed:
        columns |= {
            axis: {
                "Description": f"Centre of the voxel in {run.study.data.space}, or the vertex on "
                f"its mesh, to the {way}; {_MISSING} for other entries.",
                "Units": "mm",
            }
            for axis, way in _AXES.items()
        }
    return {"Description": table.caption, **columns}


def write_loading_table(
    folder: Path, run: Finished, view: AnyViewSpace, entries: Entries, values: Array
) -> Path:
    """Write a view's loadings (D_v x K), a line for each entry and a column for each of K.

    Raises OutputError if the folder can't be written.
    """
    heads, names = entries
    rows = [(*name, *row.tolist()) for name, row in zip(names, values, strict=True)]
    return write_loading_rows(folder, run, view, heads, rows)


def write_loading_rows(
    folder: Path,
    run: Finished,
    view: AnyViewSpace,
    heads: Sequence[str],
    rows: Sequence[tuple[float | str, ...]],
) -> Path:
    """Write rows of names and values of each column of a view's loadings.

    A number that is missing is written n/a.

    Raises OutputError if the folder can't be written.
    """
    study = run.study
    path = folder / f"desc-{label(study.study + study.algorithm + view.name)}_loadings.tsv"
    write_json(path.with_suffix(".json"), about_loadings(run, view))
    many = len(rows[0]) - len(heads)
    columns = (f"{run.result.captions.column}-{k + 1}" for k in range(many))
    cells = [tuple(_MISSING if is_missing(cell) else cell for cell in row) for row in rows]
    return _write_tsv(path, Table("", (*heads, *columns), tuple(cells)))


def about_loadings(run: Finished, view: AnyViewSpace) -> dict[str, Any]:
    """Return the sidecar of a view's loadings."""
    return {
        "Description": run.result.captions.meaning,
        "View": view.view.model_dump(mode="json"),
        **about_study(run.study, run.result.numbers),
    }


def _write_tsv(path: Path, table: Table) -> Path:
    return write_text(path, tab_separated(table))


def tab_separated(table: Table) -> str:
    """Return a table as the text of a TSV file."""
    text = io.StringIO()
    lines = writer(text, delimiter="\t", lineterminator="\n")
    plain = plain_table(table)
    lines.writerow(plain.columns)
    lines.writerows(plain.rows)
    return text.getvalue()
