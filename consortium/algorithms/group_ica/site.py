"""The site's half of group ICA: the mean of its persons' projectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import cast

import numpy as np

from consortium.algorithms.base import Array, Places, Query, SiteData
from consortium.algorithms.over_persons import sum_over_persons
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
    basis = basis_at(data.extent.places, cutoff)
    size = data.features if basis is None else basis.shape[1]
    scale = min(1.0, bound.norm / math.sqrt(count))
    part = partial(_sum_projectors, size, basis, cast("GlobalSignal", word), count, scale)
    return pack_symmetric(sum_over_persons(data, part, (size, size))) / len(data.lengths)


def _sum_projectors(
    size: int,
    basis: Array | None,
    global_signal: GlobalSignal,
    count: int,
    scale: float,
    blocks: Iterable[Array],
) -> Array:
    total = np.zeros((size, size), order="F")
    for directions in directions_of(blocks, basis, global_signal, count):
        if directions.shape[1]:
            total = add_second_moment(total, directions, scale)
    return total


def directions_of(
    blocks: Iterable[Array], basis: Array | None, global_signal: GlobalSignal, count: int
) -> Iterator[Array]:
    """Each person's leading directions in the basis, d x K or fewer."""
    narrow = basis
    for block in blocks:
        if narrow is not None and narrow.dtype != block.dtype:
            narrow = narrow.astype(block.dtype)
        yield leading_directions(reduce_series(block, narrow, global_signal), count)


def basis_at(places: Places | None, cutoff: float) -> Array | None:
    """Φ, or nothing for the identity.

    Raises
    ------
    ProtocolError
        If there are waves of something that has no places.
    """
    if not cutoff:
        return None
    if places is None:
        raise ProtocolError("The query's 'cutoff' is for voxels in mm; discard it.")
    return smooth_basis(places, cutoff).matrix


@lru_cache(maxsize=4)  # public, and asked for by plan, site and centre
def smooth_basis(places: Places, cutoff: float) -> SmoothBasis:
    """The basis of a study; places are one object for each space."""
    return SmoothBasis(places.coordinates, cutoff)
