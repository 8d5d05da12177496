"""Predictors of a site's participants: the contrast's column and the covariates, clipped.

Each entry is first clipped to public limits. A participant who lacks a value contributes 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Query, SiteData
from consortium.algorithms.glm.declared import clipped_columns
from consortium.algorithms.glm.groups import capped_weights
from consortium.algorithms.glm.open_table import Curve
from consortium.algorithms.glm.rows import (
    Table,
    WithinUnits,
    rows_of,
    smaller_weight,
    within_units,
)
from consortium.algorithms.units import Units
from consortium.base.array import Array
from consortium.privacy.clipping import clip_columns

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_AT_ONCE = 1024  # entries of a chunk


@dataclass(frozen=True, eq=False)
class Predictors:
    """Contrast and covariates of every participant of a site, in public units."""

    contrast: Array
    """t̃ = t - q_s, or t of a column with limits, length n; 0 for excluded participants."""
    covariates: Array
    """x, clipped, p x n; 0 for excluded participants."""
    weight: float
    """a_s."""
    largest: float
    """m_s; 0 for a column with limits."""
    kept: Array
    """Participants who have group and covariates, boolean, length n."""
    column: Array = field(default_factory=lambda: np.zeros(0))
    """t of a column with limits, length n, before it was clipped together with the covariates.
    Outcomes depend on this value and not on the clipped one."""
    within: WithinUnits | None = None
    """Deviations of rows for units of several rows. All other fields are then means of units."""
    whole: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """Column of the contrast and covariates of every row, as an open cohort's curve takes them,
    (1 + p) x n; empty without one."""


def group_predictors(plan: Glm, data: SiteData, query: Query) -> Predictors:
    """Read the group and the covariates of a site's participants."""
    table, many = rows_of(data)
    own, weight = _part_and_weight(plan, query)
    group = table[plan.columns.group.row].astype(np.float64)
    x, kept = _covariates(plan, table, query.site)
    kept &= np.isfinite(group)
    sides = np.where(group > plan.columns.threshold, 0.5, -0.5)
    whole = _whole_columns(plan, np.vstack([sides, x]) * kept, query.site)
    x = clip_columns(x, plan.design.covariate_reach) * kept
    contrast = np.where(kept, (group > plan.columns.threshold) - own, 0.0)
    found = Predictors(contrast, x, weight, max(own, 1 - own), kept, whole=whole)
    units = plan.parameters.units
    return found if units is None else _by_unit(plan, units, found, table, many)


def slope_predictors(plan: Glm, data: SiteData, query: Query) -> Predictors:
    """Read a column with limits and the covariates of a site's participants."""
    table, many = rows_of(data)
    columns, kept = _covariates(plan, table, query.site)
    clipped = clip_columns(columns, plan.design.covariate_reach) * kept
    found = Predictors(
        contrast=clipped[0],
        covariates=clipped[1:],
        weight=1.0,
        largest=0.0,
        kept=kept,
        column=columns[0] * kept,
        whole=_whole_columns(plan, columns * kept, query.site),
    )
    units = plan.parameters.units
    return found if units is None else _by_unit(plan, units, found, table, many)


