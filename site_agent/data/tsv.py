"""Tables of persons, one line each: those of BIDS, and of FreeSurfer and ENIGMA.

A person's value of a column becomes entries of a feature vector.
"""

import csv
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.base.atomic import path_in_folder
from consortium.base.regular_file import regular
from consortium.errors import DataError
from consortium.views.column import Column
from consortium.views.table import TableView
from site_agent.data.personal import person_table_rows, personal_files
from site_agent.data.survey import Reason, SkippedPerson
from site_agent.data.wording import AS_WRITTEN, CODED, Wording, is_given, nearest_name

IDENTIFIER = "participant_id"
SESSION = "_ses-"
"""Between a participant's label and a session's, in the name of a row."""
_SESSIONS = ("session_id", "session")
_OWN_SESSION = re.compile(r"_ses-([A-Za-z0-9]+)")
SESSIONS_TABLE = "_sessions.tsv"
"""End of the name of a participant's own table of sessions."""
_FIRST = re.compile(
    r"(lh|rh)\.\S+|Measure:\S+|subj(ect)?_?(id)?|participants?|src_subject_id", re.I
)
"""A first column that names persons: of aparcstats2table, asegstats2table, ENIGMA's and others."""
_SESSION = re.compile(r"sub-([^_]+)_[A-Za-z]+-.*")
"""A person's name with a session or another of BIDS's entities behind it."""
MOST_BYTES = 200_000_000
"""Of a table; a hundred thousand persons with two hundred columns take about this."""
MOST_BYTES_OF_RUN = 50_000_000
"""Of a table that belongs to one person's recording."""

_NAMED = 5
_TORN = re.compile("[\udc80-\udcff]")
_ANY = "tab-separated UTF-8"

Vector = NDArray[np.float64]
Row = Mapping[str, str | None]


def read_table(
    folder: Path, view: TableView, wording: Wording = AS_WRITTEN, *, by_session: bool = False
) -> tuple[dict[str, Vector], dict[str, SkippedPerson]]:
    """Read a view's vectors from its table.

    Raises DataError if the table is not there, can't be read, or lacks a column.

    Parameters
    ----------
    folder : Path
        The site's data set.
    wording : Wording
        How cells are read.
    by_session : bool
        Whether each session of a person is a row, by label and session (`row_of_session`).

    Returns
    -------
    vectors : dict of str to array, shape (D_view,)
        By person's label, without ``sub-``.
    lacking : dict of str to Skipped
        Persons of the table who lack a value, ``no-view``, or have one that the study's levels
        leave out, ``does-not-fit``.
    """
    vectors: dict[str, Vector] = {}
    lacking: dict[str, SkippedPerson] = {}
    columns = view.single_columns
    for label, row, path in view_rows(folder, view, wording, by_session=by_session):
        vector = encoded_vector([row[name] for name, _ in columns], view)
        if isinstance(vector, int):
            lacking[label] = _lack(label, row, view, path)
        else:
            vectors[label] = vector
    return vectors, lacking


def view_rows(
    folder: Path, view: TableView, wording: Wording, *, by_session: bool = False
) -> Iterator[tuple[str, Row, Path]]:
    """Yield every person's label, cells and file of a view; raises as `read_table`."""
    names = [name for name, _ in view.single_columns]
    if by_session and view.is_by_person and view.file.endswith(SESSIONS_TABLE):
        for label, path in personal_files(folder, view.file):
            if path.is_file():
                yield from (
                    (row, cells, path) for row, cells in _sessions(label, path, names, wording)
                )
        return
    if view.is_by_person:
        yield from person_table_rows(folder, view, wording, by_session=by_session)
        return
    path = _path(folder, view.file)
    for label, row in person_rows(path, names, wording, by_session=by_session):
        yield label, row, path


def row_of_session(label: str, session: str) -> str:
    """Name of a session's row; without a session the person's label."""
    return f"{label}{SESSION}{session.removeprefix('ses-')}" if session else label


def person_of(row: str) -> str:
    """Label of a row's participant."""
    return row.partition(SESSION)[0]


def _sessions(
    label: str, path: Path, names: Sequence[str], wording: Wording
) -> Iterator[tuple[str, Row]]:
    """Rows of a person's own table, each of the session that its first column names."""
    wanted = {name: wording.column(name) for name in names}
    with _opened(path, MOST_BYTES_OF_RUN) as file:
        rows = _cells(file)
        header = next(rows, [])
        for name in (_SESSIONS[0], *wanted.values()):
            if header.count(name) != 1:
                raise DataError(_no_column(path, name, header))
        for number, cells in enumerate(rows, start=2):
            row = dict(zip_longest(header, cells[: len(header)]))
            _check_bytes(path, number, row, (_SESSIONS[0], *wanted.values()))
            session = (row[_SESSIONS[0]] or "").strip()
            if session:
                found = {name: wording.cell(name, row[own]) for name, own in wanted.items()}
                yield row_of_session(label, session), found


