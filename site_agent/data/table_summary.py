"""Summary of the tables and labels that a study reads at a site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from consortium.algorithms.base import Serious
from consortium.base.delimited import open_table
from consortium.base.formatting import count
from consortium.errors import DataError
from consortium.study.spec import Study
from consortium.views.column import Column
from site_agent.advice import Remedy, write_line
from site_agent.data.bids import labels_in
from site_agent.data.people import everybody_in
from site_agent.data.tsv import MOST_BYTES, Row, encode_cell, person_of, rows_or_errors, view_rows
from site_agent.data.understood import Fact, Understanding
from site_agent.data.wording import CODED, PARTICIPANTS, SiteTables, Wording, is_given, number_of
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
    facts = [*_labels(source, tables)]
    notes = [*_no_table(source, tables)]
    found = Understanding(tuple(facts), tuple(notes))
    for view in study.features:
        if view.single_columns:
            found += _of_view(source, cast("TableView", view), study, tables)
    return found


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
        read = rows_or_errors(table, (), Wording(tables=tables))
        written = [label for label, row in read if not isinstance(row, DataError)]
        rows = f"{count(len(written), 'row')}{_row_names_clause(table)}"
    except DataError:
        return
    name = table.name if table.parent == source else str(table)
    if not folders:
        yield Fact("participants' table", f"{name}, {rows}, {_some(written)}")
        return
    matched = [label for label in written if known.knows(label)]
    respelled = sum(known.spelled(label) != label for label in matched)
    spelled = f", {respelled} of them in another spelling" if respelled else ""
    lacking = len(folders) - len(matched)
    parts = [f"{len(matched)} match a folder{spelled}"]
    parts += [f"{len(written) - len(matched)} match none"] if len(matched) < len(written) else []
    parts += [f"{count(lacking, 'folder')} without a row"] if lacking else []
    yield Fact("participants' table", f"{name}, {rows}: {', '.join(parts)}")


def _row_names_clause(path: Path) -> str:
    """Return a clause on a table's column of row names, empty if it has none."""
    with open_table(path, MOST_BYTES) as table:
        next(table.every_row(), None)
        return ", with a column of row names that is not read" if table.has_row_names else ""


def _no_table(source: Path, tables: SiteTables) -> Iterator[str]:
    table = tables.participants_of(source)
    if not table.exists() and labels_in(source):
        yield no_participants(source, tables)


def no_participants(source: Path, tables: SiteTables) -> str:
    """Return that the table of participants is missing, and what to write into site.yaml."""
    table = tables.participants_of(source)
    lacking = f"{table} does not exist, so no study can choose participants by age or group."
    if tables.participants is not None:
        return f"{lacking} Correct 'participants' in site.yaml, whose paths start from its folder."
    for other in (source / f"{table.stem}{ending}" for ending in (".csv", ".txt")):
        if other.is_file():
            advice = write_line(Remedy.PARTICIPANTS, {"participants": str(other.resolve())})
            return f"{lacking} If {other.name} is the table, {advice}."
    advice = write_line(Remedy.PARTICIPANTS, {"participants": "PATH"})
    return f"{lacking} If the table is in another folder, {advice} with its path as PATH."


def _of_view(source: Path, view: TableView, study: Study, tables: SiteTables) -> Understanding:
    """Summarize a view's table: rows, labels, and the ranges and gaps of its columns."""
    units = study.analysis.grouped
    wording = Wording(study.data.missing, tables)
    try:
        read = list(
            view_rows(source, view, wording, by_session=units is not None and units.sessions)
        )
        form = (
            ""
            if view.is_by_person or view.file == PARTICIPANTS
            else _row_names_clause(source / view.file)
        )
    except DataError:
        return Understanding()
    rows = [row for _, row, _ in read if not isinstance(row, DataError)]
    found = [_cells(name, column, rows) for name, column in view.single_columns]
    some = [each for each in found if each.is_odd] + [each for each in found if not each.is_odd]
    shown = "; ".join(each.words for each in some[:_NAMED])
    more = f"; {len(found) - _NAMED} more columns" if found[_NAMED:] else ""
    labels = [person_of(label) for label, row, _ in read if not isinstance(row, DataError)]
    strange = _rows_without_participant(source, view, tables, labels)
    finding = f"{view.file}, {count(len(rows), 'row')}{form}: {shown}{more}"
    return Understanding((Fact(f"view '{view.name}'", finding),), tuple(strange))


def _rows_without_participant(
    source: Path, view: TableView, tables: SiteTables, labels: Sequence[str]
) -> Iterator[str]:
    """Yield a warning if rows of a view's own table match neither a folder nor participants.tsv.

    Nothing is said if the data set names no participant elsewhere.
    """
    if view.file == PARTICIPANTS or view.is_by_person:
        return
    known = everybody_in(source, tables)
    strange = sorted({label for label in labels if not known.knows(label)})
    if strange and known.all():
        yield Serious(
            f"{view.file}: every row must match a folder or a row of {PARTICIPANTS}, and "
            f"{count(len(strange), 'participant')} of {len(set(labels))} "
            f"({', '.join(map(repr, strange[:_NAMED]))}{', …' if strange[_NAMED:] else ''}) "
            f"{'matches' if len(strange) == 1 else 'match'} none. Correct the labels. Otherwise "
            "participants are not excluded and charged as intended."
        )


class _Cells(NamedTuple):
    """Summary of a column's cells."""

    words: str
    is_odd: bool


def _cells(name: str, column: Column, rows: Sequence[Row]) -> _Cells:
    """Summarize a column: its range or levels, and its missing, odd and clipped cells."""
    cells = [row[name] for row in rows]
    usable = [cell for cell in cells if encode_cell(cell, column) is not None]
    other = [cell for cell in cells if encode_cell(cell, column) is None]
    missing = sum(not is_given(cell) or cell == CODED for cell in other)
    odd = Counter(cell for cell in other if is_given(cell) and cell != CODED)
    parts = [f"{missing} missing"] if missing else []
    if odd:
        shown = ", ".join(f"'{cell[:20]}'" for cell, _ in odd.most_common(_NAMED))
        parts.append(f"{sum(odd.values())} odd ({shown})")
    beyond = sum(_is_beyond(cell, column) for cell in usable)
    parts += [f"{beyond} beyond the limits"] if beyond else []
    return _Cells(", ".join([f"{name} {_range(usable, column)}", *parts]), bool(parts))


def _range(cells: Sequence[str], column: Column) -> str:
    """Return the smallest and the largest number, or the levels with their numbers of cells."""
    if column.levels:
        counts = Counter(cells)
        return ", ".join(f"{counts[level]} {level}" for level in column.levels)
    numbers = [value for value in map(number_of, cells) if value is not None]
    return f"{min(numbers):.4g} to {max(numbers):.4g}" if numbers else "without numbers"


def _is_beyond(cell: str, column: Column) -> bool:
    value = number_of(cell)
    if value is None or column.levels or column.low is None or column.high is None:
        return False
    return not column.low <= value <= column.high


def _some(names: Sequence[str]) -> str:
    """Return the first names and the last one."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMED - 1])}, …, {names[-1]}"
