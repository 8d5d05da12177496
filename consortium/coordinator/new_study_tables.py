"""Limits and groups of a new study, read from the coordinator's own tables."""

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from consortium.base.delimited import open_table
from consortium.errors import StudyError
from consortium.study.nominal import nominal_size
from consortium.views.table import REGIONS

Limits = tuple[float, float]
_MOST_BYTES = 1 << 26
_NAMED = ("name", "low", "high")
_WIDE = 5.0
"""Deviations from the median to a limit that is read from a table of participants."""
_QUARTILES_APART = 1.349  # interquartile range of the standard normal distribution
_SIDES = ("Left-", "Right-")
_LIMITS_READ = (
    "Limits are read from {table} and become public: for each column the median ± 5 deviations, "
    "rounded outwards to two digits. Replace them by published limits where these exist."
)
_GROUPS_READ = (
    "Numbers of participants in {table} are rounded to multiples of 10 below 100, and to two "
    "digits above, and become public."
)


def read_groups(
    path: Path, sites: Sequence[str], levels: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Read the participants of each level at each site, as nominal sizes.

    Raises StudyError if a site or level is missing, or a cell is not a number of participants.
    Raises TableError if the table can't be read.

    Parameters
    ----------
    path : Path
        Table with a column ``site`` and a column for each level.
    """
    rows = _rows_by(path, "site", ("site", *levels))
    strange = sorted(set(rows) ^ set(sites))
    if strange:
        raise StudyError(
            f"{path}: a line for each of the study's sites is required, and {', '.join(strange)} "
            "is in one of both only. Correct the table, or --sites."
        )
    return {
        site: tuple(nominal_size(_number(path, site, rows[site][name])) for name in levels)
        for site in sites
    }


def read_limits(path: Path, outcomes: Sequence[str] | None) -> dict[str, Limits]:
    """Read limits of every outcome from the coordinator's own table.

    Raises StudyError if a column is missing, or its limits are not an interval. Raises TableError
    if the table can't be read.

    Parameters
    ----------
    path : Path
        Table with the columns ``name``, ``low`` and ``high``, or a table of participants with a
        column for each outcome.
    outcomes : sequence of str, optional
        Names, with ``*`` for any letters (default: every name of the table).
    """
    stated = states_limits(path)
    known = _stated(path) if stated else _ranges(path)
    found = dict[str, Limits]()
    for outcome in outcomes or tuple(known):
        names = [outcome] if outcome in known else [n for n in known if fnmatchcase(n, outcome)]
        if not names or ("*" not in outcome and outcome not in known):
            kind = "name" if stated else "column of numbers"
            raise StudyError(f"{path}: a {kind} '{outcome}' is required. Add it with its limits.")
        found |= {name: known[name] for name in names}
    return found


def states_limits(path: Path) -> bool:
    """Return whether a table has limits in columns, and is not one of participants."""
    return set(_NAMED) <= set(_read(path)[0])


def with_regions(names: Sequence[str]) -> tuple[list[str], str | list[str] | None]:
    """Return the names of a new study's columns, and the meaning of ``*`` in them.

    FreeSurfer's aseg writes ``Left-Hippocampus``, and its cortical tables ``lh_insula_thickness``.
    A study has one list of regions. With cortical names, those of aseg are written out.

    Examples
    --------
    >>> with_regions(["lh_*_thickness"])
    (['lh_*_thickness'], 'desikan')
    >>> with_regions(["Left-*", "Right-*"])[1][:3]
    ['Thalamus', 'Caudate', 'Putamen']
    """
    starred = [name for name in names if "*" in name]
    aseg = [name for name in starred if name in ("*", *(f"{side}*" for side in _SIDES))]
    if not starred:
        return list(names), None
    if not aseg:
        return list(names), "desikan"
    if starred == ["*"]:
        return list(names), "aseg"
    if starred == aseg and "*" not in aseg:
        left = [name.removeprefix(_SIDES[0]) for name in REGIONS["aseg"]]
        return list(names), left[: len(left) // 2]
    known = REGIONS["aseg"]
    written = [
        own
        for name in names
        for own in ([n for n in known if fnmatchcase(n, name)] if name in aseg else [name])
    ]
    return list(dict.fromkeys(written)), None if starred == aseg else "desikan"


def _stated(path: Path) -> dict[str, Limits]:
    found = dict[str, Limits]()
    for name, row in _rows_by(path, "name", _NAMED).items():
        low, high = (_number(path, name, row[end]) for end in ("low", "high"))
        if not low < high:
            raise StudyError(
                f"{path}: low below high is required for '{name}', got {low:g} and {high:g}. "
                "Correct them."
            )
        found[name] = low, high
    return found


def _ranges(path: Path) -> dict[str, Limits]:
    header, rows = _read(path)
    found = dict[str, Limits]()
    for place, name in enumerate(header):
        values = [value for row in rows if math.isfinite(value := _value(row[place]))]
        limits = _around(np.array(values)) if len(values) > len(rows) / 2 else None
        if limits is not None:
            found[name] = limits
    return found


def _around(values: np.ndarray) -> Limits | None:
    """Return limits far outside of most values; no limit is one of the values, except for 0."""
    first, middle, third = np.percentile(values, [25, 50, 75])
    spread = _WIDE * max((third - first) / _QUARTILES_APART, float(values.std()) / 2)
    if not spread > 0:
        return None
    step = 10.0 ** (math.floor(math.log10(2 * spread)) - 1)
    low = math.floor((middle - spread) / step) * step
    if values.min() >= 0:
        low = max(low, 0.0)
    high = math.ceil((middle + spread) / step) * step
    return round(low, 12), round(high, 12)


def _rows_by(path: Path, key: str, columns: Sequence[str]) -> dict[str, dict[str, str]]:
    header, rows = _read(path)
    missing = [name for name in columns if name not in header]
    if missing:
        raise StudyError(
            f"{path}: the columns {', '.join(columns)} are required, and {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Add them to the first line."
        )
    found = dict[str, dict[str, str]]()
    for row in rows:
        named = dict(zip(header, row, strict=True))
        if named[key] in found:
            raise StudyError(f"{path}: one line is required for '{named[key]}', got two or more.")
        found[named[key]] = named
    return found


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header's cells and each row's, without surrounding white space."""
    with open_table(path, _MOST_BYTES) as table:
        rows = [[cell.strip() for cell in row.cells] for row in table.rows()]
    return list(table.header), rows


def _value(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _number(path: Path, where: str, cell: str) -> float:
    value = _value(cell)
    if not math.isfinite(value):
        raise StudyError(f"{path}: a number is required for '{where}', got '{cell}'. Correct it.")
    return value


def what_was_read(answers: Mapping[str, str | None]) -> list[str]:
    """Return sentences about numbers of tables that are written into a new study."""
    groups, limits = (given_file(answers.get(name) or "") for name in ("groups", "limits"))
    lines = [] if groups is None else [_GROUPS_READ.format(table=groups)]
    if limits is not None and not states_limits(limits):
        lines.append(_LIMITS_READ.format(table=limits))
    return lines


def given_file(said: str) -> Path | None:
    """Return the file that an answer to `new-study` names, or None if it names none."""
    path = Path(said)
    return path if path.suffix in (".tsv", ".csv", ".txt") or path.is_file() else None
