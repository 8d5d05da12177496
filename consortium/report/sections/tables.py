"""The result's tables, with their numbers written out; of voxels the peaks of their maps."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms.base import Table
from consortium.base.formatting import count, number
from consortium.report.finished import Finished
from consortium.report.sections.base import PageSection
from consortium.report.shown_maps import ShownMap, component_regions, full_name, set_maps
from consortium.report.tables import cell_text

MOST = 50
"""Peaks of a map that the page lists; the image has all."""
Rows = tuple[tuple[str, ...], ...]


def columns(shown: ShownMap, *, named: bool) -> tuple[str, ...]:
    """Return the headings of `rows` of a report's table."""
    place = ("region",) if named else ()
    return ("cluster", "x, y, z in mm", *place, f"peak {shown.units}", "size in mm³")


def rows(run: Finished, shown: ShownMap) -> Rows:
    """Return a table's rows for the page: peaks of every cluster, the largest first.

    Returns
    -------
    tuple of tuple of str
        Cluster, place, region (if the study names an atlas for its report), value and, of a
        cluster's first peak, its size.
    """
    # Importing nilearn costs seconds, which only those who draw should pay.
    from nilearn.reporting import get_clusters_table

    image = shown.grid.image(shown.values.astype(np.float32))
    # Values below the threshold are zero here, so any smaller number is valid.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No clusters found")  # of one of the two signs
        found = get_clusters_table(image, 0.99 * shown.threshold, two_sided=True)
    anatomy = run.legend.anatomy
    rows_found = []
    for name, x, y, z, top, size in list(found.itertuples(index=False, name=None))[:MOST]:
        peak = np.array([x, y, z], dtype=np.float64)
        place = ", ".join(f"{round(mm):d}" for mm in peak.tolist()).replace("-", "−")
        region = () if anatomy is None else (anatomy.name_at(peak) or "–",)
        value = number(float(top)).replace("-", "−")
        rows_found.append((str(name), place, *region, value, f"{size:,.0f}" if size != "" else ""))
    return tuple(rows_found)


def caption(run: Finished, shown: ShownMap) -> str:
    """Return the caption of a table on the report's page."""
    return (
        f"Peaks of {full_name(run, shown)}: {count(shown.coloured, 'voxel')} in clusters that "
        "touch, by sign; letters are further peaks of a cluster, 8 mm apart or more. The page "
        f"lists at most {MOST} peaks, and the image files contain all voxels."
    )


@dataclass(frozen=True)
class ShownTable:
    """A table of texts; ``numeric`` are the columns of numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...]


def section(run: Finished) -> PageSection | None:
    """Show every table of the result on the report's page."""
    voxels = run.space.regions is None
    tables = [_listed(table) if voxels else table for table in run.result.tables.values()]
    shown = [_shown(_named(run, table)) for table in tables if table is not None]
    shown += _peaks(run) if voxels else []
    return PageSection("tables", {"tables": shown}) if shown else None


def _listed(table: Table) -> Table | None:
    """Return the table without its rows of voxels; nothing if it has no others."""
    rows = tuple(row for row in table.rows if row[0] not in table.voxels_of)
    return replace(table, rows=rows) if rows or not table.rows else None


def _named(run: Finished, table: Table) -> Table:
    """Add the region to the number of each public map whose measure is an entry."""
    if table.columns[:2] != ("view", "entry"):
        return table
    regions = {view.name: component_regions(run, view) for view in run.space.views}
    rows = (
        (view, f"{entry} {regions.get(str(view), {}).get(str(entry), '')}".rstrip(), *others)
        for view, entry, *others in table.rows
    )
    return replace(table, rows=tuple(rows))


def _peaks(run: Finished) -> list[ShownTable]:
    """Return peaks of the maps that are drawn instead of rows of voxels."""
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
            caption(run, shown),
            columns(shown, named=named),
            rows(run, shown),
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
