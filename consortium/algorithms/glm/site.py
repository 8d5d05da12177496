"""A site's half of `glm`: sums over its persons, every block clipped by itself.

A hostile centre may choose the slopes and centres of the second query. Whatever they are, a
person's weights are at most ω, so that what is clipped by ω keeps the bound; every block is clipped
once more to the bound of the site's own plan, which comes from no query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.glm.choice import BELOW
from consortium.algorithms.glm.persons import (
    Persons,
    outcomes_of,
    persons_of,
    places_of,
    sides_of,
    sloped_persons_of,
    slopes_and_centres,
)
from consortium.algorithms.glm.smooth import likeness_of
from consortium.algorithms.query_arguments import array_argument, index_argument, number_argument
from consortium.errors import PrivacyError, ProtocolError
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import (
    clip_columns,
    clip_factors,
    clip_values,
    column_norms,
    finite_values,
    sum_clipped_products,
)

_MOST_SEED = 1 << 31


@dataclass(frozen=True, eq=False)
class _Weights:
    """What a person's outcomes are multiplied by.

    Parameters
    ----------
    contrast : array, length n
        t̃.
    rows : array, K x n
        w of the contrast, and of every other coefficient that is released.
    largest : array, length n
        ω, which the norm of a person's rows is never above.
    centred : array, p x n
        a (x - x̂).
    """

    contrast: Array
    rows: Array
    largest: Array
    centred: Array


def glm_counts(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of t - ½, in the site's own place.

    Who is replaced moves it from one half to the other at the most, which is 1 over the persons,
    whatever is asked: nothing in the query is multiplied with.

    Returns
    -------
    array, length S
    """
    blocks = _blocks(bound)
    block = blocks.block("counts")
    if not query.site < block.entries:
        raise ProtocolError("The study has no place for this site's count; discard the query.")
    sides, found = sides_of(data, query), np.zeros(block.entries)
    found[query.site] = np.clip(sides, -block.norm, block.norm).sum() / len(sides)
    return blocks.join({"counts": found})


def glm_covariates(data: SiteData, query: Query, bound: Bound) -> Array:
    """Means over persons of a t̃ x, of a x xᵀ (packed) and of x in the site's own place.

    Returns
    -------
    array, length p + p (p + 1) / 2 + S p
    """
    blocks = _blocks(bound)
    with np.errstate(all="ignore"):
        people = persons_of(data, query)
        return _first_round(blocks, query, people, people.covariates)


def glm_slope_covariates(data: SiteData, query: Query, bound: Bound) -> Array:
    """Means over persons of t x, of x xᵀ (packed) and of (t, x) in the site's own place.

    Returns
    -------
    array, length p + p (p + 1) / 2 + S (p + 1)
    """
    blocks = _blocks(bound)
    with np.errstate(all="ignore"):
        people = sloped_persons_of(data, query)
        columns = np.vstack([people.contrast, people.covariates])
        return _first_round(blocks, query, people, columns)


def glm_contrast(data: SiteData, query: Query, bound: Bound) -> Array:
    """Means over persons of c w R^-¼ u, c w t̃, squared differences of pairs and ‖c u‖²/V.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2, and (p + 1) for each group of outcomes
    """
    blocks = _blocks(bound)
    with np.errstate(all="ignore"):
        people = persons_of(data, query)
        return _second_round(blocks, data, query, people, _group_weights(blocks, people, query))


def glm_slope(data: SiteData, query: Query, bound: Bound) -> Array:
    """As `glm_contrast`, with t of a column with limits, centred by its released mean.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2, and (p + 1) for each group of outcomes
    """
    blocks = _blocks(bound)
    with np.errstate(all="ignore"):
        people = sloped_persons_of(data, query)
        return _second_round(blocks, data, query, people, _slope_weights(blocks, people, query))


def _blocks(bound: Bound) -> BlocksBound:
    if not isinstance(bound, BlocksBound):
        raise PrivacyError("A release of blocks needs a bound for each; plan it anew.")
    return bound


def _first_round(blocks: BlocksBound, query: Query, people: Persons, columns: Array) -> Array:
    count, x = len(people.contrast), people.covariates
    means = np.zeros((places_of(query), len(columns)))
    own = clip_columns(columns, blocks.block("means").norm).sum(axis=1) / count
    means[query.site] = own
    if not len(x):
        return blocks.join({"means": means})
    products = people.weight * people.contrast * x
    contrast = clip_columns(products, blocks.block("contrast").norm).sum(axis=1) / count
    moment = mean_packed_square(np.sqrt(people.weight) * x, blocks.block("moment").norm)
    return blocks.join({"contrast": contrast, "moment": moment, "means": means})