def _lack(label: str, row: Row, view: TableView, path: Path) -> SkippedPerson:
    """Why a person has no vector: for want of values, or else by the study's levels and codes."""
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
    among: Container[str] | None = None,
    *,
    by_session: bool = False,
) -> Iterator[tuple[str, Row]]:
    """Yield every person's label, without ``sub-``, with their cells of some columns.

    Cells are separated by tabs, or by commas where the first line has no tab. A name that goes on
    with a session, as FreeSurfer's do (``sub-01_ses-2``), is its person's; ``by_session`` it is a
    row of its own, as is a line with a session in a column session_id. Raises DataError if the
    table is not there, can't be read, lacks a column, or has a person twice with different cells.
    """
    seen: dict[str, tuple[int, int]] = {}
    wanted = {name: wording.column(name) for name in columns}
    with _opened(table, MOST_BYTES) as file:
        rows = _cells(file)
        header = next(rows, [])
        identifier = _check_header(table, header, wanted)
        for number, cells in enumerate(rows, start=2):
            if not cells:
                continue
            row = dict(zip_longest(header, cells[: len(header)]))
            label = _person(row[identifier])
            if among is not None and label not in among:
                continue
            if by_session and label:
                label = row_of_session(label, _session_of(row, identifier))
            _check_bytes(table, number, row, (identifier, *wanted.values()))
            found = {name: wording.cell(name, row[own]) for name, own in wanted.items()}
            if label and label not in seen:
                seen[label] = number, hash(tuple(found.values()))
                yield label, found
            elif label:
                _check_same(table, number, found, seen[label], identifier)
            elif any(map(is_given, found.values())):
                raise DataError(
                    f"{table}, line {number}: {identifier} is empty; name the line's participant."
                )


def _check_bytes(table: Path, number: int, row: Row, used: Iterable[str]) -> None:
    """Refuse bytes that are not UTF-8 in the cells that are used; others may hold anything."""
    for name in used:
        if _is_torn(row[name] or ""):
            raise DataError(
                f"{table}, line {number}, column '{name}' has a byte that is not UTF-8; correct "
                "the cell, or save the table as UTF-8."
            )


def _check_same(
    table: Path, number: int, found: Row, before: tuple[int, int], identifier: str
) -> None:
    """Refuse a second line of a person, unless it says the same as the first."""
    line, cells = before
    if hash(tuple(found.values())) != cells:
        raise DataError(
            f"{table}, line {number}: {identifier} is there twice, as in line {line} with other "
            f"values of what the study uses ({_listed(found)}); give each participant one line."
        )


def _listed(names: Iterable[str]) -> str:
    first = [*names]
    return ", ".join(first[:_NAMED]) + (", …" if first[_NAMED:] else "")


def _is_torn(text: str) -> bool:
    """Whether a text holds bytes that are not UTF-8, each as `_opened` keeps it."""
    return not text.isascii() and _TORN.search(text) is not None


def given_in(table: Path, labels: Iterable[str]) -> dict[str, dict[str, str]]:
    """What some persons have in each column, by its name and their label, whatever else it holds.

    Who has nothing in a column is not there. Raises DataError if the table is not there, can't be
    read, or names no persons.
    """
    wanted = set(labels)
    with _opened(table, MOST_BYTES) as file:
        rows = _cells(file)
        header = next(rows, [])
        identifier = _check_header(table, header, {})
        own = [name for name in header if name != identifier and not _is_torn(name)]
        given: dict[str, dict[str, str]] = {name: {} for name in own}
        for cells in rows:
            row = dict(zip_longest(header, cells[: len(header)]))
            label = _person(row[identifier])
            for name in own:
                cell = row[name]
                if label in wanted and cell is not None and is_given(cell):
                    given[name][label] = cell.strip()
    return given


def _person(identifier: str | None) -> str:
    """Label of the person whom a line is of; two sessions of one are no two persons."""
    name = (identifier or "").strip()
    session = _SESSION.fullmatch(name)
    return session[1] if session else person_of(name.removeprefix("sub-"))