def _by_unit(plan: Glm, units: Units, rows: Predictors, table: Table, many: int) -> Predictors:
    """Return units instead of rows; a row that lacks any value is ignored."""
    present = (rows.kept & _complete(table, plan.columns.outcomes)).reshape(many, -1)
    shape = len(rows.covariates), many, present.shape[1]
    column = rows.column if len(rows.column) else rows.contrast
    contrast = rows.contrast.reshape(shape[1:])
    column = column.reshape(shape[1:])
    covariates = rows.covariates.reshape(shape)
    within = within_units(present, contrast, column, covariates, units.correlation)
    contrast, column = ((each * within.parts).sum(axis=0) for each in (contrast, column))
    covariates = within.mean(rows.covariates)
    lift = plan.lift
    means = covariates
    deviations = within.covariates
    weight = within.weight
    if plan.columns.slope:  # which is bounded together with the covariates
        means = np.vstack([contrast, means])
        deviations = np.concatenate([within.contrast[None], deviations])
    else:
        most = lift * rows.largest**2
        weight = smaller_weight(weight, contrast[None], within.contrast[None], most)
    if len(means):
        most = lift * plan.design.covariate_reach**2
        weight = smaller_weight(weight, means, deviations, most)
    kept = np.asarray(present.any(axis=0))
    own = replace(within, weight=weight)
    return Predictors(
        contrast=contrast,
        covariates=covariates,
        weight=rows.weight,
        largest=rows.largest,
        kept=kept,
        column=column,
        within=own,
        whole=rows.whole,
    )


def _whole_columns(plan: Glm, columns: Array, site: int) -> Array:
    """Return columns with the site's declared means added again, for an open cohort's curve."""
    if plan.open is None:
        return np.zeros((0, columns.shape[1]))
    declared = np.nan_to_num(plan.declared[site])
    whole = columns.copy()
    whole[len(whole) - len(declared) :] += declared[:, None]
    return whole


def curve_of(plan: Glm, predictors: Predictors) -> Curve | None:
    """Return the curve of an open cohort for a site's participants; None without one."""
    return None if plan.open is None else Curve(plan.open.slopes, predictors.whole)


def _complete(table: Table, entries: Array) -> Array:
    """Return which rows have a number in each of some entries, computed in chunks."""
    complete = np.ones(table.shape[1], dtype=np.bool_)
    for start in range(0, len(entries), _AT_ONCE):
        complete &= np.isfinite(table[entries[start : start + _AT_ONCE]]).all(axis=0)
    return complete


def sides_of(plan: Glm, data: SiteData) -> Array:
    """Return ½ for participants of the second group, -½ for the first, and 0 if it is missing.

    For units it is the mean over rows, which is between these values.
    """
    table, many = rows_of(data)
    group = table[plan.columns.group.row].astype(np.float64)
    sides = np.where(group > plan.columns.threshold, 0.5, -0.5)
    present = np.isfinite(group)
    sides, present = (each.reshape(many, -1) for each in (np.where(present, sides, 0.0), present))
    return np.asarray(sides.sum(axis=0) / np.maximum(present.sum(axis=0), 1))


def _part_and_weight(plan: Glm, query: Query) -> tuple[float, float]:
    """Return q_s and a_s. If q_s was released, a_s is computed from it here."""
    if plan.columns.slope:
        own = plan.groups.proportions
        weight = plan.clipping.weights
        return float(own[query.site]), float(weight[query.site])
    part = query.arguments["proportions"][query.site]
    known = np.clip(part if np.isfinite(part) else 0.5, 0.0, 1.0)
    return float(known), float(capped_weights(known, plan.clipping.contrast_reach))


def _covariates(plan: Glm, table: Table, site: int) -> tuple[Array, Array]:
    """Return the clipped columns, centred on the site's declared means, and complete rows."""
    entries, means, scales = clipped_columns(plan.columns)
    rows = np.array([entry.row for entry in entries], dtype=np.int64)
    means = means + scales * np.nan_to_num(plan.declared[site])
    taken = plan.columns.products.take(table, rows)
    x, known = standardize_outcomes(taken, means, scales, plan.design.covariate_limit)
    return x, np.asarray(known.all(axis=0))


def standardize_outcomes(
    rows: Array, means: Array, scales: Array, limit: float
) -> tuple[Array, Array]:
    """Return standardized values, clipped and 0 if missing, and the mask of known values."""
    values = np.subtract(rows, means[:, None], dtype=np.float64)
    values /= scales[:, None]
    known = ~np.isnan(values)
    if not known.all():
        np.copyto(values, 0.0, where=~known)
    return np.clip(values, -limit, limit, out=values), known
