"""A site's half of the rounds before the contrast's: counts, a look at outcomes, and covariates.

The look takes outcomes as they are, in norms that may be far off, and clips persons and not
entries: who is far out shortens nobody else, and moves no block further than its bound.
"""

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.coverage import ABSENT
from consortium.algorithms.glm.in_parts import (
    OutcomePart,
    Outcomes,
    factors_within,
    person_columns,
)
from consortium.algorithms.glm.persons import (
    Persons,
    persons_of,
    sides_of,
    sloped_persons_of,
)
from consortium.algorithms.glm.plan import GlmPlan
from consortium.algorithms.glm.ring import most_log_in, ring_of
from consortium.algorithms.glm.rows import WithinUnits, rows_of
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.clipping import clip_columns, clip_factors, clip_values, finite_values

_FARTHEST = 1e4  # deviations, where norms are lost anyway; rounding grows with it
_LEAST_DISTANCE = 1e-30  # squared, of a pair


def glm_counts(plan: GlmPlan, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Mean over persons of t - ½, in the site's own place.

    Who is replaced moves it from one half to the other at the most, which is 1 over the persons.

    Returns
    -------
    array, length S
    """
    block, sides = bound.block("counts"), sides_of(plan, data)
    found = np.zeros(block.entries)
    found[query.site] = np.clip(sides, -block.norm, block.norm).sum() / len(sides)
    return bound.join({"counts": found})


def glm_norms(plan: GlmPlan, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Means over persons of the look, of a t̃ x, a x xᵀ (packed) and x in the site's own place.

    Returns
    -------
    array, length V + 2, and p + p (p + 1) / 2 + S p with covariates
    """
    with np.errstate(all="ignore"):
        people = persons_of(plan, data, query)
        found = _look(plan, data, bound, people)
        found |= _covariates(plan, query, bound, people, people.covariates)
        if people.within is not None:
            found |= _squares(people, people.weight, bound.block("column").norm)
        return bound.join(found)


def glm_slope_norms(plan: GlmPlan, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """As `glm_norms`, with t x, x xᵀ, (t, x) in the site's own place, and t².

    Returns
    -------
    array, length V + 3, and p + p (p + 1) / 2 + S (p + 1)
    """
    with np.errstate(all="ignore"):
        people = sloped_persons_of(plan, data, query)
        columns = np.vstack([people.contrast, people.covariates])
        found = _look(plan, data, bound, people)
        found |= _covariates(plan, query, bound, people, columns)
        return bound.join(found | _squares(people, 1.0, bound.block("column").norm))


def _squares(people: Persons, weight: float, most: float) -> dict[str, Array]:
    """Sum of <t, t>, cut."""
    squares = np.square(people.contrast)
    if people.within is not None:
        own = people.within.contrast
        squares = squares + people.within.product(own, own[None])[0]
    squares = clip_values(weight * squares, 0.0, most)
    return {"column": np.asarray(squares.sum() / len(squares))}


def _look(plan: GlmPlan, data: SiteData, blocks: BlocksBound, people: Persons) -> dict[str, Array]:
    """Sums of f R^-¼u and of f, and of logarithms of pairs' squared distances, over persons."""
    columns = plan.columns
    outcomes = Outcomes(
        *(rows_of(data)[0], columns.outcomes, columns.location, plan.deviation),
        *(_FARTHEST, plan.likeness, people.within),
    )
    kept = people.kept & (outcomes.present >= 1 - plan.most_missing)
    reach, most = blocks.block("location").norm, most_log_in(blocks.block("size"))
    one, other = ring_of(data.person_hashes)
    factors, squares = factors_within(reach, outcomes.sizes) * kept, dict[int | None, Array]()
    names = {"location", ABSENT} & {block.name for block in blocks.blocks}

    def of_part(part: OutcomePart) -> dict[str, Array]:
        turned = part.turned * kept
        apart = person_columns(turned, one) - person_columns(turned, other)
        squares[part.rows.start] = np.square(apart).sum(axis=0)  # the same if asked again
        found = {"location": turned * factors}
        missing = {ABSENT: (~part.known & kept).astype(np.float64)} if ABSENT in names else {}
        return found | missing

    sums = outcomes.sum_clipped(of_part, {name: blocks.block(name).norm for name in names})
    usual = 2 * len(outcomes) * outcomes.likeness.root
    apart = np.sum(list(squares.values()), axis=0) / usual
    logs = np.clip(np.log(np.maximum(apart, _LEAST_DISTANCE)), -most, most)
    parts = {
        **sums,
        "kept": np.clip(factors, 0.0, 1.0).sum(),
        "size": (logs * (kept[one] & kept[other])).sum() / 2,
    }
    return {name: np.asarray(part / len(kept)) for name, part in parts.items()}


def _covariates(
    plan: GlmPlan, query: Query, blocks: BlocksBound, people: Persons, columns: Array
) -> dict[str, Array]:
    """Sums of covariates with the contrast and with each other, and by site, as far as planned."""
    planned, count = {block.name: block for block in blocks.blocks}, len(people.contrast)
    x, found = people.covariates, dict[str, Array]()
    if "means" in planned:
        released = columns[plan.hidden]
        means = np.zeros((len(plan.groups.persons), len(released)))
        means[query.site] = clip_columns(released, planned["means"].norm).sum(axis=1) / count
        found["means"] = means
    if "contrast" in planned:
        products, weighted = people.weight * people.contrast * x, np.sqrt(people.weight) * x
        if people.within is not None:
            within = people.within
            own = within.product(within.contrast, within.covariates)
            products = products + people.weight * own
            weighted = _all_rows(weighted, people.weight, within, planned["moment"].norm)
        found["contrast"] = clip_columns(products, planned["contrast"].norm).sum(axis=1) / count
        moment = mean_packed_square(weighted, planned["moment"].norm)
        found["moment"] = moment * (weighted.shape[1] / count)
    return found


def _all_rows(means: Array, weight: float, within: WithinUnits, norm: float) -> Array:
    """Columns whose squares add up to a <x, xᵀ>, of every unit at most of this norm: p x (1 + K) U.

    Squares of one unit's columns together are no larger than the sum of their traces.
    """
    rows = np.sqrt(weight * within.weight) * within.covariates
    columns = np.concatenate([means[:, None], rows], axis=1)
    traces = np.square(columns).sum(axis=(0, 1))
    factors = clip_factors(norm, traces)
    return finite_values(columns * np.sqrt(factors)).reshape(len(means), -1)
