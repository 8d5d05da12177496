"""Rows of a unit of privacy: participants of a family, or sessions of a participant.

Rows of a unit have a constant in common, the random intercept, with a correlation ρ that the study
states. Generalized least squares then uses products of rows

    <f, g> = f̄ ḡ + λ Σ (f_j - f̄)(g_j - ḡ),   λ = (1 + (k - 1) ρ) / (k (1 - ρ)),

divided by the weight of a unit, so every unit counts once. A site's constant affects only the mean:
deviations of rows need no centring. If λ would give a unit's columns a larger weight than a single
row may have, it is reduced, down to 1/k. Then <f, g> is the mean over rows of f g, which is within
the bound of a row. λ depends on predictors and never on outcomes, so a reduced λ, or a wrong ρ,
costs precision and does not bias an effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import SiteData
from consortium.base.array import Array
from consortium.privacy.clipping import finite_values

_MOST_WEIGHT = 1e6


@dataclass(frozen=True, eq=False)
class WithinUnits:
    """Deviations of rows from their unit's mean: K rows of U units."""

    parts: Array
    """1/k for the rows that a unit has, otherwise 0; K x U."""
    weight: Array
    """λ, length U."""
    contrast: Array
    column: Array
    """Deviations of t, and of t before it was clipped with the covariates, K x U."""
    covariates: Array
    """Deviations of the covariates, p x K x U."""

    @property
    def present(self) -> Array:
        """Which units have any row, length U."""
        return np.asarray((self.parts > 0).any(axis=0))

    def split(self, values: Array) -> Array:
        """Return rows, D x (K U), as D x K x U."""
        return values.reshape(len(values), *self.parts.shape)

    def mean(self, values: Array) -> Array:
        """Return means by unit: D x (K U) to D x U."""
        means: Array = np.einsum("dku,ku->du", self.split(values), self.parts)
        return means

    def centred(self, values: Array) -> Array:
        """Return deviations from the unit's mean, and 0 for rows that do not exist: ... x K x U."""
        present = self.parts > 0
        deviations: Array = (values - (values * self.parts).sum(axis=-2, keepdims=True)) * present
        return deviations

    def product(self, one: Array, others: Array) -> Array:
        """Return λ Σ f_j g_j: K x U and B x K x U to B x U. One of the factors is centred."""
        sums: Array = np.einsum("ku,bku,u->bu", one, others, self.weight, optimize=True)
        return sums


@dataclass(frozen=True, eq=False)
class RowsTable:
    """Every row of a site's units, D x (K U), all first rows first; copied on access."""

    units: Array
    """View of the site's own table, D x K x U."""

    def __len__(self) -> int:
        """Return D."""
        return len(self.units)

    @property
    def shape(self) -> tuple[int, int]:
        """D, and K U."""
        entries, many, units = self.units.shape
        return entries, many * units

    def __getitem__(self, entries: int | slice | Array) -> Array:
        """Return one entry or several, as an array does."""
        taken = self.units[entries]
        return taken.reshape(*taken.shape[:-2], self.shape[1])


Table = Array | RowsTable


def rows_of(data: SiteData) -> tuple[Table, int]:
    """Return every row of a site's units, D x (K U) with all first rows first, and K."""
    table = data.table()
    many = max(len(table) // max(data.features, 1), 1)
    if many == 1:
        return table, 1
    split = table.reshape(many, data.features, table.shape[1])
    return RowsTable(split.transpose(1, 0, 2)), many


def unit_means(data: SiteData, row: int) -> Array:
    """Return means over each unit's rows of one entry, length U; NaN for units without any."""
    table, many = rows_of(data)
    values = table[row].reshape(many, -1)
    present = np.isfinite(values)
    sums = np.where(present, values, 0.0).sum(axis=0)
    return np.asarray(
        np.where(present.any(axis=0), sums / np.maximum(present.sum(axis=0), 1), np.nan)
    )


def present_rows(data: SiteData) -> Array:
    """Return every row that a unit has, D x R."""
    table, many = rows_of(data)
    whole = table[:]
    return whole if many == 1 else whole[:, ~np.isnan(whole).all(axis=0)]


def within_units(
    present: Array, contrast: Array, column: Array, covariates: Array, correlation: float
) -> WithinUnits:
    """Return deviations of rows from their unit's means, with λ for the correlation ρ.

    Parameters
    ----------
    present : array of bool, K x U
        Which rows a unit has.
    contrast, column : array, K x U
    covariates : array, p x K x U
    """
    rows = present.sum(axis=0)
    parts = present / np.maximum(rows, 1)
    full = (1 + (rows - 1) * correlation) / (np.maximum(rows, 1) * (1 - correlation))
    weight = np.clip(finite_values(full), 0.0, _MOST_WEIGHT) * (rows > 1)
    empty = WithinUnits(parts, weight, contrast, column, covariates)
    return WithinUnits(
        parts,
        weight,
        *(empty.centred(each) for each in (contrast, column, covariates)),
    )


def smaller_weight(weight: Array, means: Array, deviations: Array, most: float) -> Array:
    """Return λ, reduced if necessary to bound ‖f̄‖² + λ Σ ‖f_j - f̄‖² by ``most``.

    Parameters
    ----------
    means : array, p x U
    deviations : array, p x K x U
    """
    squares = np.square(deviations).sum(axis=(0, 1))
    room = np.maximum(most - np.square(means).sum(axis=0), 0.0)
    differs = squares > 0
    return np.minimum(weight, np.where(differs, room / np.where(differs, squares, 1), np.inf))
