"""Statistics of a site for `glm`'s last round: sums of contributions, each block clipped by itself.

A hostile centre may send location, scale, slopes and centres of any size. In all cases a
participant's weights are at most ω, so clipping with ω keeps the bound. Every block is clipped
again to the bound of the site's own plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Query, SiteData
from consortium.algorithms.glm.in_parts import (
    OutcomePart,
    Outcomes,
    factors_within,
    person_columns,
)
from consortium.algorithms.glm.predictors import (
    Predictors,
    curve_of,
    group_predictors,
    slope_predictors,
)
from consortium.algorithms.glm.ring import Pairs, clips_in, ring_of
from consortium.algorithms.glm.rows import rows_of
from consortium.base.array import Array
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.clipping import (
    clip_columns,
    clip_values,
    clip_vector,
    column_norms,
    finite_values,
)

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_LARGEST_SLOPES = 1e3
_LEAST_SPREAD = 0.1
_NONE = np.zeros(0)  # slopes without covariates
_ABOVE = "above"  # positive part of pairs' squares
_BELOW = "below"  # negative part


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of the participants' outcomes."""

    contrast: Array
    """t̃, length n."""
    rows: Array
    """w of the contrast, and of every other coefficient that is released, K x n."""
    largest: Array
    """ω, upper bound of the norm of a participant's rows, length n."""
    centred: Array
    """a (x - x̂), p x n."""
    within: Array | None = None
    """For units of several rows: deviations of the contrast's w by row, rows x n."""


def glm_contrast(plan: Glm, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return means over participants for the contrast of groups.

    The blocks are c w R^-¼ u, c w t̃, squared differences of pairs, ‖c u‖²/V and c w, and the sums
    on long tails and on means of outcomes if these are planned.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2 + K, and (p + 1) for each group of outcomes
    """
    with np.errstate(all="ignore"):
        predictors = group_predictors(plan, data, query)
        weights = _group_weights(plan, predictors, query)
        return _second_round(
            plan=plan,
            data=data,
            query=query,
            blocks=bound,
            predictors=predictors,
            weights=weights,
        )


def glm_slope(plan: Glm, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return the means of `glm_contrast`, with t of a column with limits, centred by its mean.

    Returns
    -------
    array, length (K + 1) V + groups of outcomes + 2 + K, and (p + 1) for each group of outcomes
    """
    with np.errstate(all="ignore"):
        predictors = slope_predictors(plan, data, query)
        weights = _slope_weights(plan, predictors, query)
        return _second_round(
            plan=plan,
            data=data,
            query=query,
            blocks=bound,
            predictors=predictors,
            weights=weights,
        )


def _second_round(
    plan: Glm,
    data: SiteData,
    query: Query,
    blocks: BlocksBound,
    predictors: Predictors,
    weights: _Weights,
) -> Array:
    location = query.arguments["location"]
    scales = query.arguments["scales"]
    outcomes = Outcomes(
        table=rows_of(data)[0],
        rows=plan.columns.outcomes,
        location=location,
        scales=scales,
        limit=plan.design.outcome_limit,
        outcome_correlation=plan.outcome_correlation,
        within=predictors.within,
        differs=weights.within,
        curve=curve_of(plan, predictors),
    )
    reach = plan.clipping.reach
    averages = plan.columns.averages
    limit = blocks.block("effects").norm
    divisor = blocks.block("divisor")
    kept = predictors.kept & (outcomes.present >= 1 - plan.most_missing)
    left = factors_within(limit, _lengths(weights, outcomes))
    clip = left * kept
    weighted = finite_values(clip * weights.rows)
    taken = (1 - left) * kept
    products = _with_contrast(predictors, weights, weighted[0], clip)
    spread = np.square(clip) * outcomes.sums.squares / len(outcomes)
    means, added = (clip * each for each in outcomes.means(averages))
    pairs = ring_of(data.person_hashes)
    names = {"effects", "lost"} & {block.name for block in blocks.blocks}
    norms = {name: blocks.block(name).norm for name in names}
    norms[_ABOVE], norms[_BELOW] = clips_in(blocks.block("squares"))

    def of_part(part: OutcomePart) -> dict[str, Array]:
        clipped = clip * part.left
        effects = weighted[:, None] * part.turned
        own = None
        if part.added is not None:
            effects = effects + clip * part.added.turned
            own = clip * part.added.left
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
        **_of_means(
            blocks,
            means,
            _products(
                predictors=predictors,
                weights=weights,
                outcomes=outcomes,
                averages=averages,
                clip=clip,
                means=means,
            ),
        ),
    }
    if "lost" in names:
        parts |= _of_tails(blocks, outcomes, weights.rows * kept, taken)
    return blocks.join({name: part / len(clip) for name, part in parts.items()})


def _lengths(weights: _Weights, outcomes: Outcomes) -> Array:
    """Return an upper bound of the norm of each contribution to the effects before it is clipped.

    For one row it is ω‖R^-¼u‖ in either group. For several rows it is the norm of the part of the
    mean and of the addition as if both were orthogonal, or the norm of their sum if this is larger.
    """
    usual = weights.largest * outcomes.sizes
    if weights.within is None:
        return usual
    added, together = outcomes.sizes_with(weights.rows[0])
    return np.maximum(column_norms(np.vstack([usual, added])), together)


def _with_contrast(predictors: Predictors, weights: _Weights, first: Array, clip: Array) -> Array:
    """Return products c w t̃ of every participant, with the addition from a unit's rows."""
    products = first * weights.contrast
    if predictors.within is None or weights.within is None:
        return products
    column = predictors.within.product(weights.within, predictors.within.column[None])[0]
    return np.asarray(products + clip * finite_values(column))


