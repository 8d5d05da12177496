"""A site's half of `glm`'s last round: sums over its persons, every block clipped by itself.

A hostile centre may choose what was released: norms, slopes and centres, of any size. Whatever they
are, a person's weights are at most ω, so that what is clipped by ω keeps the bound; every block is
clipped once more to the bound of the site's own plan.
"""

from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.glm.in_parts import (
    OutcomePart,
    Outcomes,
    factors_within,
    person_columns,
)
from consortium.algorithms.glm.persons import (
    Persons,
    persons_of,
    sloped_persons_of,
)
from consortium.algorithms.glm.plan import GlmPlan
from consortium.algorithms.glm.ring import Pairs, clips_in, ring_of
from consortium.algorithms.glm.rows import rows_of
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.clipping import (
    clip_columns,
    clip_values,
    clip_vector,
    column_norms,
    finite_values,
)

_LARGEST_SLOPES, _LEAST_SPREAD = 1e3, 0.1
_NONE = np.zeros(0)  # slopes, without covariates
_ABOVE, _BELOW = "above", "below"  # zero, of pairs' squares


@dataclass(frozen=True, eq=False)
class _Weights:
    """What a person's outcomes are multiplied by."""

    contrast: Array
    """Length n. t̃."""
    rows: Array
    """K x n. w of the contrast, and of every other coefficient that is released."""
    largest: Array
    """Length n. ω, which the norm of a person's rows is never above."""
    centred: Array
    """p x n. a (x - x̂)."""
    within: Array | None = None
    """rows x n. Of units with several rows: what the contrast's w differs by from row to row."""


