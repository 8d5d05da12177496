"""A site's half of `glm`: sums over its persons, every block clipped by itself.

A hostile centre may choose the slopes and centres of the second query. Whatever they are, a
person's weight w is at most ω, so that what is clipped by ω keeps the bound; every block is clipped
once more to the bound of the site's own plan, which comes from no query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.glm.choice import BELOW
from consortium.algorithms.glm.entries import COVARIATE_LIMIT, OUTCOME_LIMIT, Columns
from consortium.algorithms.query_arguments import array_argument, index_argument, number_argument
from consortium.errors import PrivacyError, ProtocolError
from consortium.kernels.contrast_regression import correlation_power
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, column_norms

_MOST_SEED = 1 << 31
_MOST_MISSING = 0.2  # of a person's outcomes
_OF_COVARIATES = ("covariates", "means", "deviations", "covariate-reach", "slopes", "centres")


@dataclass(frozen=True, eq=False)
class _Persons:
    """A site's persons, as a query sees them.

    Parameters
    ----------
    contrast : array, length n
        t̃ = t - q_s; 0 for who is left out.
    covariates : array, p x n
        x, clipped; 0 for who is left out.
    weight : float
        a_s.
    largest : float
        m_s.
    kept : array of bool, length n
        Who has group and covariates.
    """

    contrast: Array
    covariates: Array
    weight: float
    largest: float
    kept: Array


def glm_covariates(data: SiteData, query: Query, bound: Bound) -> Array:
    """Means over persons of a t̃ x, of a x xᵀ (packed) and of x in the site's own place.

    Returns
    -------
    array, length p + p (p + 1) / 2 + S p
    """
    blocks = _blocks(bound)
    with np.errstate(all="ignore"):
        people = _persons(data, query)
        x, count = people.covariates, len(people.contrast)
        products = people.weight * people.contrast * x
        contrast = clip_columns(products, blocks.block("contrast").norm).sum(axis=1) / count
        scaled = np.sqrt(people.weight) * x
        moment = mean_packed_square(scaled, blocks.block("moment").norm)
        means = np.zeros((len(array_argument(query, "weights", 1)), len(x)))
        means[query.site] = clip_columns(x, blocks.block("means").norm).sum(axis=1) / count
    return blocks.join({"contrast": contrast, "moment": moment, "means": means})


def glm_contrast(data: SiteData, query: Query, bound: Bound) -> Array:
    """Means over persons of c w R^-¼ u, c w t̃, squared differences of pairs and ‖c u‖²/V.

    Returns
    -------
    array, length 2 V + 2
    """
    blocks = _blocks(bound)
    correlation = number_argument(query, "correlation")
    if correlation >= 1:
        raise ProtocolError("The query's 'correlation' is no number below 1; discard it.")
    reach, seed = number_argument(query, "reach"), index_argument(query, "seed", _MOST_SEED)
    with np.errstate(all="ignore"):
        people = _persons(data, query)
        outcomes, kept = _outcomes(data, query)
        weights, largest = _weights(people, query)
        turned = correlation_power(outcomes, correlation, -0.25)
        limit, most = blocks.block("effects").norm, blocks.block("divisor").norm
        clip = _ratio(limit, largest * column_norms(turned)) * (people.kept & kept)
        weighted = _finite(clip * weights)
        clipped = clip * outcomes
        parts = {
            "effects": clip_columns(weighted * turned, limit).sum(axis=1),
            "divisor": _between(weighted * people.contrast, -BELOW * most, most).sum(),
            "squares": clip_columns(
                _pairs(clipped, weights, reach, (seed, query.site)), blocks.block("squares").norm
            ).sum(axis=1),
            "spread": _between(
                np.square(clipped).sum(axis=0) / len(clipped), 0.0, blocks.block("spread").norm
            ).sum(),
        }
        return blocks.join({name: part / len(weights) for name, part in parts.items()})


def compare_groups(columns: Columns, stated: tuple[int, int], data: SiteData) -> tuple[str, ...]:
    """Say where a site's persons are not those that the study states: all, and the second group."""
    group = data.table()[columns.group.row]
    own = len(group), int(np.sum(group > columns.threshold))
    if own == stated:
        return ()
    return (
        (
            f"the study states {stated[1]} of {stated[0]} persons in the group "
            f"'{columns.group.label}', and this data set has {own[1]} of {own[0]}; effects are a "
            "little off unless analysis.groups is corrected."
        ),
    )


def _blocks(bound: Bound) -> BlocksBound:
    if not isinstance(bound, BlocksBound):
        raise PrivacyError("A release of blocks needs a bound for each; plan it anew.")
    return bound