def _of_tails(
    blocks: BlocksBound, outcomes: Outcomes, rows: Array, taken: Array
) -> dict[str, Array]:
    """Return sums of the mean outcome of (1 - c) u, and of the weights times a norm's logarithm."""
    tail = blocks.block("tail").norm
    most = blocks.block("lean").norm
    usual = len(outcomes) * outcomes.outcome_correlation.root
    far = most / blocks.block("balance").norm
    lean = rows * np.log(np.square(outcomes.sizes) / usual).clip(-far, far)
    tails = taken * outcomes.sums.outcomes / len(outcomes)
    return {
        "tail": clip_values(tails, -tail, tail).sum(),
        "lean": clip_columns(lean, most).sum(axis=1),
    }


def _products(
    predictors: Predictors,
    weights: _Weights,
    outcomes: Outcomes,
    averages: Array,
    clip: Array,
    means: Array,
) -> Array:
    """Return a (x - x̂) ūᵀ of every participant, p G x n, with the addition from a unit's rows."""
    within = predictors.within
    found = weights.centred[:, None] * means
    if within is not None and len(averages):
        scaled = predictors.weight * within.weight * within.covariates
        rows = within.split(outcomes.means_by_row(averages)) * clip
        found = found + np.einsum("pku,gku->pgu", scaled, rows)
    return found.reshape(-1, found.shape[-1])


def _of_means(blocks: BlocksBound, means: Array, products: Array) -> dict[str, Array]:
    """Return sums of a (x - x̂) ūᵀ and of ū², with ū a participant's mean clipped outcomes."""
    found = dict[str, Array]()
    of_means = {"products": products, "spreads": np.square(means)}
    for block in blocks.blocks:
        if block.name in of_means:
            found[block.name] = clip_columns(of_means[block.name], block.norm).sum(axis=1)
    return found


def _group_weights(plan: Glm, predictors: Predictors, query: Query) -> _Weights:
    """Return w = a (t̃ - γᵀ(x - x̂)), and ω = a (m + |γᵀ(x - x̂)|), equal in both groups."""
    count = len(predictors.covariates)
    rows = predictors.within
    if not count:
        largest = np.full(len(predictors.contrast), predictors.weight * predictors.largest)
        first = (predictors.weight * predictors.contrast)[None]
        within = None if rows is None else predictors.weight * rows.contrast
        return _Weights(predictors.contrast, first, largest, predictors.covariates, within)
    slopes = _slopes(query)
    centre = query.arguments["centres"][query.site]
    centred = predictors.covariates - centre[:, None]
    shift = product_of_columns(slopes[None], centred)[0]
    first = predictors.weight * (predictors.contrast - shift)
    largest = predictors.weight * (predictors.largest + np.abs(shift))
    within = _rows_left(predictors, slopes)
    found = _Weights(predictors.contrast, first[None], largest, predictors.weight * centred, within)
    return _with_others(plan, found)


def _slope_weights(plan: Glm, predictors: Predictors, query: Query) -> _Weights:
    """Return w = (t - x̂_t - γᵀ(x - x̂))/ŝ, clipped, and its limit ω.

    ω does not grow with the distance from the mean, so the loss of a long tail depends only on the
    variance of the outcomes.
    """
    slopes = _slopes(query)
    centre = query.arguments["centres"][query.site]
    centred = predictors.covariates - centre[1:, None]
    left = predictors.contrast - centre[0] - product_of_columns(slopes[None], centred)[0]
    # A smaller value, which no honest centre sends, would turn rounding errors into weights.
    spread = np.maximum(query.arguments["spread"], _LEAST_SPREAD)
    most = plan.clipping.contrast_reach
    first = np.clip(left / spread, -most, most)
    largest = np.full(first.shape, most)
    within = _rows_left(predictors, slopes)
    if predictors.within is not None and within is not None:
        # After clipping by row they do not sum to 0, which would leave the unit's constant in.
        rows = finite_values(within / spread)
        within = predictors.within.centred(np.clip(rows, -most, most))
    return _with_others(plan, _Weights(predictors.column, first[None], largest, centred, within))


def _slopes(query: Query) -> Array:
    """Return slopes of the contrast, clipped to a norm at which rounding does not matter."""
    return clip_vector(query.arguments.get("slopes", _NONE), _LARGEST_SLOPES)


def _rows_left(predictors: Predictors, slopes: Array) -> Array | None:
    """Return deviations of a (t - γᵀx) by row from the unit's mean; None for single rows."""
    if predictors.within is None:
        return None
    contrast = predictors.within.contrast
    covariates = predictors.within.covariates
    columns = covariates.reshape(len(covariates), -1)
    left = contrast - product_of_columns(slopes[None], columns).reshape(contrast.shape)
    return np.asarray(predictors.weight * left)


def _with_others(plan: Glm, found: _Weights) -> _Weights:
    """Return the weights with rows of the other coefficients, if the plan has them."""
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
    """Return weighted squared differences of pairs, corrected for unequal weights.

    The weight of a pair is the mean of both w², relative to W². The correction gives the squares
    the expectation (wᵢ²Vᵢ + wⱼ²Vⱼ)/(2 W²) if nothing is clipped, also if variances depend on the
    weights. It is 0 for equal weights. For units of several rows, their addition is included: its
    square, and its product with the part of the mean, taken relative to the other unit's mean.
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
