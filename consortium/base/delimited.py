"""Reading of delimited text tables. No cell is assigned to another column or row.

The standard ``csv`` module parses the cells in strict mode. This module adds the checks that it
leaves to its caller: the encoding, the separator, and the width of every row compared with the
header's.
"""

from __future__ import annotations

import csv
import errno
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from consortium.base.near_names import known_names
from consortium.base.regular_file import regular
from consortium.errors import TableError

_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\x00")
"""Bytes in the beginning of a file in UTF-16 or UTF-32, with or without its mark."""
_HEAD = 4
"""Number of bytes that decide about the encoding: within the header, so no row decides."""
KEPT_COLUMN = "kept_at_the_hospital"
"""Column of tables that no study may read, such as scores that contain a hospital's mean."""
_LABELS = "participant_id"
"""Column of participants' labels in BIDS."""
_FIRST_OF_LABELS = re.compile(
    r"(lh|rh)\.\S+|Measure:\S+|subj(ect)?_?(id)?|participants?|src_subject_id", re.I
)
"""Names of a first column of labels: of aparcstats2table, asegstats2table, ENIGMA and others."""
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u200e\u200f\u2060"))
_WORD = re.compile(r"[\w.-]+")
_TABLES = ".tsv", ".csv", ".txt"
"""Ends of the names of tables."""
_LONGEST_CELL = (1 << 31) - 1


class TableRow(NamedTuple):
    """One row of a delimited text file."""

    line: int
    """Number of the line in the file where the row begins, counted from 1."""
    cells: Sequence[str]
    """As many as the header has, in its order, unless the row is in trouble."""
    trouble: TableError | None = None
    """Why the cells can't be assigned to columns, or can't be read."""