def _persons(data: SiteData, query: Query) -> _Persons:
    table = data.table()
    proportions = array_argument(query, "proportions", 1)
    weights = array_argument(query, "weights", 1)
    threshold = number_argument(query, "threshold")
    if not query.site < len(proportions) == len(weights):
        raise ProtocolError("The query's 'weights' don't fit the sites; discard it.")
    group = table[index_argument(query, "group", data.features)].astype(np.float64)
    own, weight = float(proportions[query.site]), float(weights[query.site])
    kept, x = np.isfinite(group), np.zeros((0, len(group)))
    if any(name in query.arguments for name in _OF_COVARIATES):
        rows = _rows(data, query, "covariates")
        means, scales = (array_argument(query, n, 1) for n in ("means", "deviations"))
        reach = number_argument(query, "covariate-reach")
        if not len(means) == len(scales) == len(rows):
            raise ProtocolError("The query's 'covariates' don't fit their means; discard it.")
        x, known = _standardized(table[rows], means, scales, COVARIATE_LIMIT)
        kept &= known.all(axis=0)
        x = clip_columns(x, reach) * kept
    contrast = np.where(kept, (group > threshold) - own, 0.0)
    return _Persons(contrast, x, weight, max(own, 1 - own), kept)


def _outcomes(data: SiteData, query: Query) -> tuple[Array, Array]:
    """Outcomes in public standard deviations, 0 where missing, and who has enough of them."""
    rows = _rows(data, query, "outcomes")
    location, scales = (array_argument(query, name, 1) for name in ("location", "scales"))
    if not len(location) == len(scales) == len(rows):
        raise ProtocolError("The query's 'outcomes' don't fit their norms; discard it.")
    values, known = _standardized(data.table()[rows], location, scales, OUTCOME_LIMIT)
    return values, known.mean(axis=0) >= 1 - _MOST_MISSING


def _weights(people: _Persons, query: Query) -> tuple[Array, Array]:
    """Every person's w, and the ω that it is never above."""
    shift = np.zeros(len(people.contrast))
    if len(people.covariates):
        slopes, centres = array_argument(query, "slopes", 1), array_argument(query, "centres", 2)
        sites = len(array_argument(query, "weights", 1))
        if len(slopes) != len(people.covariates) or centres.shape != (sites, len(slopes)):
            raise ProtocolError("The query's 'slopes' or 'centres' are misshapen; discard it.")
        shift = slopes @ (people.covariates - centres[query.site][:, None])
    weights = people.weight * (people.contrast - shift)
    return weights, people.weight * (people.largest + np.abs(shift))


def _pairs(clipped: Array, weights: Array, reach: float, seed: tuple[int, int]) -> Array:
    """Weighted squared differences of persons who were paired by lot, whoever they are.

    The draw is public and knows places in the table only: replacing a person changes one pair.
    """
    order = np.random.default_rng(seed).permutation(len(weights))
    half = len(order) // 2
    one, other = order[:half], order[half : 2 * half]
    share = (np.square(weights[one] / reach) + np.square(weights[other] / reach)) / 2
    squares = np.square(clipped[:, one] - clipped[:, other]) / 2
    weighted: Array = _finite(np.minimum(1.0, share)) * squares
    return weighted


def _rows(data: SiteData, query: Query, name: str) -> Array:
    """Row numbers that a query names."""
    rows = array_argument(query, name, 1)
    whole = rows.astype(np.int64) if np.isfinite(rows).all() else np.full(1, -1)
    if not np.array_equal(whole, rows) or whole.min(initial=0) < 0:
        raise ProtocolError(f"The query's '{name}' are no row numbers; discard it.")
    if whole.max(initial=0) >= data.features:
        raise ProtocolError(f"The query's '{name}' are beyond the features; discard it.")
    return whole


def _standardized(rows: Array, means: Array, scales: Array, limit: float) -> tuple[Array, Array]:
    """Deviations over scales, cut to a limit and 0 where missing; and what is not missing."""
    values = (rows.astype(np.float64) - means[:, None]) / scales[:, None]
    known = ~np.isnan(values)
    return np.clip(np.where(known, values, 0.0), -limit, limit), known


def _ratio(limit: float, sizes: Array) -> Array:
    """min(1, limit / size), and 0 for a size that is no number."""
    return np.where(np.isfinite(sizes), limit / np.maximum(sizes, limit), 0.0)


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)


def _between(values: Array, least: float, most: float) -> Array:
    """Values cut to a smallest and a largest one; 0 for what is no number."""
    return np.clip(_finite(values), least, most)
