"""One person's matrix between regions, or their courses, as cells that are named by their pair.

As XCP-D, HALFpipe and 'site-agent networks' write them: tab-separated, with the regions' names in
the first line and perhaps in the first column, or numbers alone, whose regions are then 1, 2, 3.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from consortium.kernels.dual_regression import centred_and_normed
from consortium.privacy.clipping import column_norms

_FLAT = 1e-9
_MISSING = "n/a"


class _Table(NamedTuple):
    """Regions by name, and lines of a cell for each of them."""

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
    """
    found = _table(lines, courses=courses)
    at = {name: place for place, name in enumerate(found.names)}
    fits = len(at) == len(found.names) and (courses or len(at) == len(found.cells))
    if not fits or any(len(line) != len(at) for line in found.cells):
        return {}
    located = ((pair, [*_ends(pair, at)]) for pair in pairs)
    places = {pair: ends[0] for pair, ends in located if len(ends) == 1}
    if courses:
        return _correlations(found.cells, places)
    return {pair: found.cells[one][other] for pair, (one, other) in places.items()}


def regions_of(lines: Sequence[str], *, courses: bool) -> Sequence[str]:
    """Names of the regions that a file has, as `pair_cells` takes them."""
    return _table(lines, courses=courses).names


def _table(lines: Sequence[str], *, courses: bool) -> _Table:
    rows = [[cell.strip() for cell in line.split("\t")] for line in lines if line.strip()]
    if not rows:
        return _Table([], [])
    first, body = rows[0], rows[1:]
    if all(map(_is_number, first)) and not _names_by_number(first, body, courses=courses):
        return _Table([str(k + 1) for k in range(len(first))], rows)
    return _Table(first, body) if courses else _without_names(first, body)


def _names_by_number(first: list[str], body: list[list[str]], *, courses: bool) -> bool:
    """Whether a line of numbers is the regions' names, as those of an atlas without words are.

    Of a matrix it is a line too many; of courses it is whole numbers above others that are not.
    """
    if not courses:
        return len(body) == len(first)
    named = len(set(first)) == len(first) and all(map(str.isdecimal, first))
    return named and any(_is_broken(cell) for line in body for cell in line)


def _without_names(names: list[str], body: list[list[str]]) -> _Table:
    """Lines of a matrix in the order of its columns, without a first column that names them."""
    if len(names) != len(body) + 1:
        return _Table(names, body)
    own = {line[0]: line[1:] for line in body}
    return _Table(names[1:], [own.get(name, []) for name in names[1:]])


def _ends(pair: str, at: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Places of a pair's two regions, for every hyphen that may stand between them."""
    for place in (k for k, letter in enumerate(pair) if letter == "-"):
        one, other = pair[:place], pair[place + 1 :]
        if one in at and other in at:
            yield at[one], at[other]


def _correlations(
    body: Sequence[Sequence[str]], places: Mapping[str, tuple[int, int]]
) -> dict[str, str]:
    """Correlations of pairs of courses; none of one that lacks a number, or does not vary.

    Of the others none is worked out: a file may have more regions than a matrix of all can hold.
    """
    used = {place: row for row, place in enumerate(sorted({*chain(*places.values())}))}
    if not body or not used:
        return {}
    courses = np.array([[_number(line[place]) for line in body] for place in used])
    with np.errstate(all="ignore"):
        norms = column_norms((courses - courses.mean(axis=1, keepdims=True)).T)
        scaled = centred_and_normed(courses)
    varies = np.isfinite(norms) & (norms > _FLAT * np.abs(courses).max(axis=1))
    found = {}
    for pair, (one, other) in places.items():
        a, b = used[one], used[other]
        between = float(np.clip(scaled[a] @ scaled[b], -1.0, 1.0))
        found[pair] = repr(between) if varies[a] and varies[b] else _MISSING
    return found


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan


def _is_broken(text: str) -> bool:
    """Whether a cell is a number that is written as no whole one."""
    return not text.removeprefix("-").isdecimal() and bool(np.isfinite(_number(text)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
