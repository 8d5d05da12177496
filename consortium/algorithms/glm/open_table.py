"""Table of an open cohort, which replaces stated norms and gives slopes of the outcomes.

Its participants are public, so everything here is a constant of the study. Sites subtract the
curve, which is a function of a participant's own columns, before anything is clipped. So no bound
depends on the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consortium.algorithms.base import Shape
from consortium.algorithms.glm.entries import Columns, GlmEntry, Labels, resolve
from consortium.algorithms.glm.kernels.known_correlation import (
    KnownCorrelation,
    known_correlation,
    mean_correlation,
)
from consortium.algorithms.glm.kernels.open_regression import (
    WithinFit,
    centred_within,
    fit_within,
)
from consortium.algorithms.glm.parameters import CovariateNorm, GlmParameters, Norms
from consortium.base.array import Array
from consortium.base.formatting import number
from consortium.errors import StudyError
from consortium.kernels.tiles import product_of_columns

SITE = "site"
"""Name of the column with the open cohort's own sites."""
FEWEST = 30
_SPARE = 20  # participants beyond the coefficients that are fitted
_MISSING = ("", "n/a", "na", "nan", "null")
_LARGEST = 1e12
_LEAST_SPREAD = 1e-9  # standard deviation of an outcome, relative to its largest value
_SMALLEST = 1e-11  # the same in its own unit
_WITHIN_LIMITS = 0.5  # least share of participants with values within a column's limits
_LEAST_OF_LIMITS = 0.125
"""Least standard deviation of a covariate, relative to the distance of its limits: a cohort of one
age must not clip all others."""
_LEFT_OF_EXPLAINED = 1 / 3
"""Share of the usual variance by covariates that remains after the curve, because populations
differ. A choice."""
_SHOWN = 60  # characters of a cell in a message


@dataclass(frozen=True, eq=False)
class OpenNorms:
    """Norms, correlation, curve and slopes of an open cohort. In the vector's unit."""

    fit: WithinFit
    """Regression on the contrast's column and the covariates, 1 + p columns."""
    persons: int
    left_out: int
    """Numbers of participants with all values, and of those without."""
    sites: int
    """Number of the open cohort's sites."""

    @property
    def slopes(self) -> Array:
        """Slopes on the contrast's column and the covariates, V x (1 + p); 0 if not known."""
        return self.fit.slopes

    @property
    def knows_contrast(self) -> bool:
        """Whether the cohort has an estimate of the contrast."""
        return bool(self.fit.varied[0])

    @cached_property
    def correlation(self) -> float:
        """Mean correlation of two outcomes."""
        return mean_correlation(self.fit.left)

    @cached_property
    def matrix(self) -> KnownCorrelation | None:
        """Correlation of the outcomes; None if the cohort is too small for it."""
        return known_correlation(self.fit.left)


@dataclass(frozen=True, eq=False)
class Curve:
    """Curve of an open cohort, which is subtracted from outcomes before anything is clipped."""

    slopes: Array
    """V x (1 + p)."""
    columns: Array
    """Column of the contrast (±½ for groups) and covariates of each row, in public standard
    deviations: (1 + p) x n."""

    def at(self, rows: slice) -> Array:
        """Return the curve of some outcomes; no participant's depends on others."""
        return product_of_columns(self.slopes[rows], self.columns)


