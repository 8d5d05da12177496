"""A site's persons as a query of `glm` sees them: their columns in public units, and who is kept.

A hostile centre may choose slopes and centres, of any size. What is read here is cut to public
limits first, entry by entry, and who lacks a value adds nothing.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.glm.entries import COVARIATE_LIMIT, Products
from consortium.algorithms.glm.groups import capped_weights
from consortium.algorithms.glm.rows import (
    Table,
    WithinUnits,
    rows_of,
    smaller_weight,
    within_units,
)
from consortium.algorithms.query_arguments import array_argument, index_argument, number_argument
from consortium.errors import PrivacyError, ProtocolError
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns

_MOST_SEED = 1 << 31
_MOST_GAPS = 0.5
_AT_ONCE = 1024  # entries
_OF_COVARIATES = (
    *("covariates", "means", "deviations", "declared"),
    *("covariate-reach", "slopes", "centres"),
)


@dataclass(frozen=True, eq=False)
class Persons:
    """A site's persons."""

    contrast: Array
    """Length n. t̃ = t - q_s, or t of a column with limits; 0 for who is left out."""
    covariates: Array
    """p x n. x, clipped; 0 for who is left out."""
    weight: float
    """a_s."""
    largest: float
    """m_s; 0 for a column with limits."""
    kept: Array
    """True or false, length n. Who has group and covariates."""
    column: Array = field(default_factory=lambda: np.zeros(0))
    """Length n. t of a column with limits, before it was clipped together with the covariates: an
    outcome follows it, and not what is left of it."""
    within: WithinUnits | None = None
    """Of units with several rows, whose means all else is then."""


def persons_of(data: SiteData, query: Query) -> Persons:
    """Read group and covariates.

    Raises
    ------
    ProtocolError
        If the arguments don't fit each other or the study.
    """
    table, many = rows_of(data)
    proportions, weights = _parts_and_weights(query)
    threshold = number_argument(query, "threshold")
    if not query.site < len(proportions) == len(weights):
        raise ProtocolError("The query's 'weights' don't fit the sites; discard it.")
    group = table[index_argument(query, "group", data.features)].astype(np.float64)
    own, weight = float(proportions[query.site]), float(weights[query.site])
    kept, x = np.isfinite(group), np.zeros((0, len(group)))
    if any(name in query.arguments for name in _OF_COVARIATES):
        x, known = _covariates(query, table)
        kept &= known
        x = clip_columns(x, number_argument(query, "covariate-reach")) * kept
    contrast, largest = np.where(kept, (group > threshold) - own, 0.0), max(own, 1 - own)
    found = Persons(contrast, x, weight, largest, kept)
    return found if many == 1 else _by_unit(found, table, many, query, largest)


def sloped_persons_of(data: SiteData, query: Query) -> Persons:
    """Read a column with limits, which is the first of 'covariates', and the covariates.

    Raises
    ------
    ProtocolError
        If the arguments don't fit each other or the study.
    """
    table, many = rows_of(data)
    columns, kept = _covariates(query, table)
    if not len(columns):
        raise ProtocolError("The query's 'covariates' are empty; discard it.")
    if query.site >= len(array_argument(query, "weights", 1)):
        raise ProtocolError("The query's 'weights' don't fit the sites; discard it.")
    clipped = clip_columns(columns, number_argument(query, "covariate-reach")) * kept
    found = Persons(clipped[0], clipped[1:], 1.0, 0.0, kept, columns[0] * kept)
    return found if many == 1 else _by_unit(found, table, many, query, None)


def _by_unit(
    rows: Persons, table: Table, many: int, query: Query, largest: float | None
) -> Persons:
    """Units in the place of rows; a row that lacks anything is none.

    Parameters
    ----------
    largest : float, optional
        m_s of groups; a slope's column is bounded together with the covariates.
    """
    there = (rows.kept & _complete(table, _whole(query, "outcomes", len(table)))).reshape(many, -1)
    shape = len(rows.covariates), many, there.shape[1]
    column = rows.column if len(rows.column) else rows.contrast
    contrast, column = rows.contrast.reshape(shape[1:]), column.reshape(shape[1:])
    correlation = number_argument(query, "within")
    within = within_units(there, contrast, column, rows.covariates.reshape(shape), correlation)
    contrast, column = ((each * within.parts).sum(axis=0) for each in (contrast, column))
    covariates, lift = within.mean(rows.covariates), number_argument(query, "lift")
    means, deviations, weight = covariates, within.covariates, within.weight
    if largest is None:
        means = np.vstack([contrast, means])
        deviations = np.concatenate([within.contrast[None], deviations])
    else:
        most = lift * largest**2
        weight = smaller_weight(weight, contrast[None], within.contrast[None], most)
    if len(means):
        reach = number_argument(query, "covariate-reach")
        most = lift * reach * reach  # a power would raise where a product is infinite
        weight = smaller_weight(weight, means, deviations, most)
    kept = np.asarray(there.any(axis=0))
    own = replace(within, weight=weight)
    return Persons(contrast, covariates, rows.weight, rows.largest, kept, column, own)


def _complete(table: Table, entries: Array) -> Array:
    """Which rows have a number in each of some entries, a few at a time."""
    complete = np.ones(table.shape[1], dtype=np.bool_)
    for start in range(0, len(entries), _AT_ONCE):
        complete &= np.isfinite(table[entries[start : start + _AT_ONCE]]).all(axis=0)
    return complete


def sides_of(data: SiteData, query: Query) -> Array:
    """½ for persons of the second group, -½ for those of the first, 0 for who has none.

    Of units the mean over rows, which lies between.
    """
    table, many = rows_of(data)
    group = table[index_argument(query, "group", data.features)].astype(np.float64)
    sides = np.where(group > number_argument(query, "threshold"), 0.5, -0.5)
    there = np.isfinite(group)
    sides, there = (each.reshape(many, -1) for each in (np.where(there, sides, 0.0), there))
    return np.asarray(sides.sum(axis=0) / np.maximum(there.sum(axis=0), 1))