def glm_contrast(plan: GlmPlan, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Means over persons of c w R^-¼ u, c w t̃, squared differences of pairs, ‖c u‖²/V and c w.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2 + K, and (p + 1) for each group of outcomes
    """
    with np.errstate(all="ignore"):
        people = persons_of(plan, data, query)
        weights = _group_weights(plan, people, query)
        return _second_round(plan, data, query, bound, people, weights)


def glm_slope(plan: GlmPlan, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """As `glm_contrast`, with t of a column with limits, centred by its mean.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2 + K, and (p + 1) for each group of outcomes
    """
    with np.errstate(all="ignore"):
        people = sloped_persons_of(plan, data, query)
        weights = _slope_weights(plan, people, query)
        return _second_round(plan, data, query, bound, people, weights)


def _second_round(
    plan: GlmPlan,
    data: SiteData,
    query: Query,
    blocks: BlocksBound,
    people: Persons,
    weights: _Weights,
) -> Array:
    location, scales = query.arguments["location"], query.arguments["scales"]
    outcomes = Outcomes(
        *(rows_of(data)[0], plan.columns.outcomes, location, scales),
        *(plan.design.outcome_limit, plan.likeness, people.within, weights.within),
    )
    reach, averages = plan.choice.reach, plan.columns.averages
    limit, divisor = blocks.block("effects").norm, blocks.block("divisor")
    kept = people.kept & (outcomes.present >= 1 - plan.most_missing)
    left = factors_within(limit, _lengths(weights, outcomes))
    clip = left * kept
    weighted, taken = finite_values(clip * weights.rows), (1 - left) * kept
    products = _with_contrast(people, weights, weighted[0], clip)
    spread = np.square(clip) * outcomes.sums.squares / len(outcomes)
    means, added = (clip * each for each in outcomes.means(averages))
    pairs = ring_of(data.person_hashes)
    names = {"effects", "lost"} & {block.name for block in blocks.blocks}
    norms = {name: blocks.block(name).norm for name in names}
    norms[_ABOVE], norms[_BELOW] = clips_in(blocks.block("squares"))

    def of_part(part: OutcomePart) -> dict[str, Array]:
        clipped, effects, own = clip * part.left, weighted[:, None] * part.turned, None
        if part.added is not None:
            effects, own = effects + clip * part.added.turned, clip * part.added.left
            own = np.vstack([own, added]) if part.last else own
        stacked = np.vstack([clipped, means]) if part.last else clipped
        squares = _pairs(stacked, weights.rows[0], reach, pairs, own)
        found = {_ABOVE: np.maximum(squares, 0.0), _BELOW: np.maximum(-squares, 0.0)}
        found["effects"] = effects
        return found | ({"lost": taken * part.turned} if "lost" in names else {})

    sums = outcomes.sum_clipped(of_part, norms)
    parts = {
        **{name: sums[name] for name in names},
        "squares": (sums[_ABOVE] - sums[_BELOW]) / 2,
        "divisor": clip_values(products, divisor.norm - divisor.spread, divisor.norm).sum(),
        "spread": clip_values(spread, 0.0, blocks.block("spread").norm).sum(),
        "balance": clip_columns(weighted, blocks.block("balance").norm).sum(axis=1),
        **_of_means(blocks, means, _products(people, weights, outcomes, averages, clip, means)),
    }
    if "lost" in names:
        parts |= _of_tails(blocks, outcomes, weights.rows * kept, taken)
    return blocks.join({name: part / len(clip) for name, part in parts.items()})


def _lengths(weights: _Weights, outcomes: Outcomes) -> Array:
    """At least the norm of what a person adds to the effects before it is clipped.

    That of one row is ω‖R^-¼u‖, whichever group is theirs. Of several it is that of their mean and
    of what they differ by as if both stood at a right angle, or that of the sum where it is more.
    """
    usual = weights.largest * outcomes.sizes
    if weights.within is None:
        return usual
    added, together = outcomes.sizes_with(weights.rows[0])
    return np.maximum(column_norms(np.vstack([usual, added])), together)


def _with_contrast(people: Persons, weights: _Weights, first: Array, clip: Array) -> Array:
    """Products c w t̃ of every person, and of what a unit's rows differ by."""
    products = first * weights.contrast
    if people.within is None or weights.within is None:
        return products
    column = people.within.product(weights.within, people.within.column[None])[0]
    return np.asarray(products + clip * finite_values(column))


def _of_tails(
    blocks: BlocksBound, outcomes: Outcomes, rows: Array, taken: Array
) -> dict[str, Array]:
    """Sums of the mean outcome of (1 - c) u, and of the weights times a norm's logarithm."""
    tail, most = blocks.block("tail").norm, blocks.block("lean").norm
    usual, far = len(outcomes) * outcomes.likeness.root, most / blocks.block("balance").norm
    lean = rows * np.log(np.square(outcomes.sizes) / usual).clip(-far, far)
    tails = taken * outcomes.sums.outcomes / len(outcomes)
    return {
        "tail": clip_values(tails, -tail, tail).sum(),
        "lean": clip_columns(lean, most).sum(axis=1),
    }


def _products(
    people: Persons,
    weights: _Weights,
    outcomes: Outcomes,
    averages: Array,
    clip: Array,
    means: Array,
) -> Array:
    """Of every person a (x - x̂) ūᵀ, p G x n; what rows of a unit differ by is added to its own."""
    within = people.within
    found = weights.centred[:, None] * means
    if within is not None and len(averages):
        scaled = people.weight * within.weight * within.covariates
        rows = within.split(outcomes.means_by_row(averages)) * clip
        found = found + np.einsum("pku,gku->pgu", scaled, rows)
    return found.reshape(-1, found.shape[-1])


def _of_means(blocks: BlocksBound, means: Array, products: Array) -> dict[str, Array]:
    """Sums of a (x - x̂) ūᵀ and of ū², ū the means of a person's clipped outcomes."""
    found, of_means = dict[str, Array](), {"products": products, "spreads": np.square(means)}
    for block in blocks.blocks:
        if block.name in of_means:
            found[block.name] = clip_columns(of_means[block.name], block.norm).sum(axis=1)
    return found


def _group_weights(plan: GlmPlan, people: Persons, query: Query) -> _Weights:
    """Weights w = a (t̃ - γᵀ(x - x̂)), at most ω = a (m + |γᵀ(x - x̂)|), alike in both groups."""
    count, rows = len(people.covariates), people.within
    if not count:
        largest = np.full(len(people.contrast), people.weight * people.largest)
        first = (people.weight * people.contrast)[None]
        within = None if rows is None else people.weight * rows.contrast
        return _Weights(people.contrast, first, largest, people.covariates, within)
    slopes, centre = _slopes(query), query.arguments["centres"][query.site]
    centred = people.covariates - centre[:, None]
    shift = product_of_columns(slopes[None], centred)[0]
    first = people.weight * (people.contrast - shift)
    largest = people.weight * (people.largest + np.abs(shift))
    within = _rows_left(people, slopes)
    found = _Weights(people.contrast, first[None], largest, people.weight * centred, within)
    return _with_others(plan, found)


def _slope_weights(plan: GlmPlan, people: Persons, query: Query) -> _Weights:
    """Weights w = (t - x̂_t - γᵀ(x - x̂))/ŝ, cut, and ω what they are cut to.

    Who is far from the mean is not clipped harder for it: then how much is taken of a long tail
    follows from how far persons vary alone.
    """
    slopes, centre = _slopes(query), query.arguments["centres"][query.site]
    centred = people.covariates - centre[1:, None]
    left = people.contrast - centre[0] - product_of_columns(slopes[None], centred)[0]
    # Smaller ones, which no honest centre sends, would make rounding a weight.
    spread = np.maximum(query.arguments["spread"], _LEAST_SPREAD)
    most = plan.choice.contrast_reach
    first = np.clip(left / spread, -most, most)
    largest = np.full(first.shape, most)
    within = _rows_left(people, slopes)
    if people.within is not None and within is not None:
        # Cut row by row they don't add up to zero, and then a unit's constant would be in them.
        rows = finite_values(within / spread)
        within = people.within.centred(np.clip(rows, -most, most))
    return _with_others(plan, _Weights(people.column, first[None], largest, centred, within))


def _slopes(query: Query) -> Array:
    """Slopes of the contrast, cut to a size at which rounding does not matter."""
    return clip_vector(query.arguments.get("slopes", _NONE), _LARGEST_SLOPES)


def _rows_left(people: Persons, slopes: Array) -> Array | None:
    """What a (t - γᵀx) of units' rows differs by from their means; nothing of single rows."""
    if people.within is None:
        return None
    contrast, covariates = people.within.contrast, people.within.covariates
    columns = covariates.reshape(len(covariates), -1)
    left = contrast - product_of_columns(slopes[None], columns).reshape(contrast.shape)
    return np.asarray(people.weight * left)


def _with_others(plan: GlmPlan, found: _Weights) -> _Weights:
    """Rows of the other coefficients beside the contrast's, if the plan has them."""
    if plan.rows == 1:
        return found
    others = plan.importance * found.centred
    largest = column_norms(np.vstack([found.largest, others]))
    return replace(found, rows=np.vstack([found.rows, others]), largest=largest)


def _pairs(
    clipped: Array,
    weights: Array,
    reach: float,
    pairs: Pairs,
    within: Array | None = None,
) -> Array:
    """Weighted squared differences of pairs, corrected for weights and variances that go together.

    With w² of either person as its own part, wᵢ²Vᵢ + wⱼ²Vⱼ is expected of a pair, over 2 W², as far
    as nothing is cut; where weights are equal the correction is zero. To units of several rows what
    these add is added: its square, and its product with that of the mean, which is taken to the
    other unit's mean.
    """
    one, other = (np.square(weights[each] / reach) for each in pairs)
    first, second = (person_columns(clipped, each) for each in pairs)
    share = (one + other) / 2
    squares = finite_values(np.minimum(1.0, share)) * np.square(first - second) / 2
    uneven = finite_values((one - other) / 4 / np.maximum(1.0, share))
    found: Array = squares + uneven * (np.square(first) - np.square(second))
    if within is None:
        return found
    own, others = (within.take(each, axis=1) / reach for each in pairs)
    left, right = (weights[each] / reach for each in pairs)
    both = (left * own - right * others) * (first - second)
    return found + finite_values((np.square(own) + np.square(others)) / 2 + both)
