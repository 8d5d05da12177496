"""Tables of participants, one row each: those of BIDS, and of FreeSurfer and ENIGMA.

A participant's value of a column becomes entries of a feature vector.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.base.atomic import path_in_folder
from consortium.base.delimited import DelimitedTable, TableRow, is_torn, open_table, wrong_encoding
from consortium.errors import DataError, TableError
from consortium.views.column import Column
from consortium.views.table import TableView
from site_agent.advice import exact_labels, missing_column
from site_agent.data.personal import person_table_rows, personal_files
from site_agent.data.survey import Reason, SkippedPerson
from site_agent.data.wording import AS_WRITTEN, CODED, PARTICIPANTS, Wording, is_given, number_of
from site_agent.labels import (
    SESSION,
    Spellings,
    canonical_label,
    is_summary,
    plain_label,
    session_label,
    without_folders,
)

IDENTIFIER = "participant_id"
_SESSIONS = ("session_id", "session")
_OWN_SESSION = re.compile(r"_ses-([A-Za-z0-9]+)", re.IGNORECASE)
_FILE = re.compile(r"(sub-[^_]+)_\S*\.(nii|gii|mg[hz]|tsv|json|set|edf|bdf|vhdr|fif)(\.gz)?", re.I)
"""Name of a participant's file, where a table names files and not participants."""
SESSIONS_TABLE = "_sessions.tsv"
"""End of the name of a participant's own table of sessions."""
_SESSION = re.compile(r"(sub-[^_]+)_[A-Za-z]+-.*", re.I)
"""A participant's name, followed by a session or another entity of BIDS."""
MOST_BYTES = 200_000_000
"""Largest table; a hundred thousand participants with two hundred columns need about this."""
MOST_BYTES_OF_RUN = 50_000_000
"""Largest table of one participant's recording."""

Vector = NDArray[np.float64]
Row = Mapping[str, str]


def read_table(
    folder: Path, view: TableView, wording: Wording = AS_WRITTEN, *, by_session: bool = False
) -> tuple[dict[str, Vector], dict[str, SkippedPerson]]:
    """Read a view's vectors from its table.

    Parameters
    ----------
    folder : Path
        The site's data set.
    wording : Wording
        How cells are read.
    by_session : bool
        Whether each session of a participant is a row, by label and session (`row_of_session`).

    Returns
    -------
    vectors : dict of str to array, shape (D_view,)
        By the participant's label, without ``sub-``.
    lacking : dict of str to SkippedPerson
        Participants of the table with a missing value, ``no-view``; with a value that the study's
        levels exclude, ``does-not-fit``; or with a file of their own that can't be used,
        ``unusable``.

    Raises
    ------
    TableError
        If the table is missing, can't be read, or lacks a column.
    """
    vectors: dict[str, Vector] = {}
    lacking: dict[str, SkippedPerson] = {}
    columns = view.single_columns
    ambiguous: set[str] = set()
    for label, row, path in view_rows(folder, view, wording, by_session=by_session):
        if isinstance(row, DataError):
            lacking[label] = SkippedPerson(label, "unusable", str(row))
            ambiguous |= {label} if is_contradiction(row) else set()
            continue
        vector = encoded_vector([row[name] for name, _ in columns], view)
        if isinstance(vector, int):
            lacking[label] = _lack(label, row, view, path)
        else:
            vectors[label] = vector
    if ambiguous:
        vectors = {row: own for row, own in vectors.items() if person_of(row) not in ambiguous}
    return vectors, lacking


def view_rows(
    folder: Path, view: TableView, wording: Wording, *, by_session: bool = False
) -> Iterator[tuple[str, Row | DataError, Path]]:
    """Yield every participant's label, cells and file of a view.

    An error in place of cells is about a file of this participant only. Raises errors as
    `read_table`.
    """
    names = [name for name, _ in view.single_columns]
    if by_session and view.is_by_person and view.file.endswith(SESSIONS_TABLE):
        for label, path in personal_files(folder, view.file):
            if os.path.lexists(path):  # False also in a folder that can't be opened
                yield from _own_sessions(label, path, names, wording)
        return
    if view.is_by_person:
        yield from person_table_rows(folder, view, wording, by_session=by_session)
        return
    own = wording.tables.participants if view.file == PARTICIPANTS else None
    path = own or _path(folder, view.file)
    for label, row in rows_or_errors(path, names, wording, by_session=by_session):
        yield label, row, path


def is_contradiction(error: DataError) -> bool:
    """Return whether an error is about two rows of one participant, which are both unusable."""
    return isinstance(error, TableError) and error.kind in ("duplicate", "spelling")


def row_of_session(label: str, session: str) -> str:
    """Return the name of a session's row in a participants' table."""
    own = session_label(session)
    return f"{label}{SESSION}{own}" if own else label