def site_columns(query: Query) -> int:
    """S, sites that the query has places for."""
    name = "weights" if "weights" in query.arguments else "proportions"
    return len(array_argument(query, name, 1))


def _parts_and_weights(query: Query) -> tuple[Array, Array]:
    """q_s and a_s; where q_s were released, a_s is worked out here and by nobody else."""
    proportions = array_argument(query, "proportions", 1)
    if "weights" in query.arguments:
        return proportions, array_argument(query, "weights", 1)
    reach = number_argument(query, "contrast-reach")
    known = np.clip(np.where(np.isfinite(proportions), proportions, 0.5), 0.0, 1.0)
    return known, capped_weights(known, reach)


def blocks_of(bound: Bound) -> BlocksBound:
    """The bound of a release of blocks.

    Raises
    ------
    PrivacyError
        If it is of another kind.
    """
    if not isinstance(bound, BlocksBound):
        raise PrivacyError("A release of blocks needs a bound for each; plan it anew.")
    return bound


def pairs_of(query: Query, persons: int) -> tuple[Array, Array]:
    """Places of persons who were paired by lot, whoever they are; an odd one is left out.

    The draw is public and knows places in the table only: replacing a person changes one pair.
    """
    seed = index_argument(query, "seed", _MOST_SEED), query.site
    order = np.random.default_rng(seed).permutation(persons)
    half = len(order) // 2
    return order[:half], order[half : 2 * half]


def released_columns(query: Query, columns: int) -> Array:
    """Which columns' means by site are released, and not declared.

    Raises
    ------
    ProtocolError
        If they are no numbers of columns.
    """
    return _whole(query, "released", columns)


def outcome_norms(data: SiteData, query: Query) -> tuple[Array, Array, Array]:
    """Rows of the outcomes in the table, and where and how wide each is."""
    rows = _whole(query, "outcomes", data.features)
    location, scales = (array_argument(query, name, 1) for name in ("location", "scales"))
    if not len(location) == len(scales) == len(rows):
        raise ProtocolError("The query's 'outcomes' don't fit their norms; discard it.")
    return rows, location, scales


def has_enough_outcomes(query: Query, present: Array) -> Array:
    """Who has enough outcomes: lacks no larger part than the query says, and than a half."""
    most = min(number_argument(query, "gaps"), _MOST_GAPS)
    return np.asarray(present >= 1 - most)


def slopes_and_centres(query: Query, covariates: int, columns: int) -> tuple[Array, Array]:
    """γ, and the centres of a site's columns, of a later query."""
    slopes = array_argument(query, "slopes", 1) if covariates else np.zeros(0)
    centres = array_argument(query, "centres", 2)
    sites = site_columns(query)
    if len(slopes) != covariates or centres.shape != (sites, columns):
        raise ProtocolError("The query's 'slopes' or 'centres' are misshapen; discard it.")
    return slopes, np.asarray(centres[query.site])


def _covariates(query: Query, table: Table) -> tuple[Array, Array]:
    products = _products(query, len(table))
    rows = _whole(query, "covariates", len(table) + len(products.rows))
    means, scales = (array_argument(query, n, 1) for n in ("means", "deviations"))
    if not len(means) == len(scales) == len(rows):
        raise ProtocolError("The query's 'covariates' don't fit their means; discard it.")
    means = means + scales * _declared(query, len(rows))
    taken = products.take(table, rows)
    x, known = standardize_outcomes(taken, means, scales, COVARIATE_LIMIT)
    return x, np.asarray(known.all(axis=0))


def _products(query: Query, features: int) -> Products:
    if "factors" not in query.arguments:
        return Products(*np.zeros((3, 0, 2)))
    rows, means, scales = (
        array_argument(query, name, 2) for name in ("factors", "factor-means", "factor-deviations")
    )
    if not rows.shape == means.shape == scales.shape or rows.shape[1] != 2:
        raise ProtocolError("The query's 'factors' don't fit their means; discard it.")
    return Products(_whole_numbers(rows, "factors", features), means, scales)


def _declared(query: Query, columns: int) -> Array:
    """Declared means of a site's columns, in public deviations; 0 for those that are released."""
    declared = array_argument(query, "declared", 2)
    if declared.shape != (site_columns(query), columns) or query.site >= len(declared):
        raise ProtocolError("The query's 'declared' doesn't fit its sites; discard it.")
    return np.asarray(declared[query.site])


def _whole(query: Query, name: str, limit: int) -> Array:
    """Whole numbers from 0 to below a limit."""
    return _whole_numbers(array_argument(query, name, 1), name, limit)


def _whole_numbers(rows: Array, name: str, limit: int) -> Array:
    whole = rows.astype(np.int64) if np.isfinite(rows).all() else np.full(1, -1)
    if not np.array_equal(whole, rows) or whole.min(initial=0) < 0:
        raise ProtocolError(f"The query's '{name}' are no row numbers; discard it.")
    if whole.max(initial=-1) >= limit:
        raise ProtocolError(f"The query's '{name}' are beyond the features; discard it.")
    return whole


def standardize_outcomes(
    rows: Array, means: Array, scales: Array, limit: float
) -> tuple[Array, Array]:
    """Deviations over scales, cut to a limit and 0 where missing; and what is not missing."""
    values = np.subtract(rows, means[:, None], dtype=np.float64)
    values /= scales[:, None]
    known = ~np.isnan(values)
    if not known.all():
        np.copyto(values, 0.0, where=~known)
    return np.clip(values, -limit, limit, out=values), known
