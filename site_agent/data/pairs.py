"""One person's matrix between regions, or their courses, as cells that are named by their pair.

As XCP-D, HALFpipe and 'site-agent networks' write them: tab-separated, with the regions' names in
the first line and perhaps in the first column, or numbers alone, whose regions are then 1, 2, 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_FLAT = 1e-9
_MISSING = "n/a"


class _Square(NamedTuple):
    """Regions by name, and what the cells between them hold."""

    names: Sequence[str]
    cells: Sequence[Sequence[str]]


def pair_cells(lines: Sequence[str], pairs: Iterable[str], *, courses: bool) -> dict[str, str]:
    """Read the cells of some pairs; what is not there, or may be two pairs, has none.

    Parameters
    ----------
    lines : sequence of str
        Of a matrix, whose cells are taken as they are; or of ``courses``, one for each volume,
        whose correlations are computed.
    pairs : iterable of str
        As ``a-b``, a's line and b's column.
    courses : bool
    """
    names, body = _named([line.split("\t") for line in lines if line.strip()])
    made = _Square(names, _correlations(names, body)) if courses else None
    found = made or _without_names(names, body)
    at = {name: place for place, name in enumerate(found.names)}
    square = len(at) == len(found.names) == len(found.cells)
    if not square or any(len(line) != len(at) for line in found.cells):
        return {}
    told = ((pair, [*_ends(pair, at)]) for pair in pairs)
    return {pair: found.cells[ends[0][0]][ends[0][1]] for pair, ends in told if len(ends) == 1}


def regions_of(lines: Sequence[str], *, courses: bool) -> Sequence[str]:
    """Names of the regions that a file has, as `pair_cells` takes them."""
    names, body = _named([line.split("\t") for line in lines if line.strip()])
    return names if courses else _without_names(names, body).names


def _named(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Names of the columns, and the lines below them."""
    rows = [[cell.strip() for cell in row] for row in rows]
    if not rows:
        return [], []
    if all(map(_is_number, rows[0])):
        return [str(k + 1) for k in range(len(rows[0]))], rows
    return rows[0], rows[1:]


def _without_names(names: list[str], body: list[list[str]]) -> _Square:
    """Lines of a matrix in the order of its columns, without a first column that names them."""
    if len(names) != len(body) + 1:
        return _Square(names, body)
    own = {line[0]: line[1:] for line in body}
    return _Square(names[1:], [own.get(name, []) for name in names[1:]])


def _ends(pair: str, at: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Places of a pair's two regions, for every hyphen that may stand between them."""
    for place in (k for k, letter in enumerate(pair) if letter == "-"):
        one, other = pair[:place], pair[place + 1 :]
        if one in at and other in at:
            yield at[one], at[other]


def _correlations(names: list[str], body: list[list[str]]) -> list[list[str]]:
    """Correlations of courses; none of one that lacks a number, or does not vary."""
    if not body or any(len(line) != len(names) for line in body):
        return []
    courses = np.array([[_number(cell) for cell in line] for line in body])
    centred = courses - courses.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    norms[~(norms > _FLAT * np.abs(courses).max(axis=0))] = np.nan
    scaled: NDArray[np.float64] = centred / norms
    between = np.clip(scaled.T @ scaled, -1.0, 1.0)
    return [[_MISSING if np.isnan(x) else repr(x) for x in row] for row in between.tolist()]


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
