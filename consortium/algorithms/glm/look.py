"""Statistics of a site for the rounds before the contrast: counts, first look and covariates.

The first look uses the stated location and scale, which may be far off, and clips contributions,
not entries. A participant with extreme values does not reduce the contribution of another, and
moves no block by more than its bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms import coverage
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
    sides_of,
    slope_predictors,
)
from consortium.algorithms.glm.ring import most_log_in, ring_of
from consortium.algorithms.glm.rows import WithinUnits, rows_of
from consortium.base.array import Array
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.clipping import clip_columns, clip_factors, clip_values, finite_values

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

# Limit of the outcomes in standard deviations. Norms are lost at it, and rounding errors grow.
_FARTHEST = 1e4
_LEAST_DISTANCE = 1e-30  # smallest squared distance of a pair


def glm_counts(plan: Glm, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return the mean over participants of t - ½, at the site's own position.

    Replacing a participant moves its t - ½ by at most 1, which is a change of 1 divided by the
    number of participants.

    Returns
    -------
    array, length S
    """
    block = bound.block("counts")
    sides = sides_of(plan, data)
    found = np.zeros(block.entries)
    found[query.site] = np.clip(sides, -block.norm, block.norm).sum() / len(sides)
    return bound.join({"counts": found})


def glm_norms(plan: Glm, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return the means over participants of the first look, and of the covariates' sums.

    These are a t̃ x, a x xᵀ (packed) and x at the site's own position.

    Returns
    -------
    array, length V + 2, and p + p (p + 1) / 2 + S p with covariates
    """
    with np.errstate(all="ignore"):
        predictors = group_predictors(plan, data, query)
        found = _look(plan, data, bound, predictors)
        found |= _covariates(plan, query, bound, predictors, predictors.covariates)
        if predictors.within is not None:
            found |= _squares(predictors, predictors.weight, bound.block("column").norm)
        return bound.join(found)


def glm_slope_norms(plan: Glm, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return the means of `glm_norms`, with t x, x xᵀ, (t, x) at the site's position, and t².

    Returns
    -------
    array, length V + 3, and p + p (p + 1) / 2 + S (p + 1)
    """
    with np.errstate(all="ignore"):
        predictors = slope_predictors(plan, data, query)
        columns = np.vstack([predictors.contrast, predictors.covariates])
        found = _look(plan, data, bound, predictors)
        found |= _covariates(plan, query, bound, predictors, columns)
        return bound.join(found | _squares(predictors, 1.0, bound.block("column").norm))


def _squares(predictors: Predictors, weight: float, most: float) -> dict[str, Array]:
    """Return the mean of <t, t>, clipped."""
    squares = np.square(predictors.contrast)
    if predictors.within is not None:
        own = predictors.within.contrast
        squares = squares + predictors.within.product(own, own[None])[0]
    squares = clip_values(weight * squares, 0.0, most)
    return {"column": np.asarray(squares.sum() / len(squares))}


def _look(
    plan: Glm, data: SiteData, blocks: BlocksBound, predictors: Predictors
) -> dict[str, Array]:
    """Return means of f R^-¼u, of f, and of logarithms of pairs' squared distances."""
    columns = plan.columns
    outcomes = Outcomes(
        table=rows_of(data)[0],
        rows=columns.outcomes,
        location=columns.location,
        scales=plan.deviation,
        limit=_FARTHEST,
        outcome_correlation=plan.outcome_correlation,
        within=predictors.within,
        curve=curve_of(plan, predictors),
    )
    kept = predictors.kept & (outcomes.present >= 1 - plan.most_missing)
    reach = blocks.block("location").norm
    most = most_log_in(blocks.block("size"))
    one, other = ring_of(data.person_hashes)
    factors = factors_within(reach, outcomes.sizes) * kept
    squares = dict[int | None, Array]()
    names = {"location", coverage.ABSENT} & {block.name for block in blocks.blocks}

    def of_part(part: OutcomePart) -> dict[str, Array]:
        turned = part.turned * kept
        apart = person_columns(turned, one) - person_columns(turned, other)
        squares[part.rows.start] = np.square(apart).sum(axis=0)  # the same if asked again
        found = {"location": turned * factors}
        missing = (
            {coverage.ABSENT: (~part.known & kept).astype(np.float64)}
            if coverage.ABSENT in names
            else {}
        )
        return found | missing

    sums = outcomes.sum_clipped(of_part, {name: blocks.block(name).norm for name in names})
    usual = 2 * len(outcomes) * outcomes.outcome_correlation.root
    apart = np.sum(list(squares.values()), axis=0) / usual
    logs = np.clip(np.log(np.maximum(apart, _LEAST_DISTANCE)), -most, most)
    parts = {
        **sums,
        "kept": np.clip(factors, 0.0, 1.0).sum(),
        "size": (logs * (kept[one] & kept[other])).sum() / 2,
    }
    return {name: np.asarray(part / len(kept)) for name, part in parts.items()}


def _covariates(
    plan: Glm, query: Query, blocks: BlocksBound, predictors: Predictors, columns: Array
) -> dict[str, Array]:
    """Return means of covariates times the contrast, of their moment, and by site, as planned."""
    planned = {block.name: block for block in blocks.blocks}
    count = len(predictors.contrast)
    x = predictors.covariates
    found = dict[str, Array]()
    if "means" in planned:
        released = columns[plan.released_means]
        means = np.zeros((len(plan.groups.persons), len(released)))
        means[query.site] = clip_columns(released, planned["means"].norm).sum(axis=1) / count
        found["means"] = means
    if "contrast" in planned:
        products = predictors.weight * predictors.contrast * x
        weighted = np.sqrt(predictors.weight) * x
        if predictors.within is not None:
            within = predictors.within
            own = within.product(within.contrast, within.covariates)
            products = products + predictors.weight * own
            weighted = _all_rows(weighted, predictors.weight, within, planned["moment"].norm)
        found["contrast"] = clip_columns(products, planned["contrast"].norm).sum(axis=1) / count
        moment = mean_packed_square(weighted, planned["moment"].norm)
        found["moment"] = moment * (weighted.shape[1] / count)
    return found


def _all_rows(means: Array, weight: float, within: WithinUnits, norm: float) -> Array:
    """Return columns whose moment is a <x, xᵀ>, clipped for every unit: p x (1 + K) U.

    The norm of the moment of one unit's columns is at most the sum of their squared norms.
    """
    rows = np.sqrt(weight * within.weight) * within.covariates
    columns = np.concatenate([means[:, None], rows], axis=1)
    traces = np.square(columns).sum(axis=(0, 1))
    factors = clip_factors(norm, traces)
    return finite_values(columns * np.sqrt(factors)).reshape(len(means), -1)
