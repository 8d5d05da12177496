"""Summary of the tables and labels that a study reads at a site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from consortium.base.delimited import open_table
from consortium.base.formatting import count
from consortium.errors import DataError
from consortium.study.spec import Study
from consortium.views.column import Column
from site_agent.advice import Remedy, write_line
from site_agent.data.bids import labels_in
from site_agent.data.tsv import MOST_BYTES, Row, encode_cell, rows_or_errors, view_rows
from site_agent.data.understood import Fact, Understanding
from site_agent.data.wording import CODED, PARTICIPANTS, SiteTables, Wording, is_given
from site_agent.labels import Spellings

if TYPE_CHECKING:
    from consortium.views.table import TableView

_NAMED = 3


def summarize_tables(source: Path, study: Study, tables: SiteTables) -> Understanding:
    """Summarize the labels of a data set and the tables that a study reads.

    Tables that can't be read lead to no fact, since loading the data reports them.

    Parameters
    ----------
    source : Path
        The site's data set.
    study : Study
        Its views and rules name the tables and columns.
    tables : SiteTables
        The site's own settings.
    """
    facts, notes = [*_labels(source, tables)], [*_no_table(source, tables)]
    for view in study.features:
        if view.single_columns:
            facts += _of_view(source, cast("TableView", view), study, tables)
    return Understanding(tuple(facts), tuple(notes))


def table_problems(paths: Sequence[Path]) -> Iterator[str]:
    """Yield a sentence for each table with rows that can't be assigned to its columns."""
    for path in dict.fromkeys(paths):
        if not path.is_file():
            continue
        try:
            with open_table(path, MOST_BYTES) as table:
                troubles = [row.trouble for row in table.every_row() if row.trouble is not None]
        except DataError as error:
            yield str(error)
            continue
        if troubles:
            more = f" {count(len(troubles) - 1, 'more line')} differ." if troubles[1:] else ""
            yield f"{troubles[0]}{more}"


def tables_read(
    source: Path, study: Study, tables: SiteTables, left_out: Path | None
) -> list[Path]:
    """Return the paths of all tables of several participants that a study reads at a site."""
    own = [cast("TableView", view) for view in study.features if view.single_columns]
    files = [view.file for view in own if not view.is_by_person]
    units = study.analysis.grouped
    needs = bool(study.data.persons) or (units is not None and units.family is not None)
    paths = [source / file for file in files if file != PARTICIPANTS]
    if needs or PARTICIPANTS in files:
        paths.append(tables.participants_of(source))
    return paths if left_out is None else [*paths, left_out]


def _labels(source: Path, tables: SiteTables) -> Iterator[Fact]:
    """Yield how many folders and rows there are, and how their labels match."""
    folders = labels_in(source)
    if folders:
        yield Fact("participants' folders", f"{len(folders)}, {_some(folders)}")
    table = tables.participants_of(source)
    try:
        known = Spellings(folders, exact=tables.exact_labels)
        written = [label for label, _ in rows_or_errors(table, (), Wording(tables=tables))]
        rows = f"{count(len(written), 'row')}{_form(table)}"
    except DataError:
        return
    if not folders:
        yield Fact("participants' table", f"{table}, {rows}, {_some(written)}")
        return
    matched = [label for label in written if known.knows(label)]
    respelled = sum(known.spelled(label) != label for label in matched)
    spelled = f", {respelled} of them in another spelling" if respelled else ""
    lacking = len(folders) - len(matched)
    yield Fact(
        "participants' table",
        f"{table}, {rows}: {len(matched)} match a folder{spelled}, "
        f"{len(written) - len(matched)} match none, {count(lacking, 'folder')} without a row",
    )


def _form(path: Path) -> str:
    """Return what is unusual in the form of a table."""
    with open_table(path, MOST_BYTES) as table:
        next(table.every_row(), None)
        return ", with a column of row names that is not read" if table.has_row_names else ""


def _no_table(source: Path, tables: SiteTables) -> Iterator[str]:
    table = tables.participants_of(source)
    if not table.exists() and labels_in(source):
        advice = write_line(Remedy.PARTICIPANTS, {"participants": "PATH"})
        yield (
            f"{table} does not exist, so no study can choose participants by age or group here. If "
            f"the table is in the raw data set, {advice} with its path as PATH."
        )


def _of_view(source: Path, view: TableView, study: Study, tables: SiteTables) -> Iterator[Fact]:
    """Yield the numbers of rows, and of missing and odd cells, of a view's columns."""
    units = study.analysis.grouped
    wording = Wording(study.data.missing, tables)
    try:
        read = view_rows(source, view, wording, by_session=units is not None and units.sessions)
        rows = [row for _, row, _ in read if not isinstance(row, DataError)]
    except DataError:
        return
    troubled = [_trouble(name, column, rows) for name, column in view.single_columns]
    found = [each for each in troubled if each]
    some = "; ".join(found[:_NAMED]) or "none missing or odd"
    more = f"; {len(found) - _NAMED} more columns" if found[_NAMED:] else ""
    columns = count(len(view.single_columns), "column")
    form = "" if view.is_by_person or view.file == PARTICIPANTS else _form(source / view.file)
    yield Fact(
        f"view '{view.name}'",
        f"{view.file}, {count(len(rows), 'row')}{form}, {columns}: {some}{more}",
    )


def _trouble(name: str, column: Column, rows: Sequence[Row]) -> str:
    """Return a column's number of missing and odd cells, or nothing if it has neither."""
    cells = [row[name] for row in rows if encode_cell(row[name], column) is None]
    missing = sum(not is_given(cell) or cell == CODED for cell in cells)
    odd = Counter(cell for cell in cells if is_given(cell) and cell != CODED)
    parts = [f"{missing} missing"] if missing else []
    if odd:
        shown = ", ".join(f"'{cell[:20]}'" for cell, _ in odd.most_common(_NAMED))
        parts.append(f"{sum(odd.values())} odd ({shown})")
    return f"{name} {', '.join(parts)}" if parts else ""


def _some(names: Sequence[str]) -> str:
    """Return the first names and the last one."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMED - 1])}, …, {names[-1]}"
