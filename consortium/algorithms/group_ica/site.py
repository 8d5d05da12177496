"""The site's half of group ICA: the mean of its persons' projectors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import cast

import numpy as np

from consortium.algorithms.base import Array, Places, Query, SiteData
from consortium.algorithms.query_arguments import index_argument, number_argument
from consortium.errors import ProtocolError
from consortium.kernels.moments import add_second_moment, pack_symmetric
from consortium.kernels.projectors import GlobalSignal, leading_directions, reduce_series
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.privacy.bounds import Bound

MOST_DIRECTIONS = 101


def mean_projector(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of U Uᵀ, packed: d(d+1)/2 entries.

    A person's K directions are those of Φᵀ X; their projector has norm √K or less, and nothing
    that a query holds makes it larger than the bound.
    """
    count = index_argument(query, "directions", MOST_DIRECTIONS)
    cutoff, word = number_argument(query, "cutoff"), query.arguments.get("global_signal")
    if count < 1 or word not in ("keep", "remove"):
        raise ProtocolError(
            "The query's 'directions' or 'global_signal' is nothing that is asked; discard it."
        )
    basis = _basis(data, cutoff)
    narrow = basis
    size = data.features if basis is None else basis.shape[1]
    total = np.zeros((size, size), order="F")
    scale = min(1.0, bound.norm / math.sqrt(count))
    for block in data.blocks():
        if narrow is not None and narrow.dtype != block.dtype:
            narrow = narrow.astype(block.dtype)
        series = reduce_series(block, narrow, cast("GlobalSignal", word))
        directions = leading_directions(series, count)
        if directions.shape[1]:
            total = add_second_moment(total, directions, scale)
    return pack_symmetric(total) / len(data.lengths)


def _basis(data: SiteData, cutoff: float) -> Array | None:
    """Φ, or nothing for the identity."""
    places = data.extent.places
    if not cutoff:
        return None
    if places is None:
        raise ProtocolError("The query's 'cutoff' is for voxels in mm; discard it.")
    return smooth_basis(places, cutoff).matrix


@lru_cache(maxsize=4)  # public, and asked for by plan, site and centre
def smooth_basis(places: Places, cutoff: float) -> SmoothBasis:
    """The basis of a study; places are one object for each space."""
    return SmoothBasis(places.coordinates, cutoff)
