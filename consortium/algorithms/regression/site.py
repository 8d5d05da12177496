"""A site's half of `regression`: the second moment of explaining entries, constants and target."""

from __future__ import annotations

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.query_arguments import (
    index_argument,
    number_argument,
    site_constants,
)
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns


def regression_moment(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of z zᵀ, packed, for z = (x, c e, αy): P + S + 1 entries.

    e is one in the place of the site, or in its only place, and zero in the others. Whatever the
    query says, ‖z‖² is clipped to the bound B, and z zᵀ has Frobenius norm ‖z‖². Two of them have
    an inner product (zᵀz′)² of zero or more, so that replacing a person moves the mean by
    √2·B/n at most. That the constant stands in one place or another changes no norm.
    """
    target = index_argument(query, "target", data.features)
    reach, constant, weight = (
        number_argument(query, name) for name in ("reach", "intercept", "weight")
    )
    table = data.table()
    columns = np.vstack(
        [
            clip_columns(np.delete(table, target, axis=0), reach),
            constant * site_constants(query, table.shape[1]),
            weight * np.clip(table[target : target + 1].astype(np.float64), -1.0, 1.0),
        ]
    )
    return mean_packed_square(columns, bound.norm)
