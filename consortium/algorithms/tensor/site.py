"""The sites' half of `tensor`: second moments, and third ones whitened or whole."""

from collections.abc import Mapping

import numpy as np

from consortium.algorithms.base import Array, Local, Query, SiteData
from consortium.algorithms.query_arguments import (
    array_argument,
    feature_argument,
    index_argument,
    number_argument,
    place_argument,
    site_constants,
)
from consortium.algorithms.tensor.kernels.tensor import mean_cube, mean_mixed_cube
from consortium.errors import ProtocolError
from consortium.kernels.moments import mean_packed_square, pack_symmetric
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, column_norms, finite_columns


def _mixture_second(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean of z zᵀ, z = (x, c e), packed: (D + S)(D + S + 1)/2 entries.

    e is one in the place of the site, or in its only place, and zero in the others: where the
    constant stands changes no norm.
    """
    constant = number_argument(query, "constant")
    persons = clip_columns(data.table(), number_argument(query, "reach"))
    rows = constant * site_constants(query, persons.shape[1])
    return mean_packed_square(np.vstack([persons, rows]), bound.norm)


def _mixture_third(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean of v ⊗ v ⊗ v, v = Wᵀ (x - o), packed: K (K + 1)(K + 2)/6 entries.

    o is the site's offset as the first release told it: public, so that what is taken from a
    person depends on nobody else. Whatever it is, v is clipped to the bound.
    """
    whitening = feature_argument(query, "whitening", data.features)
    persons = clip_columns(data.table(), number_argument(query, "reach"))
    with np.errstate(over="ignore", invalid="ignore"):
        whitened = whitening.T @ (persons - _offset(data, query)[:, None])
    return mean_cube(whitened, bound.norm)


def _offset(data: SiteData, query: Query) -> Array:
    """Look up what is taken from the site's persons."""
    offsets = array_argument(query, "offsets", 2)
    if offsets.shape[1] != data.features:
        raise ProtocolError("The query's 'offsets' don't fit the data; discard it.")
    return np.asarray(offsets[place_argument(query, len(offsets))])


def _topic_second(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean of the symmetric products of two different words of a person, packed."""
    words = _words(data, query, index_argument(query, "size", data.features + 1))
    lengths = [column_norms(word) for word in words]
    pairs = lengths[0] * (lengths[1] + lengths[2]) + lengths[1] * lengths[2]
    scales = bound.norm / np.maximum(pairs / 3, bound.norm)
    # No differences: what they round off may be more than the bound, and leave the cone.
    half = (words[0] * scales) @ (words[1] + words[2]).T + (words[1] * scales) @ words[2].T
    mean: Array = pack_symmetric(half + half.T) / (6 * words[0].shape[1])
    return mean


def _topic_third(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean of the symmetric product of three whitened words, packed."""
    whitening = array_argument(query, "whitening", 2)
    words = _words(data, query, len(whitening))
    with np.errstate(over="ignore", invalid="ignore"):
        whitened = [whitening.T @ word for word in words]
    return mean_mixed_cube(whitened[0], whitened[1], whitened[2], bound.norm)


def _topic_cube(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean of the symmetric product of three words, packed: D (D + 1)(D + 2)/6 entries.

    Words have no negative entries, so that two persons' products don't point apart.
    """
    words = _words(data, query, index_argument(query, "size", data.features + 1))
    return mean_mixed_cube(words[0], words[1], words[2], bound.norm)


def _words(data: SiteData, query: Query, size: int) -> list[Array]:
    """Three words of each person, size x N each, entries from 0 to 1."""
    starts = array_argument(query, "starts", 1)
    sound = len(starts) == 3 and bool(np.all((starts >= 0) & (starts % 1 == 0)))
    if not sound or size < 1 or (starts + size > data.features).any():
        raise ProtocolError("The query's 'starts' don't fit the data; discard it.")
    table = finite_columns(np.asarray(data.table(), dtype=np.float64))
    return [np.clip(table[int(s) : int(s) + size], 0.0, 1.0) for s in starts]


STATISTICS: Mapping[str, Local] = {
    "mixture_second": _mixture_second,
    "mixture_third": _mixture_third,
    "topic_second": _topic_second,
    "topic_third": _topic_third,
    "topic_cube": _topic_cube,
}