def with_open_table(parameters: GlmParameters, shape: Shape) -> tuple[GlmParameters, OpenNorms]:
    """Return parameters with the norms of an open cohort's table, and its curve.

    Stated means and deviations of columns stay, since hospitals may have participants of other
    ages. Raises StudyError if the table lacks an outcome, or has unusable values.
    """
    if parameters.open_norms is not None:  # when a plan is made again
        return parameters, parameters.open_norms
    if shape.open_table is None:
        raise StudyError(
            f"field 'analysis.open': {parameters.open} must be a table with a row for each "
            "participant. Name a .tsv or .csv file."
        )
    columns = resolve(parameters, shape)
    reader = _Reader(shape.open_table.names, shape.open_table.cells)
    own = _outcomes(reader, columns)
    sites = reader.sites
    entries = (columns.group, *columns.covariates_of)
    values = np.array([_column(reader, entry, parameters) for entry in entries])
    present = np.isfinite(values).any(axis=1)
    complete = np.isfinite(own).all(axis=0) & np.isfinite(values[present]).all(axis=0)
    _check_persons(complete, len(entries), sites)
    own = own[:, complete]
    values = np.where(present[:, None], values, 0.0)[:, complete]
    _, sites = np.unique(sites[complete], return_inverse=True)
    covariates = _norms_of_columns(parameters, columns, values, present, sites)
    parameters = parameters.model_copy(
        update={"covariates": {**covariates, **parameters.covariates}}
    )
    columns = resolve(parameters, shape)
    x = _standardized(columns, values) * present[:, None]
    fit = fit_within(own, x, sites)
    found = OpenNorms(
        fit=fit,
        persons=own.shape[1],
        left_out=int((~complete).sum()),
        sites=int(sites.max()) + 1,
    )
    location = (own - fit.slopes @ x).mean(axis=1)
    norms = Norms(
        location=tuple(columns.own(location).tolist()),
        deviation=tuple((columns.units * fit.deviation).tolist()),
        correlation=min(found.correlation, 0.95),
    )
    explained = GlmParameters.model_fields["explained"].default
    if fit.varied[1:].all():
        explained *= _LEFT_OF_EXPLAINED
    parameters = parameters.model_copy(update={"norms": norms, "explained": explained})
    parameters.take_open_norms(found)
    return parameters, found


