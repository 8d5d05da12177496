"""A site's half of the rounds before the contrast's: counts, a look at outcomes, and covariates.

The look takes outcomes as they are, in norms that may be far off, and clips persons and not
entries: who is far out shortens nobody else, and moves no block further than its bound.
"""

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.glm.in_parts import Part, outcomes_of, persons_in
from consortium.algorithms.glm.persons import (
    Persons,
    blocks_of,
    enough,
    pairs_of,
    persons_of,
    places_of,
    released_columns,
    sides_of,
    sloped_persons_of,
)
from consortium.errors import ProtocolError
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, clip_factors

_FARTHEST = 1e12  # deviations: further out is as far out, and a number
_LEAST_DISTANCE = 1e-30  # squared, of a pair


def glm_counts(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of t - ½, in the site's own place.

    Who is replaced moves it from one half to the other at the most, which is 1 over the persons,
    whatever is asked: nothing in the query is multiplied with.

    Returns
    -------
    array, length S
    """
    blocks = blocks_of(bound)
    block = blocks.block("counts")
    if not query.site < block.entries:
        raise ProtocolError("The study has no place for this site's count; discard the query.")
    sides, found = sides_of(data, query), np.zeros(block.entries)
    found[query.site] = np.clip(sides, -block.norm, block.norm).sum() / len(sides)
    return blocks.join({"counts": found})


def glm_norms(data: SiteData, query: Query, bound: Bound) -> Array:
    """Means over persons of the look, of a t̃ x, a x xᵀ (packed) and x in the site's own place.

    Returns
    -------
    array, length V + 2, and p + p (p + 1) / 2 + S p with covariates
    """
    blocks = blocks_of(bound)
    with np.errstate(all="ignore"):
        people = persons_of(data, query)
        own = people.covariates
        return blocks.join(
            _look(blocks, data, query, people) | _covariates(blocks, query, people, own)
        )


def glm_slope_norms(data: SiteData, query: Query, bound: Bound) -> Array:
    """As `glm_norms`, with t x, x xᵀ, (t, x) in the site's own place, and t².

    Returns
    -------
    array, length V + 3, and p + p (p + 1) / 2 + S (p + 1)
    """
    blocks = blocks_of(bound)
    with np.errstate(all="ignore"):
        people = sloped_persons_of(data, query)
        columns, most = np.vstack([people.contrast, people.covariates]), blocks.block("column").norm
        squares = np.clip(np.square(people.contrast), 0.0, most)
        own = {"column": np.asarray(squares.sum() / len(squares))}
        covariates = _covariates(blocks, query, people, columns)
        return blocks.join(_look(blocks, data, query, people) | covariates | own)


def _look(blocks: BlocksBound, data: SiteData, query: Query, people: Persons) -> dict[str, Array]:
    """Sums of f R^-¼u and of f, and of logarithms of pairs' squared distances, over persons."""
    outcomes = outcomes_of(data, query, _FARTHEST)
    kept = enough(query, outcomes.sums.known / len(outcomes)) & people.kept
    reach, most = blocks.block("location").norm, blocks.block("size").norm
    one, other = pairs_of(query, len(kept))
    squares = np.zeros(len(one))
    for part in outcomes.parts():
        turned = part.turned * kept
        squares += np.square(persons_in(turned, one) - persons_in(turned, other)).sum(axis=0)
    usual = 2 * len(outcomes) * outcomes.likeness.root
    logs = np.clip(np.log(np.maximum(squares / usual, _LEAST_DISTANCE)), -most, most)
    factors = clip_factors(reach, outcomes.sizes) * kept
    names = {"location", "gaps"} & {block.name for block in blocks.blocks}

    def rows_of(part: Part) -> dict[str, Array]:
        found = {"location": part.turned * kept}
        missing = {"gaps": (~part.known & kept).astype(np.float64)} if "gaps" in names else {}
        return found | missing

    parts = {
        **outcomes.sum_clipped(rows_of, {name: blocks.block(name).norm for name in names}),
        "kept": np.clip(factors, 0.0, 1.0).sum(),
        "size": (logs * (kept[one] & kept[other])).sum(),
    }
    return {name: np.asarray(part / len(kept)) for name, part in parts.items()}


def _covariates(
    blocks: BlocksBound, query: Query, people: Persons, columns: Array
) -> dict[str, Array]:
    """Sums of covariates with the contrast and with each other, and by site, as far as planned."""
    planned, count = {block.name: block for block in blocks.blocks}, len(people.contrast)
    x, found = people.covariates, dict[str, Array]()
    if "means" in planned:
        places, released = places_of(query), columns[released_columns(query, len(columns))]
        means = np.zeros((places, len(released)))
        means[query.site] = clip_columns(released, planned["means"].norm).sum(axis=1) / count
        found["means"] = means
    if "contrast" in planned:
        products = people.weight * people.contrast * x
        found["contrast"] = clip_columns(products, planned["contrast"].norm).sum(axis=1) / count
        weighted = np.sqrt(people.weight) * x
        found["moment"] = mean_packed_square(weighted, planned["moment"].norm)
    return found