def _second_round(
    blocks: BlocksBound, data: SiteData, query: Query, people: Persons, weights: _Weights
) -> Array:
    reach, seed = number_argument(query, "pair-reach"), index_argument(query, "seed", _MOST_SEED)
    outcomes, kept = outcomes_of(data, query)
    likeness = likeness_of(data, query, len(outcomes))
    turned = likeness.encode(outcomes)
    limit, most = blocks.block("effects").norm, blocks.block("divisor").norm
    clip = clip_factors(limit, weights.largest * column_norms(turned)) * (people.kept & kept)
    weighted, clipped = finite_values(clip * weights.rows), clip * likeness.project(outcomes)
    rows = (weighted[:, None] * turned).reshape(-1, len(clip))
    products = clip_values(weighted[0] * weights.contrast, -BELOW * most, most)
    spread = np.square(clipped).sum(axis=0) / len(clipped)
    means = _averages(blocks, query, clipped)
    pairs = _pairs(
        np.vstack([clipped, means]),
        weights.rows[0],
        reach,
        (seed, query.site),
    )
    parts = {
        "effects": clip_columns(rows, limit).sum(axis=1),
        "divisor": products.sum(),
        "squares": clip_columns(pairs, blocks.block("squares").norm).sum(axis=1),
        "spread": clip_values(spread, 0.0, blocks.block("spread").norm).sum(),
        **_of_means(blocks, weights.centred, means),
    }
    return blocks.join({name: part / len(clip) for name, part in parts.items()})


def _averages(blocks: BlocksBound, query: Query, outcomes: Array) -> Array:
    """Means over groups of outcomes, if the plan has any."""
    if blocks.block("squares").entries == len(outcomes):
        return np.zeros((0, outcomes.shape[1]))
    weights = array_argument(query, "averages", 2)
    if weights.shape[1] != len(outcomes):
        raise ProtocolError("The query's 'averages' don't fit the outcomes; discard it.")
    return np.asarray(weights @ outcomes)


def _of_means(blocks: BlocksBound, centred: Array, means: Array) -> dict[str, Array]:
    """Sums of a (x - x̂) ūᵀ and of ū², ū the means of a person's clipped outcomes."""
    planned, found = {block.name: block.norm for block in blocks.blocks}, dict[str, Array]()
    if "products" in planned:
        found["products"] = sum_clipped_products(centred, means, planned["products"])
    if "spreads" in planned:
        found["spreads"] = clip_columns(np.square(means), planned["spreads"]).sum(axis=1)
    return found


def _group_weights(blocks: BlocksBound, people: Persons, query: Query) -> _Weights:
    """Weights w = a (t̃ - γᵀ(x - x̂)), at most ω = a (m + |γᵀ(x - x̂)|), alike in both groups."""
    count = len(people.covariates)
    if not count:
        largest = np.full(len(people.contrast), people.weight * people.largest)
        first = (people.weight * people.contrast)[None]
        return _Weights(people.contrast, first, largest, people.covariates)
    slopes, centre = slopes_and_centres(query, count, count)
    centred = people.covariates - centre[:, None]
    shift = slopes @ centred
    first = people.weight * (people.contrast - shift)
    largest = people.weight * (people.largest + np.abs(shift))
    found = _Weights(people.contrast, first[None], largest, people.weight * centred)
    return _with_others(blocks, query, found)


def _slope_weights(blocks: BlocksBound, people: Persons, query: Query) -> _Weights:
    """Weights w = t - x̂_t - γᵀ(x - x̂), cut, and ω = |w|."""
    count = len(people.covariates)
    slopes, centre = slopes_and_centres(query, count, count + 1)
    centred = people.covariates - centre[1:, None]
    contrast = people.contrast - centre[0]
    most = number_argument(query, "most")
    first = np.clip(contrast - slopes @ centred, -most, most)
    contrast = people.column - centre[0]
    return _with_others(blocks, query, _Weights(contrast, first[None], np.abs(first), centred))


def _with_others(blocks: BlocksBound, query: Query, found: _Weights) -> _Weights:
    """Rows of the other coefficients beside the contrast's, if the plan has them."""
    alone = blocks.block("effects").entries == len(array_argument(query, "outcomes", 1))
    if alone or "smoothness" in query.arguments:
        return found
    others = number_argument(query, "importance") * found.centred
    largest = column_norms(np.vstack([found.largest, others]))
    return replace(found, rows=np.vstack([found.rows, others]), largest=largest)


def _pairs(clipped: Array, weights: Array, reach: float, seed: tuple[int, int]) -> Array:
    """Weighted squared differences of persons who were paired by lot, whoever they are.

    The draw is public and knows places in the table only: replacing a person changes one pair.
    """
    order = np.random.default_rng(seed).permutation(len(weights))
    half = len(order) // 2
    one, other = order[:half], order[half : 2 * half]
    share = (np.square(weights[one] / reach) + np.square(weights[other] / reach)) / 2
    squares = np.square(clipped[:, one] - clipped[:, other]) / 2
    weighted: Array = finite_values(np.minimum(1.0, share)) * squares
    return weighted