class _Reader:
    """Cells of a table by the names of its columns."""

    def __init__(self, names: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._cells = cells

    def has(self, name: str) -> bool:
        """Return whether the table has a column."""
        return name in self._places

    def texts(self, name: str) -> list[str]:
        """Return the cells of a column; empty if missing."""
        place = self._places[name]
        cells = (row[place] for row in self._cells)
        return ["" if cell.strip().lower() in _MISSING else cell.strip() for cell in cells]

    def numbers(self, name: str) -> Array:
        """Return the numbers of a column, NaN if missing.

        Raises StudyError if a cell is not a number.
        """
        return np.array([self._number(name, n, cell) for n, cell in enumerate(self.texts(name), 2)])

    def _number(self, name: str, line: int, cell: str) -> float:
        if not cell:
            return np.nan
        try:
            value = float(cell)
        except ValueError:
            value = np.inf
        if abs(value) <= _LARGEST:
            return value
        raise StudyError(
            f"field 'analysis.open': line {line}, column '{name}': must be a number from "
            f"-{_LARGEST:g} to {_LARGEST:g}, got '{cell[:_SHOWN]}'. Correct the cell, or write n/a."
        )

    @property
    def sites(self) -> Array:
        """Site of each participant; the same for all without such a column."""
        count = len(self._cells)
        texts = self.texts(SITE) if self.has(SITE) else [""] * count
        return np.unique(np.array(texts, dtype=np.str_), return_inverse=True)[1]


def _outcomes(reader: _Reader, columns: Columns) -> Array:
    """Return the outcomes in the vector's unit, V x n; values beyond limits are clipped as sites'.

    Raises StudyError if one is missing, constant, or of another unit.
    """
    names = _names_of(reader, columns.labels)
    raw = np.array([reader.numbers(name) for name in names])
    values = (raw - columns.middles[:, None]) / columns.units[:, None]
    for place in np.flatnonzero(columns.limited).tolist():
        low, high = columns.middles[place] + columns.units[place] * np.array([-1.0, 1.0])
        _check_limits(names[place], values[place], low, high)
    values = np.where(columns.limited[:, None], np.clip(values, -1, 1), values)
    known = np.isfinite(values)
    counts = np.maximum(known.sum(axis=1), 1)
    means = np.where(known, values, 0.0).sum(axis=1) / counts
    about = np.where(known, values - means[:, None], 0.0)
    spread = np.sqrt(np.square(about).sum(axis=1) / counts)
    largest = np.where(known, np.abs(values), 0.0).max(axis=1, initial=0.0)
    flat = (spread <= _LEAST_SPREAD * largest) | (spread * columns.units < _SMALLEST)
    if flat.any():
        name = names[int(np.argmax(flat))]
        raise StudyError(
            f"field 'analysis.open': outcome '{name}' must vary among the open cohort's "
            "participants, and does not. Correct the column."
        )
    return values


def _names_of(reader: _Reader, labels: Labels) -> list[str]:
    """Return the table's column of each outcome: `view.entry`, or `entry`.

    Raises StudyError if one is missing, or an entry has the name of another view's.
    """
    pairs = list(labels)
    counts = Counter(entry for _, entry in pairs)
    names = [
        f"{view}.{entry}" if counts[entry] > 1 or reader.has(f"{view}.{entry}") else entry
        for view, entry in pairs
    ]
    missing = [name for name in names if not reader.has(name)]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise StudyError(
            f"field 'analysis.open': the table must have a column for each of {len(names)} "
            f"outcomes, and lacks '{missing[0]}'{more}. Add the column, or rename it."
        )
    return names


def _check_limits(name: str, values: Array, low: float, high: float) -> None:
    """Raise StudyError if most values are beyond a column's limits, as in another unit."""
    known = values[np.isfinite(values)]
    inside = int((np.abs(known) <= 1).sum())
    if len(known) and inside < _WITHIN_LIMITS * len(known):
        raise StudyError(
            f"field 'analysis.open': column '{name}': most values must be from {number(low)} to "
            f"{number(high)}, as in the study, and {inside} of {len(known)} are. Convert the "
            "column to the study's unit."
        )


def _column(reader: _Reader, entry: GlmEntry, parameters: GlmParameters) -> Array:
    """Return a column of the formula in the vector's unit; NaN if the table lacks it."""
    name = entry.label.partition("=")[0]
    count = len(reader.sites)
    if entry.product or not reader.has(name):
        return np.full(count, np.nan)
    levels = {label: c.levels for view in parameters.views for label, c in view.single_columns}
    if entry.levels and levels:
        return _levels(reader, name, levels[name], entry)
    values = (reader.numbers(name) - entry.middle) / entry.half
    if entry.limited:
        _check_limits(name, values, entry.middle - entry.half, entry.middle + entry.half)
        values = np.clip(values, -1, 1)
    return np.asarray(values)


def _levels(reader: _Reader, name: str, levels: tuple[str, ...], entry: GlmEntry) -> Array:
    """Return a level as the vector has it: -1 and 1, or 0 and 1 of a column with more levels.

    Raises StudyError if a cell is not one of the study's levels.
    """
    texts = reader.texts(name)
    strange = [text for text in texts if text and text not in levels]
    if strange:
        raise StudyError(
            f"field 'analysis.open': column '{name}': must be one of the study's levels "
            f"({', '.join(levels)}), got '{strange[0][:_SHOWN]}'. Rename the level, or remove "
            "these rows."
        )
    low = -1.0 if entry.levels == 2 else 0.0
    level = entry.compared[0]
    return np.array([np.nan if not text else 1.0 if text == level else low for text in texts])


def _check_persons(complete: Array, coefficients: int, sites: Array) -> None:
    """Raise StudyError if too few participants have all values."""
    own = len(np.unique(sites[complete])) if complete.any() else 0
    needed = max(FEWEST, 2 * coefficients + own + _SPARE)
    if complete.sum() < needed:
        raise StudyError(
            f"field 'analysis.open': at least {needed} participants must have all outcomes and "
            f"columns, and {int(complete.sum())} of {len(complete)} have. Add participants, or "
            "remove a column of the formula that most of them lack."
        )


def _norms_of_columns(
    parameters: GlmParameters, columns: Columns, values: Array, present: Array, sites: Array
) -> dict[str, CovariateNorm]:
    """Return mean and standard deviation of the columns with limits that the table has."""
    entries = (columns.group, *columns.covariates_of)
    found = dict[str, CovariateNorm]()
    for place, entry in enumerate(entries):
        if entry.levels or entry.product or not present[place]:
            continue
        own = values[place]
        least = 2 * _LEAST_OF_LIMITS if entry.limited else 1e-12
        deviation = max(float(own.std(ddof=1)), least)
        within = None
        declared = entry.label in parameters.site_means
        if columns.slope and place == 0 and sites.max() > 0 and not declared:
            within = float(centred_within(own[None], sites).std())
            within = entry.half * min(max(within, 1e-3 * deviation), deviation)
        found[entry.label] = CovariateNorm(
            mean=entry.middle + entry.half * float(own.mean()),
            deviation=entry.half * deviation,
            within=within,
        )
    return found


def _standardized(columns: Columns, values: Array) -> Array:
    """Return the contrast's column and the covariates as the curve takes them."""
    means = np.append(columns.group_norm[0], columns.means)
    scales = np.append(columns.group_norm[1], columns.deviations)
    x = (values - means[:, None]) / scales[:, None]
    if not columns.slope:
        x[0] = np.where(values[0] > columns.threshold, 0.5, -0.5)
    return np.asarray(x)
