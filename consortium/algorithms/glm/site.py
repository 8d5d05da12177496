"""A site's half of `glm`'s last round: sums over its persons, every block clipped by itself.

A hostile centre may choose the slopes and centres of the second query. Whatever they are, a
person's weights are at most ω, so that what is clipped by ω keeps the bound; every block is clipped
once more to the bound of the site's own plan, which comes from no query.
"""

from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.glm.in_parts import Outcomes, Part, outcomes_of, persons_in
from consortium.algorithms.glm.persons import (
    Persons,
    blocks_of,
    enough,
    pairs_of,
    persons_of,
    sloped_persons_of,
    slopes_and_centres,
)
from consortium.algorithms.query_arguments import array_argument, number_argument
from consortium.errors import ProtocolError
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


def glm_contrast(data: SiteData, query: Query, bound: Bound) -> Array:
    """Means over persons of c w R^-¼ u, c w t̃, squared differences of pairs, ‖c u‖²/V and c w.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2 + K, and (p + 1) for each group of outcomes
    """
    blocks = blocks_of(bound)
    with np.errstate(all="ignore"):
        people = persons_of(data, query)
        return _second_round(blocks, data, query, people, _group_weights(blocks, people, query))


def glm_slope(data: SiteData, query: Query, bound: Bound) -> Array:
    """As `glm_contrast`, with t of a column with limits, centred by its mean.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2 + K, and (p + 1) for each group of outcomes
    """
    blocks = blocks_of(bound)
    with np.errstate(all="ignore"):
        people = sloped_persons_of(data, query)
        return _second_round(blocks, data, query, people, _slope_weights(blocks, people, query))


def _second_round(
    blocks: BlocksBound, data: SiteData, query: Query, people: Persons, weights: _Weights
) -> Array:
    reach, limits = number_argument(query, "pair-reach"), number_argument(query, "limit")
    outcomes = outcomes_of(data, query, limits)
    limit, divisor = blocks.block("effects").norm, blocks.block("divisor")
    kept, sizes = people.kept & enough(query, outcomes.sums.known / len(outcomes)), outcomes.sizes
    left = clip_factors(limit, weights.largest * sizes)
    clip = left * kept
    weighted, taken = finite_values(clip * weights.rows), (1 - left) * kept
    least = divisor.norm - divisor.spread
    products = clip_values(weighted[0] * weights.contrast, least, divisor.norm)
    spread = np.square(clip) * outcomes.sums.squares / len(outcomes)
    means = _averages(blocks, query, outcomes, clip)
    pairs = pairs_of(query, len(clip))
    names = {"effects", "squares", "lost"} & {block.name for block in blocks.blocks}

    def rows_of(part: Part) -> dict[str, Array]:
        clipped = clip * outcomes.likeness.project(part.outcomes)
        told = np.vstack([clipped, means]) if part.last else clipped
        found = {
            "effects": weighted[:, None] * part.turned,
            "squares": _pairs(told, weights.rows[0], reach, pairs),
        }
        return found | ({"lost": taken * part.turned} if "lost" in names else {})

    parts = {
        **outcomes.sum_clipped(rows_of, {name: blocks.block(name).norm for name in names}),
        "divisor": products.sum(),
        "spread": clip_values(spread, 0.0, blocks.block("spread").norm).sum(),
        "balance": clip_columns(weighted, blocks.block("balance").norm).sum(axis=1),
        **_of_means(blocks, weights.centred, means),
    }
    if "lost" in names:
        usual = len(outcomes) * outcomes.likeness.root
        far = blocks.block("lean").norm / blocks.block("balance").norm
        lean = weights.rows * kept * np.log(np.square(sizes) / usual).clip(-far, far)
        parts |= _of_tails(blocks, taken * outcomes.sums.outcomes / len(outcomes), lean)
    return blocks.join({name: part / len(clip) for name, part in parts.items()})


def _averages(blocks: BlocksBound, query: Query, outcomes: Outcomes, clip: Array) -> Array:
    """Means over groups of clipped outcomes, if the plan has any."""
    if blocks.block("squares").entries == len(outcomes):
        return np.zeros((0, len(clip)))
    weights = array_argument(query, "averages", 2)
    if weights.shape[1] != len(outcomes):
        raise ProtocolError("The query's 'averages' don't fit the outcomes; discard it.")
    project = outcomes.likeness.project
    each = (weights[:, p.rows] @ (clip * project(p.outcomes)) for p in outcomes.parts())
    return np.asarray(sum(each))


def _of_tails(blocks: BlocksBound, tails: Array, lean: Array) -> dict[str, Array]:
    """Sums of the mean outcome of (1 - c) u, and of the weights times a norm's logarithm."""
    tail, most = blocks.block("tail").norm, blocks.block("lean").norm
    return {
        "tail": clip_values(tails, -tail, tail).sum(),
        "lean": clip_columns(lean, most).sum(axis=1),
    }


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
    """Weights w = (t - x̂_t - γᵀ(x - x̂))/ŝ, cut, and ω what they are cut to.

    Who is far from the mean is not clipped harder for it: then how much is taken of a long tail
    follows from how far persons vary alone.
    """
    count = len(people.covariates)
    slopes, centre = slopes_and_centres(query, count, count + 1)
    centred = people.covariates - centre[1:, None]
    left = people.contrast - centre[0] - slopes @ centred
    most = number_argument(query, "most")
    first = np.clip(left / number_argument(query, "spread"), -most, most)
    largest = np.full(first.shape, abs(most))
    return _with_others(blocks, query, _Weights(people.column, first[None], largest, centred))


def _with_others(blocks: BlocksBound, query: Query, found: _Weights) -> _Weights:
    """Rows of the other coefficients beside the contrast's, if the plan has them."""
    alone = blocks.block("effects").entries == len(array_argument(query, "outcomes", 1))
    if alone or "smoothness" in query.arguments:
        return found
    others = number_argument(query, "importance") * found.centred
    largest = column_norms(np.vstack([found.largest, others]))
    return replace(found, rows=np.vstack([found.rows, others]), largest=largest)


def _pairs(clipped: Array, weights: Array, reach: float, pairs: tuple[Array, Array]) -> Array:
    """Weighted squared differences of pairs, corrected for weights and variances that go together.

    With w² of either person as its own part, wᵢ²Vᵢ + wⱼ²Vⱼ is expected of a pair, over 2 W², as far
    as nothing is cut; where weights are equal the correction is zero.
    """
    one, other = (np.square(weights[each] / reach) for each in pairs)
    first, second = (persons_in(clipped, each) for each in pairs)
    share = (one + other) / 2
    squares = finite_values(np.minimum(1.0, share)) * np.square(first - second) / 2
    uneven = finite_values((one - other) / 4 / np.maximum(1.0, share))
    found: Array = squares + uneven * (np.square(first) - np.square(second))
    return found