def person_of(row: str) -> str:
    """Return the label of the participant of a table's row."""
    return row.partition(SESSION)[0]


def _own_sessions(
    label: str, path: Path, names: Sequence[str], wording: Wording
) -> Iterator[tuple[str, Row | DataError, Path]]:
    """Yield the rows of a participant's own table, or the error that it leads to."""
    try:
        rows = [(row, cells, path) for row, cells in _sessions(label, path, names, wording)]
    except DataError as error:
        yield label, error, path
    else:
        yield from rows


def _sessions(
    label: str, path: Path, names: Sequence[str], wording: Wording
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a participant's own table, each with its session."""
    wanted = {name: wording.column(name) for name in names}
    seen: set[str] = set()
    with open_table(path, MOST_BYTES_OF_RUN) as table:
        for name in (_SESSIONS[0], *wanted.values()):
            _check_column(table, name)
        named = table.header.index(IDENTIFIER) if IDENTIFIER in table.header else None
        for each in table.rows():
            if named is not None and canonical_label(each.cells[named]) != canonical_label(label):
                raise TableError(
                    path,
                    "label",
                    f"{IDENTIFIER} must be sub-{label} as in the path, and another label is given. "
                    "Correct it, or move the file to its participant's folder.",
                    each.line,
                )
            row = _by_name(table, each)
            torn = _torn_cell(path, each, row, (_SESSIONS[0], *wanted.values()))
            if torn is not None:
                raise torn
            session = row_of_session(label, row[_SESSIONS[0]])
            if session in seen:
                raise TableError(
                    path,
                    "duplicate",
                    "every session must have one row, and this one occurs twice. Delete one of "
                    "its rows.",
                    each.line,
                )
            seen.add(session)
            if session != label:
                yield session, {n: wording.cell(n, row[own]) for n, own in wanted.items()}


def _lack(label: str, row: Row, view: TableView, path: Path) -> SkippedPerson:
    """Return why a participant has no vector: missing values, or the study's levels and codes."""
    columns = view.single_columns
    missed = [
        (row[name], name, column)
        for name, column in columns
        if encode_cell(row[name], column) is None
    ]
    absent = [
        each for each in missed if each[0] != CODED and not (each[2].levels and is_given(each[0]))
    ]
    enough = len(absent) <= view.most_missing * len(columns)
    reason: Reason = "does-not-fit" if enough else "no-view"
    return SkippedPerson(label, reason, f"{path}: {missing_sentence(*(absent or missed)[0])}.")


def person_rows(
    table: Path,
    columns: Iterable[str],
    wording: Wording = AS_WRITTEN,
    among: Spellings | None = None,
    *,
    by_session: bool = False,
    row_names: bool = True,
) -> Iterator[tuple[str, Row]]:
    """Yield every participant's label and cells, as `rows_or_errors`; raises the errors."""
    read = rows_or_errors(
        table, columns, wording, among, by_session=by_session, row_names=row_names
    )
    for label, row in read:
        if isinstance(row, DataError):
            raise row
        yield label, row


def rows_or_errors(
    table: Path,
    columns: Iterable[str],
    wording: Wording = AS_WRITTEN,
    among: Spellings | None = None,
    *,
    by_session: bool = False,
    row_names: bool = True,
) -> Iterator[tuple[str, Row | DataError]]:
    """Yield every participant's label, without ``sub-``, with their cells of some columns.

    An error in place of cells is about the row of this participant only. If two rows of a
    participant differ in cells or in the spelling of the label, neither can be used, although the
    first one was yielded before (`is_contradiction`). An error about a row whose participant is
    unclear is yielded under a name that is not a participant's, such as ``(line 7)``.

    Parameters
    ----------
    table : Path
        A table as `consortium.base.delimited.open_table` reads it, with a column of labels. A label
        that continues with a session, as FreeSurfer's do (``sub-01_ses-2``), is its participant's.
    columns : iterable of str
        The study's names of the columns.
    among : Spellings, optional
        Participants whose rows are yielded, by this spelling of their labels; all if not given.
    by_session : bool
        Whether each session is a row, by the label or by a column session_id.
    row_names : bool
        Whether the table may have a column of row names without a name.

    Raises
    ------
    TableError
        If the table is missing, can't be read, or lacks a column.
    """
    wanted = {name: wording.column(name) for name in columns}
    with open_table(table, MOST_BYTES, row_names=row_names) as opened:
        identifier = _identifier(opened)
        for name in wanted.values():
            _check_column(opened, name)
        seen = _SeenRows(table, exact=wording.tables.exact_labels)
        used = identifier, *wanted.values()
        for each in opened.every_row():
            written = _person(_label_cell(opened, each, identifier))
            if written and among is not None and not among.knows(written):
                continue
            label = written if among is None or not written else among.spelled(written)
            if each.trouble is not None:
                yield label or _nobody(each), each.trouble
                continue
            row = _by_name(opened, each)
            if (torn := _torn_cell(table, each, row, used)) is not None:
                unclear = not written or is_torn(row[identifier])
                yield _nobody(each) if unclear else label, torn
                continue
            found = {name: wording.cell(name, row[own]) for name, own in wanted.items()}
            session = _session_of(row, identifier) if by_session else ""
            if not written:
                if any(map(is_given, found.values())):
                    yield _nobody(each), _without_label(opened, each, identifier)
                continue
            outcome = seen.compare(each.line, written, session, found)
            if isinstance(outcome, TableError):
                first = seen.spelled(written)
                yield first if among is None else among.spelled(first), outcome
            elif outcome:
                yield row_of_session(label, session) if session else label, found


def _nobody(row: TableRow) -> str:
    """Return a name for a row of unclear participant, which is not a participant's label."""
    return f"(line {row.line})"


def is_nobodys(label: str) -> bool:
    """Return whether a row's name in a participants' table leaves its participant unclear."""
    return label.startswith("(line ")


def _label_cell(table: DelimitedTable, each: TableRow, identifier: str) -> str:
    """Return a row's cell of the label; empty if the row leaves it unclear."""
    place = table.header.index(identifier)
    if each.trouble is not None and (place or not each.cells[0].strip()):
        return ""
    return each.cells[place]


class _SeenRows:
    """The rows of a table that were read, to count no participant twice."""

    def __init__(self, path: Path, *, exact: bool) -> None:
        self._path = path
        self._labels = Spellings(exact=exact)
        self._seen: dict[str, tuple[int, int, str]] = {}

    def spelled(self, written: str) -> str:
        """Return a label as it is written in the participant's first row."""
        return self._labels.spelled(written)

    def compare(self, line: int, written: str, session: str, found: Row) -> TableError | bool:
        """Return whether a row is the first of its participant, or of the participant's session.

        Returns an error if an earlier row has other cells or another spelling of the label, or the
        row is not a participant's.
        """
        self._labels.spelled(written)
        if found and is_summary(written) and not self._labels.exact:
            return TableError(
                self._path,
                "summary",
                f"every row must be of one participant, and '{written}' looks like a row of means "
                f"or of a template. Delete it, or {exact_labels()} if it is one participant's.",
                line,
            )
        key = (
            row_of_session(self._labels.key(written), session)
            if session
            else self._labels.key(written)
        )
        cells = hash(tuple(found.values()))
        first, before, spelled = self._seen.setdefault(key, (line, cells, written))
        if first == line:
            return True
        if spelled != written:
            return TableError(
                self._path,
                "spelling",
                f"'{written}' and '{spelled}' of line {first} are one participant in two "
                "spellings, and a participant must have one row. Delete one of the rows, or "
                f"{exact_labels()} if they are two participants.",
                line,
            )
        if cells != before:
            return TableError(
                self._path,
                "duplicate",
                f"a participant must have one row, and line {first} is of the same participant "
                f"with other values of {_listed(found)}. Delete one of the rows.",
                line,
            )
        return False


def _by_name(table: DelimitedTable, row: TableRow) -> dict[str, str]:
    return dict(zip(table.header, row.cells, strict=True))


def _without_label(table: DelimitedTable, each: TableRow, identifier: str) -> TableError:
    """Return the error about a row with values and without a label."""
    return TableError(
        table.path,
        "label",
        f"every row must have a label in column {identifier}, and this "
        "one has none. Add it, or delete the row.",
        each.line,
    )


def _torn_cell(table: Path, each: TableRow, row: Row, used: Iterable[str]) -> TableError | None:
    """Return an error if a used cell has bytes that are not UTF-8; others may contain anything."""
    for name in used:
        if not row[name].isascii() and is_torn(row[name]):
            return wrong_encoding(table, f"line {each.line}, column '{name}' has other bytes")
    return None


_NAMED = 5


def _listed(names: Iterable[str]) -> str:
    first = [*names]
    return ", ".join(first[:_NAMED]) + (", …" if first[_NAMED:] else "")


def given_in(table: Path, labels: Spellings) -> dict[str, dict[str, str]]:
    """Return the cells with content of some participants, by column and by the label's spelling.

    Raises TableError if the table is missing, can't be read, or has no column of labels.
    """
    with open_table(table, MOST_BYTES) as opened:
        identifier = _identifier(opened)
        own = [name for name in opened.header if name != identifier and not is_torn(name)]
        given: dict[str, dict[str, str]] = {name: {} for name in own}
        for each in opened.rows():
            row = _by_name(opened, each)
            label = _person(row[identifier])
            if label and labels.knows(label):
                for name in own:
                    if is_given(row[name]):
                        given[name][labels.spelled(label)] = row[name].strip()
    return given


def column_names(table: Path) -> tuple[str, ...]:
    """Return the names in a table's header; raises TableError as `person_rows`."""
    with open_table(table, MOST_BYTES) as opened:
        return opened.header


def _person(identifier: str) -> str:
    """Return the label of a row's participant; two sessions are not two participants."""
    if "_" not in identifier:
        return plain_label(identifier)
    name = without_folders(identifier.strip())
    of_file = _FILE.fullmatch(name) or _SESSION.fullmatch(name)
    return plain_label(of_file[1] if of_file else _OWN_SESSION.split(name)[0])


def _session_of(row: Row, identifier: str) -> str:
    """Return the session of a row, from its own column or from the label; empty if it has none."""
    column = next((row[name] for name in _SESSIONS if name in row), None)
    if is_given(column):
        return (column or "").strip()
    named = _OWN_SESSION.search(row[identifier])
    return named[1] if named else ""


def read_lines(path: Path) -> list[Sequence[str]]:
    """Read the table of one recording: the header first, then the rows with any content.

    Raises TableError if it is missing, can't be read, is larger than `MOST_BYTES_OF_RUN`, contains
    a byte that is not UTF-8, or a row has another width than the header.
    """
    with open_table(path, MOST_BYTES_OF_RUN) as table:
        rows = [table.header, *(row.cells for row in table.rows())]
    if not table.header:
        raise TableError(
            path,
            "empty",
            "a table with a header line is required, and the file is empty. Write it again.",
        )
    if any(is_torn(cell) for row in rows for cell in row):
        raise wrong_encoding(path)
    return rows


def _path(folder: Path, name: str) -> Path:
    # The study file comes from the coordinator: it must not point at the site's other files.
    try:
        return path_in_folder(folder, name)
    except ValueError as error:
        raise DataError(
            f"The study's table {name} is not in the site's data set. Give a relative path."
        ) from error


def _identifier(table: DelimitedTable) -> str:
    """Return the name of the column of labels; raises TableError if there is none."""
    name = table.label_column or IDENTIFIER
    _check_column(table, name)
    return name


def _check_column(table: DelimitedTable, name: str) -> None:
    """Refuse a table that does not have a column exactly once."""
    many = table.header.count(name)
    if many == 1:
        return
    if many:
        raise TableError(
            table.path,
            "column",
            f"a table must have one column '{name}', and line 1 names {many}. Rename the others.",
        )
    if any(map(is_torn, table.header)):
        raise wrong_encoding(table.path, f"line 1 has other bytes and no column '{name}'")
    raise TableError(table.path, "column", missing_column(name, table.header), 1)


def encode_cell(text: str | None, column: Column) -> tuple[float, ...] | None:
    """Return the entries of a value, between -1 and 1, or None if it is not usable.

    They depend on the participant's own value and the public limits only. An infinite number is not
    usable.
    """
    value = (text or "").strip()
    if column.levels:
        if value not in column.levels:
            return None
        place = column.levels.index(value)
        if len(column.levels) == 2:
            return (2.0 * place - 1.0,)
        return tuple(float(place == k) for k in range(len(column.levels)))
    number = number_of(value)
    low = column.low
    high = column.high
    if number is None or low is None or high is None:
        return None
    return (2.0 * (min(max(number, low), high) - low) / (high - low) - 1.0,)


def encoded_vector(texts: Sequence[str | None], view: TableView) -> NDArray[np.float64] | int:
    """Return a participant's vector, with NaN where a value is missing that may be missing.

    Returns
    -------
    array or int
        The index of the first missing column, if more are missing than the view allows.
    """
    columns = [column for _, column in view.single_columns]
    values = [encode_cell(text, column) for text, column in zip(texts, columns, strict=True)]
    if values.count(None) > view.most_missing * len(values):
        return values.index(None)
    found = [
        (math.nan,) * len(column.labels("")) if value is None else value
        for value, column in zip(values, columns, strict=True)
    ]
    return np.array([x for value in found for x in value])


_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")


def missing_sentence(text: str | None, name: str, column: Column) -> str:
    """Return why a table's value can't be used, without the value itself."""
    if text == CODED:
        return f"column {name} has a value that is a code for missing in the study"
    if not is_given(text):
        return f"column {name} has no value"
    if column.levels:
        levels = ", ".join(column.levels)
        return (
            f"column {name} has a value that is not a level of the study ({levels}) and is not "
            "named in aliases of site.yaml"
        )
    if _DECIMAL_COMMA.fullmatch((text or "").strip()):
        return f"column {name} has a number with a decimal comma, and a decimal point is required"
    return f"column {name} has no number, but the study requires one"
