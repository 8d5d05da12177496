"""Files of open cohorts, which `consortium open-cohort` writes and every party reads.

Anyone may have made such a file. Sizes are checked before values are read, and no objects are
loaded.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.open_cohort import OpenCohort, OpenDirections, OpenTable
from consortium.base.array import Array
from consortium.base.atomic import write_bytes
from consortium.base.delimited import table_in
from consortium.base.regular_file import regular
from consortium.errors import DataError, TableError, printable

DIRECTIONS = ".npz"
"""End of a file's name with directions of image series."""
FEWEST = 30
"""Minimum number of participants: with fewer, their variation is unknown."""
_MOST_BYTES = 400_000_000
_MOST_TABLE_BYTES = 100_000_000
"""Cells of a table take about 20 times their bytes in memory."""
_MOST_PERSONS = 10_000
_MOST_CUTOFF = 200.0
"""Longest wavelength in mm, that of a study's field."""
_MOST_SOURCE = 500
"""Characters of the source, which hospitals' people read."""
_ROUNDED = 1e-4
"""Largest difference of a product of two orthonormal columns from 0 or 1, in single precision."""
_TABLE_ENDS = ".tsv", ".csv"
_DIGITS = 5
_PARTS = "directions", "sites", "rows", "cutoff", "global_signal", "source"
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '(<[fU]\d{1,9})', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,9},? ?){0,3})\), \} *\n"
)
"""Description of an array, as numpy writes it: no other expression is evaluated."""


@dataclass(frozen=True)
class CohortBasis:
    """Basis of the directions in a file."""

    rows: str
    """SHA-256 of the meaning of image series' rows, `Space.rows_digest`."""
    cutoff: float
    """Shortest wavelength in mm; 0 for regions and voxels."""
    global_signal: Literal["keep", "remove"]
    """Whether the mean time series of all voxels was kept."""


def write_directions(
    path: Path, directions: Sequence[Array], sites: Sequence[str], basis: CohortBasis, source: str
) -> None:
    """Write a file of directions that is the same for the same content.

    Raises OutputError if it can't be written.

    Parameters
    ----------
    directions : sequence of array, each d x K
        Orthonormal columns for each participant.
    sites : sequence of str
        Where each participant was scanned, in the same order.
    source : str
        Where the data come from and under which terms.
    """
    parts: dict[str, NDArray[Any]] = {
        "directions": np.asarray(directions, dtype=np.float32),
        "sites": np.asarray(sites, dtype=np.str_),
        "rows": np.array(basis.rows),
        "cutoff": np.array(basis.cutoff),
        "global_signal": np.array(basis.global_signal),
        "source": np.array(source),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, values in parts.items():
            content = io.BytesIO()
            np.save(content, values, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())
    write_bytes(path, packed.getvalue())


def read_open_cohort(path: Path, rows: str) -> OpenCohort:
    """Read the directions, or the table, of an open cohort.

    Raises DataError if the file can't be used, or is of another grid, mesh or atlas.

    Parameters
    ----------
    rows : str
        `Space.rows_digest` of the study.
    """
    if path.name.endswith(_TABLE_ENDS):
        return _table(path)
    if path.suffix != DIRECTIONS:
        raise DataError(
            f"{path}: an open cohort must be a file of directions ({DIRECTIONS}) or a table "
            f"({' or '.join(_TABLE_ENDS)}). Name another file as analysis.open."
        )
    return read_directions(path, rows)


def _content(path: Path, most: int = _MOST_BYTES) -> bytes:
    try:
        if regular(path).stat().st_size > most:
            raise DataError(
                f"{path}: an open cohort must have at most {most:,} bytes. Use fewer "
                "participants, or a longer cutoff."
            )
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: the study's open cohort can't be read ({error.strerror}). Put the file next "
            "to the study file."
        ) from error