def _session_of(row: Row, identifier: str) -> str:
    """Session of a line, by its own column or behind the person's name; or nothing."""
    column = next((row[name] for name in _SESSIONS if name in row), None)
    if is_given(column):
        return (column or "").strip()
    named = _OWN_SESSION.search(row[identifier] or "")
    return named[1] if named else ""


def _cells(file: Iterator[str]) -> Iterator[list[str]]:
    """Cells of each line, which is read alone: no quote of one person's reaches into another's."""
    first = next(file, "")
    tabs = "\t" in first or "," not in first
    for line in chain([first], file):
        if tabs and line:
            yield line.split("\t")
        else:
            yield from csv.reader([line], skipinitialspace=True)


def read_lines(path: Path, give: str = _ANY) -> list[list[str]]:
    """Read the table of one recording as lines of cells, the header first, without empty lines.

    Raises DataError if it can't be read, is larger than `MOST_BYTES_OF_RUN`, or is empty.

    Parameters
    ----------
    give : str
        What is wanted, for people.
    """
    with _opened(path, MOST_BYTES_OF_RUN, give, errors="strict") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row]
    if not rows:
        raise DataError(f"{path} is empty; give a table with a header line.")
    return rows


@contextmanager
def _opened(
    path: Path, most: int, give: str = _ANY, errors: str = "surrogateescape"
) -> Iterator[Iterator[str]]:
    """Lend the lines of a table of so many bytes at the most; what can't be read is one error.

    A line ends with LF or CRLF; another CR is part of its cell and begins no other person's line.
    """
    try:
        if regular(path).stat().st_size > most:
            raise DataError(f"{path} is larger than {most} bytes; split it.")
        with path.open(newline="\n", encoding="utf-8-sig", errors=errors) as file:
            yield (line.rstrip("\r\n").replace("\r", " ") for line in file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} can't be read as a table; give {give}.") from error


def _path(folder: Path, name: str) -> Path:
    # The study file comes from the coordinator: it must not point at the site's other files.
    try:
        return path_in_folder(folder, name)
    except ValueError as error:
        raise DataError(
            f"The study's table {name} is not in the site's data set; give a relative path."
        ) from error


def _check_header(path: Path, there: list[str], wanted: Mapping[str, str]) -> str:
    """Name the column of identifiers, if all that is wanted is there once."""
    identifier = IDENTIFIER
    if IDENTIFIER not in there and there and _FIRST.fullmatch(there[0].strip()):
        identifier = there[0]
    for name in (identifier, *wanted.values()):
        if there.count(name) != 1:
            raise DataError(_no_column(path, name, there))
    return identifier


def _no_column(path: Path, name: str, there: list[str]) -> str:
    if name in there:
        return f"{path} has more than one column '{name}'; correct the table or the study."
    if any(map(_is_torn, there)):
        return f"{path}, line 1 is not UTF-8 and has no column '{name}'; save the table as UTF-8."
    like = nearest_name(name, there)
    if like is None or name == IDENTIFIER:
        return f"{path} has no column '{name}'; correct the table or the study."
    return (
        f"{path} has no column '{name}', and one '{like}': if that is meant, write 'aliases: "
        f"{{{name}: {{column: {like}}}}}' into site.yaml, or correct the table or the study."
    )


def encode_cell(text: str | None, column: Column) -> tuple[float, ...] | None:
    """Entries of a value between -1 and 1; None if there is no usable value.

    Only the person's own value and the public limits go into it.
    """
    value = (text or "").strip()
    if column.levels:
        if value not in column.levels:
            return None
        place = column.levels.index(value)
        if len(column.levels) == 2:
            return (2.0 * place - 1.0,)
        return tuple(float(place == k) for k in range(len(column.levels)))
    try:
        number = float(value)
    except ValueError:
        return None
    low, high = column.low, column.high
    if math.isnan(number) or low is None or high is None:
        return None
    return (2.0 * (min(max(number, low), high) - low) / (high - low) - 1.0,)


def encoded_vector(texts: Sequence[str | None], view: TableView) -> NDArray[np.float64] | int:
    """A person's vector, not a number where a value is missing that may be.

    Returns
    -------
    array, or the place of the first column that is missing of too many
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


def missing_sentence(text: str | None, name: str, column: Column) -> str:
    """Why a value can't be used, without the value itself."""
    if text == CODED:
        return f"column {name} has a value that the study calls missing"
    if not is_given(text):
        return f"column {name} has no value"
    if column.levels:
        levels = ", ".join(column.levels)
        return f"column {name} has a value that is none of the study's levels ({levels})"
    return f"column {name} has no number, where the study wants one"
