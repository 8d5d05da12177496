"""A site's half of `coordinate`: means and products of weighted entries, view by view clipped."""

import math
from collections.abc import Iterator

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.site_constants import site_constants
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.clipping import clip_columns
from consortium.privacy.view_bounds import PartsBound


def coordinate_mean(_plan: object, data: SiteData, query: Query, bound: PartsBound) -> Array:
    """Return the means of `coordinate`: weighted entries z, and z²/(√2 P), 2 D numbers.

    P is the largest norm of the entry's part, which is clipped by itself. The squares cost nothing,
    as in `average` (`PartsBound`).
    """
    del query
    means = []
    squares = []
    for own, part in zip(_weighted_columns(data, bound), bound.parts, strict=True):
        means.append(own.mean(axis=1))
        squares.append((own * (own / (math.sqrt(2.0) * part.norm))).mean(axis=1))
    return np.concatenate([*means, *squares])


def coordinate_moment(_plan: object, data: SiteData, query: Query, bound: PartsBound) -> Array:
    """Return the mean over participants of z zᵀ, packed, z = (weighted entries, c e): D + S.

    e is one at the site's place, or at its only place. The bound fixes the number of places, and
    not a query. The constant is the same for every participant: a change of only one view moves
    z zᵀ by at most `PartsBound.part_spread`, for any place of the constant.
    """
    columns = np.vstack(list(_weighted_columns(data, bound)))
    constant = bound.constant * site_constants(bound.places, query.site, columns.shape[1])
    return mean_packed_square(np.vstack([columns, constant]), bound.norm)


def _weighted_columns(data: SiteData, bound: PartsBound) -> Iterator[Array]:
    """Yield every part of the weighted vectors, each clipped by itself: entries x M_s."""
    table = data.table()
    start = 0
    for part in bound.parts:
        rows = np.nan_to_num(table[start : start + part.entries].astype(np.float64))
        start += part.entries
        yield part.weight * clip_columns(np.clip(rows, -1.0, 1.0), part.radius)