def read_directions(path: Path, rows: str) -> OpenDirections:
    """Read the directions of an open cohort, as `read_open_cohort`."""
    content = _content(path)
    try:
        parts = _parts(content)
        values = parts["directions"]
        sites = parts["sites"]
        signal = _signal(_text(parts["global_signal"]))
        made = CohortBasis(_text(parts["rows"]), _cutoff(parts["cutoff"]), signal)
        source = printable(_text(parts["source"]), _MOST_SOURCE)
        _check_sizes(values, sites)
        _check_orthonormal(values)
    except (KeyError, ValueError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path}: the file must be one that 'consortium open-cohort' wrote, and it is not "
            "whole. Make it again."
        ) from error
    if len(values) < FEWEST:
        raise DataError(
            f"{path}: an open cohort must have at least {FEWEST} participants, and this one has "
            f"{len(values)}. Add participants."
        )
    if twins := _twins(values):
        raise DataError(
            f"{path}: every participant of an open cohort must be another one, and number "
            f"{twins[1]} has the directions of number {twins[0]}. Remove the copy."
        )
    if made.rows != rows:
        raise DataError(
            f"{path}: the open cohort must have the study's voxels, vertices or regions, and it "
            "was made for others. Make the file again with this study."
        )
    return OpenDirections(
        values=values.astype(np.float64),
        sites=sites,
        cutoff=made.cutoff,
        global_signal=made.global_signal,
        digest=hashlib.sha256(content).hexdigest(),
        source=source,
    )


def _twins(values: NDArray[Any]) -> tuple[int, int] | None:
    """Return the numbers, from 1, of two participants with the same projector, if there are any.

    Copies would have no variance, from which the precision of the cohort follows.
    """
    seen: dict[bytes, int] = {}
    for number, each in enumerate(values, 1):
        strengths = np.round(np.square(each, dtype=np.float64).sum(axis=1), _DIGITS)
        first = seen.setdefault(strengths.tobytes(), number)
        if first != number:
            return first, number
    return None


def _parts(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an uncompressed archive; raises ValueError if one is compressed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: _array(archive, archive.getinfo(f"{name}.npy")) for name in _PARTS}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return one array, whose header decides about no memory beyond its own bytes."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError("a compressed part")
    content = archive.read(member)
    start = len(_MAGIC) + 2
    length = int.from_bytes(content[len(_MAGIC) : start], "little")
    header = _HEADER.fullmatch(content[start : start + length])
    if not content.startswith(_MAGIC) or header is None:
        raise ValueError("no array of numbers or text")
    kind = header[1].decode()
    shape = tuple(map(int, re.findall(rb"\d+", header[2])))
    values = content[start + length :]
    if "U" in kind:
        values.decode("utf-32-le")  # numpy accepts numbers that are not characters
    return np.frombuffer(values, kind).reshape(shape)


def _text(value: NDArray[Any]) -> str:
    if value.shape or value.dtype.kind != "U":
        raise ValueError("no text")
    return str(value)


def _cutoff(value: NDArray[Any]) -> float:
    cutoff = float(value)
    if not 0.0 <= cutoff <= _MOST_CUTOFF:
        raise ValueError("no wavelength")
    return cutoff


def _signal(word: str) -> Literal["keep", "remove"]:
    if word == "keep":
        return "keep"
    if word == "remove":
        return "remove"
    raise ValueError("neither keep nor remove")


def _check_sizes(values: Array, sites: NDArray[Any]) -> None:
    if values.ndim != 3 or not 0 < values.shape[2] <= values.shape[1]:
        raise ValueError("no directions")
    if len(values) > _MOST_PERSONS or sites.shape != values.shape[:1] or sites.dtype.kind != "U":
        raise ValueError("no site for each participant")
    if values.dtype != np.float32:
        raise ValueError("directions of another precision")


def _check_orthonormal(values: Array) -> None:
    expected = np.eye(values.shape[2])
    with np.errstate(over="ignore", invalid="ignore"):
        right = all((np.abs(own.T @ own - expected) <= _ROUNDED).all() for own in values)
    if not right:  # also if one is not a number
        raise ValueError("directions that are not orthonormal")


def _table(path: Path) -> OpenTable:
    content = _content(path, _MOST_TABLE_BYTES)
    table = table_in(path, content)
    names = table.header
    cells = tuple(tuple(cell.strip() for cell in row.cells) for row in table.rows())
    if len(set(names)) < len(names):
        raise TableError(
            path, "header", "two columns have the same name. Name each column differently.", line=1
        )
    if len(cells) < FEWEST:
        raise DataError(
            f"{path}: an open cohort must have at least {FEWEST} participants, and this table has "
            f"{len(cells)} rows. Add participants."
        )
    return OpenTable(names, cells, hashlib.sha256(content).hexdigest())
