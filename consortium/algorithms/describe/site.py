"""Statistics of a site for `describe`: counts of cells, and clipped values by group.

A hostile centre may send centres and scales of any size. Every participant's contribution is
clipped by itself to the bound of the site's own plan.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Query, SiteData
from consortium.algorithms.describe.entries import Variable
from consortium.algorithms.describe.kernels.bins import bins_of, reaches_end
from consortium.base.array import Array
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.clipping import clip_columns, clip_factors, column_norms, finite_values

if TYPE_CHECKING:
    from consortium.algorithms.describe.centre import Describe


def describe_cells(plan: Describe, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return the fraction of participants in each group, and in each cell of each variable.

    A participant is in one group and in one cell of each variable. So the block of V variables has
    norm √V, and two participants are at most √(2V) apart.
    """
    del query
    table = data.table().astype(np.float64)
    groups = groups_of(plan, table)
    many = len(plan.entries.levels)
    parts = [
        np.bincount(groups * each.cells + cells_of(each, table), minlength=many * each.cells)
        for each in plan.entries.variables
    ]
    found = {"cells": np.concatenate(parts) / table.shape[1]}
    if many > 1:
        found["groups"] = np.bincount(groups, minlength=many) / table.shape[1]
    return bound.join(found)


def describe_sums(plan: Describe, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return means of clipped values by group, of their squares, and of the clipping factors.

    With x the participant's values in learned units, clipped to norm B, the block of moments is
    (x, x∘x/(√2 B)) in the place of the participant's group. Its squares add no privacy loss: see
    docs/analyses/describe.md.
    """
    table = data.table().astype(np.float64)
    groups = groups_of(plan, table)
    reach = bound.block("moments").spread / 2.0
    with np.errstate(all="ignore"):
        values = _in_learned_units(plan, table, groups, query)
        factors = clip_factors(reach, column_norms(values))
        clipped = clip_columns(values, reach)
        squares = clipped * (clipped / (math.sqrt(2.0) * reach))
    stacked = np.vstack([clipped, squares])
    inside = [groups == level for level in range(len(plan.entries.levels))]
    moments = np.stack([np.where(own, stacked, 0.0).sum(axis=1) for own in inside])
    kept = np.array([np.where(own, factors, 0.0).sum() for own in inside])
    many = table.shape[1]
    return bound.join({"moments": moments / many, "kept": kept / many})


def groups_of(plan: Describe, table: Array) -> NDArray[np.int64]:
    """Return the number of each participant's group for `describe`, from 0."""
    groups = plan.entries.groups
    if groups is None:
        return np.zeros(table.shape[1], dtype=np.int64)
    return _levels_of(groups, table)


def cells_of(variable: Variable, table: Array) -> NDArray[np.int64]:
    """Return the cell of each participant, from 0; the last is that of missing values.

    A missing value counts as the middle, or the first level, if no value may be missing.
    """
    values = table[list(variable.rows)]
    missing = np.isnan(values).any(axis=0)
    if variable.kind == "levels":
        found = _levels_of(variable, table)
    else:
        limited = np.where(np.isnan(values), 0.0, np.clip(values, -1.0, 1.0))
        found = bins_of(limited[0], variable.edges)
        if variable.kind == "curve":
            found = found + variable.bins * (limited[1] > 0)
            found = np.where(reaches_end(limited[0]), 2 * variable.bins, found)
    return np.where(missing & variable.gaps, variable.filled, found).astype(np.int64)


def _levels_of(variable: Variable, table: Array) -> NDArray[np.int64]:
    values = table[list(variable.rows)]
    if len(values) == 1:
        return np.asarray(values[0] > 0, dtype=np.int64)
    return np.asarray(np.argmax(np.where(np.isnan(values), -np.inf, values), axis=0))


def _in_learned_units(
    plan: Describe, table: Array, groups: NDArray[np.int64], query: Query
) -> Array:
    """Return the numbers, d x n, from the centres of their groups and over their scales.

    A missing value is 0.
    """
    rows = [each.rows[0] for each in plan.entries.numbers]
    values = np.clip(table[rows], -1.0, 1.0)
    centres = query.arguments["centres"][groups].T
    return finite_values((values - centres) / query.arguments["scales"][:, None])
