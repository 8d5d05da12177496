"""Charts of outcomes: expected values by columns of the participants, with a spread.

A chart is a published table of slopes or curves, or the coefficients of a finished study. Its
numbers are constants, and it is used at a hospital only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.interpolate import CubicSpline

from consortium.algorithms.glm.entries import Columns, GlmEntry
from consortium.base.array import Array
from consortium.errors import DataError

OUTCOME = "outcome"
DEVIATION = "deviation"
LOCATION = "location"
BETWEEN = "between"
_FIXED = (OUTCOME, DEVIATION, LOCATION, BETWEEN)
_MISSING = ("", "n/a")


@dataclass(frozen=True, eq=False)
class ChartTerm:
    """Slopes, or curves, of all outcomes in a column of participants."""

    column: str
    """Name of the column, or ``column=level`` for the difference of a level from the first one."""
    values: Array
    """Per unit of the column, or difference of a level, in the outcomes' own units: length V. With
    knots: values of the curves there, V x number of knots."""
    knots: Array = field(default_factory=lambda: np.zeros(0))
    """Ascending values of the column, at which the curves are given."""

    def at(self, values: Array) -> Array:
        """Return the outcomes' expected difference for values of the column, V x n.

        Curves are natural cubic splines, and straight lines beyond the outer knots.
        """
        if not len(self.knots):
            return np.outer(self.values, values)
        curve = CubicSpline(self.knots, self.values, axis=1, bc_type="natural")
        known = np.where(np.isfinite(values), values, self.knots[0])
        inside = np.clip(known, self.knots[0], self.knots[-1])
        found = curve(inside) + curve(inside, 1) * (known - inside)
        return np.where(np.isfinite(values), found, np.nan)


@dataclass(frozen=True, eq=False)
class Chart:
    """Expected values of outcomes, in their own units."""

    deviation: Array
    """Standard deviation of each outcome around its expected value, length V; NaN if unknown."""
    terms: tuple[ChartTerm, ...]
    location: Array | None = None
    """Outcome where all columns are 0 or at their first level, length V."""
    between: Array | None = None
    """Standard deviation of that location between hospitals, length V."""


def read_chart(
    path: object, header: Sequence[str], rows: Sequence[Sequence[str]], columns: Columns
) -> Chart:
    """Read a chart from the cells of its table.

    Raises DataError if a column is unknown, a number is missing or impossible, or an outcome of
    the study has no row.

    Parameters
    ----------
    path : object
        Its file, for errors.
    header : sequence of str
        ``outcome`` and ``deviation``, optionally ``location`` and ``between``, and columns of the
        study: a slope (``age``), the curve's value at knots (``age@30``), or a level's difference
        from the first one (``sex=M``).
    columns : Columns
        Of the study whose outcomes are scored.
    """
    places = {name: place for place, name in enumerate(header)}
    if len(places) < len(header):
        raise DataError(f"{path}: line 1 must name each column once. Rename or delete one.")
    for name in (OUTCOME, DEVIATION):
        if name not in places:
            raise DataError(
                f"{path}: line 1 must have the column '{name}', and lacks it. Add it, or rename "
                "another column."
            )
    table = _by_outcome(path, rows, places[OUTCOME])
    names = [entry for _, entry in columns.labels]
    missing = [name for name in names if name not in table]
    if missing:
        raise DataError(
            f"{path}: must have a row for each of {len(names)} outcomes of the study, and lacks "
            f"'{missing[0]}'. Add the row."
        )

    def column(name: str, least: float = -math.inf) -> Array:
        cells = [table[outcome][places[name]] for outcome in names]
        return np.array([_number(path, name, cell, least) for cell in cells])

    terms = _terms(path, header, columns, column)
    deviation = column(DEVIATION, np.nextafter(0.0, 1.0))
    location = column(LOCATION) if LOCATION in places else None
    between = column(BETWEEN, 0.0) if BETWEEN in places else None
    if (location is None) != (between is None):
        raise DataError(
            f"{path}: columns '{LOCATION}' and '{BETWEEN}' go together, and one is missing. Add "
            "it, or delete the other."
        )
    return Chart(deviation=deviation, terms=terms, location=location, between=between)


def _by_outcome(
    path: object, rows: Sequence[Sequence[str]], place: int
) -> dict[str, Sequence[str]]:
    found = dict[str, Sequence[str]]()
    for row in rows:
        if row[place] in found:
            raise DataError(f"{path}: outcome '{row[place]}' must have one row. Delete the others.")
        found[row[place]] = row
    return found


def _terms(
    path: object,
    header: Sequence[str],
    columns: Columns,
    column: Callable[[str], Array],
) -> tuple[ChartTerm, ...]:
    """Return the terms of a chart.

    Raises DataError if a column is neither a number of the study's formula nor a level of it.
    """
    known = _known_columns(columns)
    plain = dict[str, list[str]]()
    for name in header:
        if name not in _FIXED:
            plain.setdefault(name.partition("@")[0], []).append(name)
    found = []
    for name, own in plain.items():
        if name not in known:
            raise DataError(
                f"{path}: column '{name}' must be {', '.join(_FIXED)}, or a column of the study: "
                f"{', '.join(known)}. Rename or delete it."
            )
        if own == [name]:
            found.append(ChartTerm(name, column(name)))
            continue
        if name in own or known[name]:
            raise DataError(
                f"{path}: column '{name}' must be either a slope or a curve of a column with "
                "limits. Delete one of its columns."
            )
        knots = np.array([_number(path, each, each.partition("@")[2]) for each in own])
        if len(knots) < 2 or (np.diff(knots) <= 0).any():
            raise DataError(
                f"{path}: the knots of '{name}' must be two or more ascending numbers, as in "
                f"{name}@20, {name}@40. Correct line 1."
            )
        found.append(ChartTerm(name, np.stack([column(each) for each in own], axis=1), knots))
    return tuple(found)


def _known_columns(columns: Columns) -> dict[str, bool]:
    """Return the columns that a chart may have, and whether each is a level."""
    entries = [e for e in (columns.group, *columns.covariates_of) if not e.product]
    return {column_name(entry): bool(entry.levels) for entry in entries}


def column_name(entry: GlmEntry) -> str:
    """Return the name of a column in a chart."""
    if entry.levels and entry.compared[0]:
        return f"{entry.label.partition('=')[0]}={entry.compared[0]}"
    return entry.label


def own_values(columns: Columns, table: Array) -> Mapping[str, Array]:
    """Return the participants' columns in their own units, 0 or 1 for levels, by chart name.

    Parameters
    ----------
    table : array, D x n
        The site's vectors.
    """
    found = dict[str, Array]()
    for entry in (columns.group, *columns.covariates_of):
        if entry.product:
            continue
        own = table[entry.row]
        if entry.levels:
            above = 0.5 if entry.levels > 2 else 0.0
            found[column_name(entry)] = np.where(np.isfinite(own), own > above, np.nan)
        else:
            found[column_name(entry)] = entry.middle + entry.half * own
    return found


def coded_columns(columns: Columns, table: Array) -> Array:
    """Return a chart's columns that released coefficients belong to: (1 + p) x n.

    These are 0 or 1 for levels, and public standard deviations from the public mean for others.

    Parameters
    ----------
    table : array, D x n
        The site's vectors.
    """
    entries = (columns.group, *columns.covariates_of)
    taken = columns.products.take(table, np.array([e.row for e in entries], dtype=np.int64))
    means = np.append(columns.group_norm[0], columns.means)
    scales = np.append(columns.group_norm[1], columns.deviations)
    found = (taken - means[:, None]) / scales[:, None]
    levels = [place for place, entry in enumerate(entries) if entry.levels]
    found[levels] = (found[levels] + 1) / 2
    if not columns.slope:
        found[0] = np.where(np.isfinite(taken[0]), taken[0] > columns.threshold, np.nan)
    return np.asarray(found)


def _number(path: object, name: str, cell: str, least: float = -math.inf) -> float:
    try:
        value = float(cell) if cell.strip() not in _MISSING else math.nan
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value >= least:
        return value
    above = "" if least == -math.inf else " above 0" if least > 0 else " of at least 0"
    raise DataError(
        f"{path}: column '{name}' must be a finite number{above}, got '{cell[:60]}'. Correct the "
        "cell."
    )
