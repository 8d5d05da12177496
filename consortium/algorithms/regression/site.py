"""A site's half of `regression`: the second moment of explaining entries, constant and target."""

from __future__ import annotations

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.query_arguments import index_argument, number_argument
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns


def regression_moment(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of z zᵀ, packed: (P + 2)(P + 3)/2 entries."""
    target = index_argument(query, "target", data.features)
    reach, constant, weight = (
        number_argument(query, name) for name in ("reach", "intercept", "weight")
    )
    table = data.table()
    columns = np.empty((len(table) + 1, table.shape[1]))
    columns[:-2] = clip_columns(np.delete(table, target, axis=0), reach)
    columns[-2] = constant
    columns[-1] = weight * np.clip(table[target].astype(np.float64), -1.0, 1.0)
    return mean_packed_square(columns, bound.norm)