class DelimitedTable:
    """An open delimited text file with a header.

    Parameters
    ----------
    path : Path
        The file, for errors.
    lines : iterable of str
        Its lines with their line ends.
    again : callable, optional
        Returns the lines once more. With it, the table may have row names.

    Raises
    ------
    TableError
        If the header can't be read, or while `rows` are read: a row has another width than the
        header, or a quoted cell is not closed or is followed by other text. If the table has a
        column that marks it as one that no study may read.
    """

    def __init__(
        self,
        path: Path,
        lines: Iterable[str],
        again: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        self.path = path
        self._again = again
        self._source = _Remembered(lines)
        first = self._source.peek()
        self._separator = "\t" if "\t" in first or "," not in first else ","
        csv.field_size_limit(_LONGEST_CELL)
        self._line = 0
        found = next(self._parsed(), None)
        if found is not None and found.trouble is not None:
            raise found.trouble
        cells = [] if found is None else found.cells
        names = [_plain_name(cell) for cell in cells]
        self._widest = len(names)
        while names and not names[-1]:
            names.pop()
        self.header: tuple[str, ...] = tuple(names)
        self.label_column = _label_column(names)
        """Name of the column of participants' labels; None if the table has none."""
        self.has_row_names = False
        if re.fullmatch(r"sep=.?", first.strip().strip('"')):
            raise TableError(
                path,
                "header",
                f"line 1 must name the columns, and it is '{first.strip()}'. Delete line 1.",
                line=1,
            )
        if KEPT_COLUMN in names:
            raise TableError(
                path,
                "kept",
                "a table of scores must not be used as data, because its participants depend on "
                "each other. Use the values that the scores were computed from.",
                line=1,
            )
        if len(names) == 1 and ";" in names[0]:
            raise TableError(
                path,
                "separator",
                "the cells must be separated by tabs or commas, and line 1 has "
                "semicolons. Export the table again with tabs, and with decimal points.",
                line=1,
            )

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows that have any cell with content; raises the first row's `trouble`."""
        for row in self.every_row():
            if row.trouble is not None:
                raise row.trouble
            yield row

    def every_row(self) -> Iterator[TableRow]:
        """Yield the rows that have any cell with content, also those that have `trouble`.

        A quoted cell that is not closed is trouble of its own line only: the lines after it are
        read as rows of their own.

        A row name without a name in the header, as ``write.table`` of R writes it, is dropped. In a
        table of participants each row is judged by its own cells: no participant decides how
        another one is read. Other tables have row names if every row has one cell more than the
        header.
        """
        many = len(self.header)
        first = self.label_column is None
        for row in self._parsed():
            if row.trouble is not None:
                yield row
                continue
            width = len(row.cells)
            if first and width == self._widest + 1:
                self.has_row_names = self._all_have_names()
            first = False
            if width == self._widest + 1 and self._is_shifted(row.cells):
                self.has_row_names = True
                yield TableRow(row.line, row.cells[1 : 1 + many])
            elif self.has_row_names and self.label_column is None:
                yield TableRow(row.line, row.cells[1 : 1 + many])
            elif many <= width <= self._widest:
                yield TableRow(row.line, row.cells[:many])
            else:
                yield TableRow(row.line, row.cells, self._wrong_width(row))

    def _is_shifted(self, cells: Sequence[str]) -> bool:
        """Return whether a participant's label (``sub-``) is one column too far."""
        if self._again is None or self.label_column is None:
            return False
        place = self.header.index(self.label_column)
        labelled = [cell.strip().lower().startswith("sub-") for cell in cells[place : place + 2]]
        return labelled == [False, True]

    def _all_have_names(self) -> bool:
        """Return whether every row has one cell more than the header, read again from the start.

        Raises TableError if the last cell of every row is empty, since a separator at the end of
        the rows looks the same as row names.
        """
        if self._again is None:
            return False
        has_last = False
        for row in DelimitedTable(self.path, self._again())._parsed():
            if row.trouble is None and len(row.cells) != self._widest + 1:
                return False
            has_last = has_last or bool(row.cells[-1].strip())
        if not has_last:
            raise TableError(
                self.path,
                "width",
                f"every row must have {self._widest} cells like the header, and all have one more, "
                "whose last cell is empty. Delete the separator at the end of the rows, or name "
                "the column of row names in the header.",
            )
        return True

    def _parsed(self) -> Iterator[TableRow]:
        """Yield every row that is not blank, with the line where it begins."""
        reader = self._new_reader()
        while True:
            self._source.forget()
            begins = self._line + 1
            try:
                cells = next(reader)
                trouble = self._swallowed_row(begins, cells)
            except StopIteration:
                return
            except csv.Error as error:
                trouble = self._unparsed(begins, error)
            if trouble is not None:
                cells = self._source.first_line_only().split(self._separator)
                cells = [cell.strip().strip('"') for cell in cells]
                reader = self._new_reader()
            self._line += len(self._source.kept)
            if any(cell.strip() for cell in cells):
                yield TableRow(begins, cells, trouble)

    def _new_reader(self) -> Iterator[list[str]]:
        return csv.reader(
            self._source,
            delimiter=self._separator,
            strict=True,
            skipinitialspace=self._separator == ",",
        )

    def _swallowed_row(self, begins: int, cells: Sequence[str]) -> TableError | None:
        """Return an error if a quoted cell may contain another row.

        A line within the cell looks like a row if it has as many cells, and the first is one word,
        with a digit if the row's own first cell has one.
        """
        if len(cells) <= 1:
            return None
        needs_digit = _has_digit(cells[0])
        for number, line in enumerate(self._source.kept[1:], start=begins + 1):
            first = line.partition(self._separator)[0].strip().strip('"')
            is_label = bool(_WORD.fullmatch(first)) and (_has_digit(first) or not needs_digit)
            if is_label and line.count(self._separator) == len(cells) - 1:
                return TableError(
                    self.path,
                    "quotes",
                    f"a quoted cell that begins in line {begins} must end "
                    f"before the next row, and line {number} looks like a row. Close the quote, or "
                    "remove the line break from the cell.",
                    line=begins,
                )
        return None

    def _unparsed(self, line: int, error: csv.Error) -> TableError:
        if "NUL" in str(error):
            return wrong_encoding(self.path)
        return TableError(
            self.path,
            "quotes",
            f"a cell in quotes must end with a quote and a separator, and a "
            f"cell that begins in line {line} does not. Correct its quotes.",
            line=line,
        )

    def _wrong_width(self, row: TableRow) -> TableError:
        return TableError(
            self.path,
            "width",
            f"every row must have {self._widest} cells like the header, and line {row.line} has "
            f"{len(row.cells)}. Correct the line, or export the table again.",
            line=row.line,
        )


def _label_column(names: Sequence[str]) -> str | None:
    if _LABELS in names:
        return _LABELS
    return names[0] if names and _FIRST_OF_LABELS.fullmatch(names[0]) else None


@contextmanager
def open_table(path: Path, most: int, *, row_names: bool = True) -> Iterator[DelimitedTable]:
    """Open a table in UTF-8 for reading row by row.

    Bytes that are not UTF-8 become lone surrogates (``surrogateescape``), since columns that a
    study does not use may contain anything; `is_torn` finds them.

    Parameters
    ----------
    path : Path
        A regular file with a header line. Cells are separated by tabs, or by commas where the
        header has no tab. Cells may be quoted as in RFC 4180.
    most : int
        Largest size in bytes.
    row_names : bool
        Whether a column of row names without a name in the header is accepted.

    Raises
    ------
    TableError
        If the file is missing, can't be read, is too large or has another encoding, each with a
        ``kind`` of its own, and as `DelimitedTable`.
    DataError
        If the path is a pipe, a device or a folder.
    """
    try:
        if regular(path).stat().st_size > most:
            raise TableError(
                path,
                "size",
                f"a table must have at most {most} bytes, and this one has more. "
                "Split it, or delete columns that no study uses.",
            )
        with path.open("rb") as file:
            _check_encoding(path, file.read(_HEAD))
        with ExitStack() as files:

            def lines() -> Iterable[str]:
                return files.enter_context(
                    path.open(newline="", encoding="utf-8-sig", errors="surrogateescape")
                )

            yield DelimitedTable(path, lines(), lines if row_names else None)
    except OSError as error:
        raise _not_opened(path, error) from error


def table_in(path: Path, content: bytes) -> DelimitedTable:
    """Return the table in the content of a file, as `open_table` does.

    Parameters
    ----------
    path : Path
        The file, for errors.
    """
    _check_encoding(path, content[:_HEAD])

    def lines() -> Iterable[str]:
        file = io.BytesIO(content)
        return io.TextIOWrapper(file, newline="", encoding="utf-8-sig", errors="surrogateescape")

    return DelimitedTable(path, lines(), lines)


def _check_encoding(path: Path, head: bytes) -> None:
    if head.startswith(_OTHER_ENCODINGS[:2]) or _OTHER_ENCODINGS[2] in head:
        raise wrong_encoding(path)


def wrong_encoding(path: Path, where: str = "") -> TableError:
    """Return the error for a table that is not encoded as UTF-8."""
    place = where or "its bytes are of another encoding"
    return TableError(
        path, "encoding", f"a table must be encoded as UTF-8, and {place}. Save it again as UTF-8."
    )


def is_torn(text: str) -> bool:
    """Return whether a text contains bytes that are not UTF-8, as `open_table` represents them."""
    return not text.isascii() and any("\udc80" <= letter <= "\udcff" for letter in text)


def _not_opened(path: Path, error: OSError) -> TableError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return TableError(
            path,
            "absent",
            "a table is required here, and no file has this name. Put it there, or "
            f"correct its name.{_tables_beside(path)}",
        )
    return TableError(
        path,
        "unreadable",
        f"the table must be readable, and opening it fails "
        f"({error.strerror or 'input error'}). Check its rights and its disk.",
    )


def _tables_beside(path: Path) -> str:
    """Return the tables in the folder of a missing one, in a sentence after a space, or nothing.

    Tables of a single participant are left out.
    """
    with suppress(OSError):
        names = [each.name for each in sorted(path.parent.iterdir()) if each.suffix in _TABLES]
        names = [name for name in names if not name.startswith("sub-")]
        return f" {known_names(path.name, names)}" if names else ""
    return ""


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _plain_name(cell: str) -> str:
    """Return a header cell without white space and invisible characters at its ends."""
    return cell.translate(_INVISIBLE).strip() if not cell.isascii() else cell.strip()


class _Remembered(Iterator[str]):
    """Lines of a file, with a copy of those read since the last call of `forget`."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._ahead: deque[str] = deque()
        self.kept: list[str] = []

    def peek(self) -> str:
        """Return the first line that is not blank, without reading past it."""
        for line in self._lines:
            self._ahead.append(line)
            if line.strip():
                return line
        return ""

    def forget(self) -> None:
        self.kept = []

    def first_line_only(self) -> str:
        """Return the first line that is kept; those after it will be read again."""
        self._ahead.extendleft(reversed(self.kept[1:]))
        del self.kept[1:]
        return self.kept[0]

    def __next__(self) -> str:
        line = self._ahead.popleft() if self._ahead else next(self._lines)
        self.kept.append(line)
        return line
