"""A site's half of `regression`: second moment of participants' vectors, and squared influences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.site_constants import site_constants
from consortium.kernels.moments import mean_packed_square
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns

if TYPE_CHECKING:
    from consortium.algorithms.regression.centre import Regression


def regression_moment(plan: Regression, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of z zᵀ, packed, for z = (x, c e, αy): P + S + 1 entries.

    e is one at the site's place, or at its only place, and zero elsewhere. ‖z‖² is clipped to the
    bound B, and z zᵀ has Frobenius norm ‖z‖². Two of them have an inner product (zᵀz′)² of zero or
    more. So replacing a participant moves the mean by at most √2·B/n. The place of the constant
    changes no norm.
    """
    return mean_packed_square(_weighted(plan, data, query), bound.norm)


def regression_influence(plan: Regression, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of (A z)² (qᵀz)², entry by entry: P + S numbers.

    A z are the factors of a participant's residual qᵀz in each coefficient's error. `influence` (A)
    and `residual` (q) follow from the released moment, and a hostile centre may choose them. For
    any choice, a participant's numbers together are clipped to the bound K, and none is negative:
    those of two participants have an inner product of zero or more, and replacing one moves the
    mean by at most √2·K/n.
    """
    columns = _weighted(plan, data, query)
    influence = query.arguments["influence"]
    residual = query.arguments["residual"]
    left = product_of_columns(residual[None], columns)
    with np.errstate(all="ignore"):
        squares = np.square(product_of_columns(influence, columns[:-1]) * left)
    return np.asarray(clip_columns(squares, bound.norm).sum(axis=1) / columns.shape[1])


def _weighted(plan: Regression, data: SiteData, query: Query) -> Array:
    """Return participants' z = (x, c e, αy): P + S + 1 rows."""
    table = data.table()
    target = plan.target
    return np.vstack(
        [
            clip_columns(np.delete(table, target, axis=0), plan.parameters.bound),
            plan.intercept * site_constants(plan.constants, query.site, table.shape[1]),
            plan.weight * np.clip(table[target : target + 1].astype(np.float64), -1.0, 1.0),
        ]
    )
