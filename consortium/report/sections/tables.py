"""The result's tables, with their numbers written out; of voxels the peaks of their maps."""

from dataclasses import dataclass, replace

from consortium.algorithms.base import Table
from consortium.report import clusters
from consortium.report.cells import cell_text
from consortium.report.finished import Finished
from consortium.report.sections.base import PageSection
from consortium.report.shown_maps import set_maps


@dataclass(frozen=True)
class ShownTable:
    """A table in words; ``numeric`` are the columns that hold numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...]


def section(run: Finished) -> PageSection | None:
    """Show every table."""
    voxels = run.space.regions is None
    tables = [_listed(table) if voxels else table for table in run.result.tables.values()]
    shown = [_shown(table) for table in tables if table is not None]
    shown += _peaks(run) if voxels else []
    return PageSection("tables", {"tables": shown}) if shown else None


def _listed(table: Table) -> Table | None:
    """The table without its rows of voxels; nothing if it has no others."""
    rows = tuple(row for row in table.rows if row[0] not in table.voxels_of)
    return replace(table, rows=rows) if rows or not table.rows else None


def _peaks(run: Finished) -> list[ShownTable]:
    """Peaks of the maps that are drawn in the place of rows of voxels."""
    views = {name for table in run.result.tables.values() for name in table.voxels_of}
    maps = [
        shown
        for key, images in run.result.images.items()
        if images.drawn and images.view in views
        for shown in set_maps(run, key, images)
        if shown is not None
    ]
    named = run.legend.anatomy is not None
    return [
        ShownTable(
            clusters.caption(shown),
            clusters.columns(shown, named=named),
            clusters.rows(run, shown),
            (2 + named, 3 + named),
        )
        for shown in maps
    ]


def _shown(table: Table) -> ShownTable:
    rows = tuple(tuple(cell_text(cell) for cell in row) for row in table.rows)
    numeric = tuple(
        k
        for k in range(len(table.columns))
        if k and all(not isinstance(row[k], str) for row in table.rows)
    )
    return ShownTable(table.caption, table.columns, rows, numeric)
