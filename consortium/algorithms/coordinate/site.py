"""A site's half of `coordinate`: means and products of weighted entries, view by view clipped."""

from collections.abc import Iterator

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.site_constants import site_constants
from consortium.errors import PrivacyError
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns
from consortium.privacy.view_bounds import PartsBound


def coordinate_mean(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of their weighted entries, length D."""
    del query
    means = [part.mean(axis=1) for part in _weighted_columns(data, _parts(bound))]
    return np.concatenate(means)


def coordinate_moment(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of z zᵀ, packed, z = (weighted entries, c e): D + S entries.

    e is one in the place of the site, or in its only place; how many there are is the bound's, so
    that no query decides it. The constant is the same whoever the person is: a view that changes
    alone moves z zᵀ as `PartsBound.part_spread` says, wherever the constant stands.
    """
    known = _parts(bound)
    columns = np.vstack(list(_weighted_columns(data, known)))
    constant = known.constant * site_constants(known.places, query.site, columns.shape[1])
    return mean_packed_square(np.vstack([columns, constant]), known.norm)


def _weighted_columns(data: SiteData, bound: PartsBound) -> Iterator[Array]:
    """Yield every part of the weighted vectors, each clipped by itself: entries x M_s."""
    table, start = data.table(), 0
    for part in bound.parts:
        rows = np.nan_to_num(table[start : start + part.entries].astype(np.float64))
        start += part.entries
        yield part.weight * clip_columns(np.clip(rows, -1.0, 1.0), part.radius)


def _parts(bound: Bound) -> PartsBound:
    if not isinstance(bound, PartsBound):
        raise PrivacyError("The plan's bound tells nothing of the views; refuse the query.")
    return bound
