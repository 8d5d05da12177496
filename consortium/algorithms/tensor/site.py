"""The sites' half of `tensor`: second moments, and third ones whitened or whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Array, Local, Query, SiteData
from consortium.algorithms.site_constants import site_constants
from consortium.algorithms.tensor.kernels.tensor import mean_cube, mean_mixed_cube
from consortium.kernels.moments import mean_packed_square, pack_symmetric
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, column_norms, finite_columns

if TYPE_CHECKING:
    from consortium.algorithms.tensor.centre import Tensor


def _mixture_second(plan: Tensor, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean of z zᵀ, z = (x, c e), packed: (D + S)(D + S + 1)/2 entries.

    e is one at the site's place, or at its only place, and zero elsewhere. Its place changes no
    norm.
    """
    persons = clip_columns(data.table(), plan.reach)
    rows = plan.constant * site_constants(plan.constants, query.site, persons.shape[1])
    return mean_packed_square(np.vstack([persons, rows]), bound.norm)


def _mixture_third(plan: Tensor, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean of v ⊗ v ⊗ v, v = Wᵀ (x - o), packed: K (K + 1)(K + 2)/6 entries.

    o is the site's public offset from the first release. So the subtraction does not depend on
    other participants. For any offset, v is clipped to the bound.
    """
    persons = clip_columns(data.table(), plan.reach)
    with np.errstate(over="ignore", invalid="ignore"):
        if plan.constants > 1:
            persons = persons - query.arguments["offsets"][query.site][:, None]
        whitened = product_of_columns(query.arguments["whitening"].T, persons)
    return mean_cube(whitened, bound.norm)


def _topic_second(plan: Tensor, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean of symmetric products of two different words of a participant, packed."""
    del query
    words = _words(plan, data)
    lengths = [column_norms(word) for word in words]
    pairs = lengths[0] * (lengths[1] + lengths[2]) + lengths[1] * lengths[2]
    scales = bound.norm / np.maximum(pairs / 3, bound.norm)
    # No differences: their rounding may exceed the bound, and leave the cone.
    half = (words[0] * scales) @ (words[1] + words[2]).T + (words[1] * scales) @ words[2].T
    mean: Array = pack_symmetric(half + half.T) / (6 * words[0].shape[1])
    return mean


def _topic_third(plan: Tensor, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean of the symmetric product of three whitened words, packed."""
    whitening = query.arguments["whitening"].T
    u, v, w = (product_of_columns(whitening, word) for word in _words(plan, data))
    return mean_mixed_cube(u, v, w, bound.norm)


def _topic_cube(plan: Tensor, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean of the symmetric product of three words: D (D + 1)(D + 2)/6 entries.

    Words have no negative entries. So products of two participants have an inner product of at
    least 0.
    """
    del query
    u, v, w = _words(plan, data)
    return mean_mixed_cube(u, v, w, bound.norm)


def _words(plan: Tensor, data: SiteData) -> list[Array]:
    """Return three words of each participant, D x N each, entries from 0 to 1."""
    table = finite_columns(np.asarray(data.table(), dtype=np.float64))
    return [np.clip(table[word], 0.0, 1.0) for word in plan.words]


STATISTICS: Mapping[str, Local] = {
    "mixture_second": _mixture_second,
    "mixture_third": _mixture_third,
    "topic_second": _topic_second,
    "topic_third": _topic_third,
    "topic_cube": _topic_cube,
}
