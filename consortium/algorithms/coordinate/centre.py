"""A level of privacy for every view: means, or least squares, of which some views tell less.

Source: Aliakbarpour, Chaudhuri, Courtade, Fallah and Jordan (2024), Bayesian coordinate
differential privacy, for Gaussian noise on a mean over all sites. A view's weight in the release
is so small that changing it alone costs no more than its level, while the whole person costs the
study's ε; see `privacy.coordinates`. What a level means for somebody who knows how views depend on
each other is worked out in `privacy.bayesian` and told in the result.

The weights are in the plan's bound, which every site works out for itself. The queries have no
arguments, so that nobody can ask for other levels than those that were approved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from consortium.algorithms.base import (
    Array,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
    SiteData,
    Takes,
)
from consortium.algorithms.coordinate.plan import CoordinateParameters, plan_bound, plan_release
from consortium.algorithms.coordinate.result import mean_result, pooled, squares_result
from consortium.errors import PrivacyError
from consortium.kernels.columns import mean_packed_square
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns
from consortium.privacy.view_bounds import PartsBound


def _weighted_columns(data: SiteData, bound: PartsBound) -> Iterator[Array]:
    """Yield every part of the weighted vectors, each clipped by itself: entries x M_s."""
    table, start = data.table(), 0
    for part in bound.parts:
        rows = np.nan_to_num(table[start : start + part.entries].astype(np.float64))
        start += part.entries
        yield part.weight * clip_columns(np.clip(rows, -1.0, 1.0), part.radius)


def _coordinate_mean(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of their weighted entries, length D."""
    del query
    means = [part.mean(axis=1) for part in _weighted_columns(data, _parts(bound))]
    return np.concatenate(means)


def _coordinate_moment(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of z zᵀ, z = (weighted entries, c), packed: (D + 1)(D + 2)/2 numbers."""
    del query
    known = _parts(bound)
    columns = np.vstack(list(_weighted_columns(data, known)))
    constant = np.full((1, columns.shape[1]), known.constant)
    return mean_packed_square(np.vstack([columns, constant]), known.norm)


def _parts(bound: Bound) -> PartsBound:
    if not isinstance(bound, PartsBound):
        raise PrivacyError("The plan's bound tells nothing of the views; refuse the query.")
    return bound


class Coordinate:
    """One release: of D numbers, or of (D + 1)(D + 2)/2 for least squares."""

    name = "coordinate"
    title = "levels of privacy by view"
    takes: Takes = "features"
    needs_means = True
    Parameters = CoordinateParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "coordinate_mean": _coordinate_mean,
        "coordinate_moment": _coordinate_moment,
    }

    def releases(self, parameters: CoordinateParameters, shape: Shape) -> tuple[PlannedRelease]:
        """One release with the budget that the levels leave room for."""
        return (plan_release(parameters, shape),)

    def run(self, parameters: CoordinateParameters, shape: Shape) -> Run:
        """Ask once, and take the weights off again."""
        bound = plan_bound(parameters, shape)
        statistic = "coordinate_mean" if parameters.target is None else "coordinate_moment"
        release = yield Query("coordinate", statistic)
        found = pooled(release, shape)
        solve = mean_result if parameters.target is None else squares_result
        return solve(parameters, shape, bound, found)
