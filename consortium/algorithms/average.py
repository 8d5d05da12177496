"""The private average of every unit's mean volume: the smallest complete algorithm.

Source: dissertation section 3.1 and Algorithm 3.2, for vectors. For feature vectors the sampling
error is estimated from the mean of every entry's square, which is part of the same release without
further privacy loss (`_mean_squares`). For images it is bounded by the public clipping bound. If
the study allows gaps, a second block counts the participants who lack each entry, and each mean
covers the participants who have it (`consortium.algorithms.coverage`).
"""

import math
from collections.abc import Iterable
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtri

from consortium.algorithms import coverage
from consortium.algorithms.average_parameters import AverageParameters
from consortium.algorithms.average_result import average_result, mean_noise
from consortium.algorithms.base import (
    AnalysisPlan,
    Array,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Run,
    SiteData,
)
from consortium.algorithms.over_persons import sum_over_persons
from consortium.errors import PrivacyError
from consortium.privacy.block_bounds import Block, BlocksBound
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.clipping import clip_columns

_TABLES = (
    "For columns of tables 'describe' replaces 'average': it has means with standard deviations, "
    "quantiles and missing values, by group. In new studies of tables write 'algorithm: describe'."
)
_USUAL = 0.8
"""Assumed squared norm of a participant over the bound's square."""


def _mean_volume(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over the site's units of their clipped (mean) volume, length D."""
    del query
    part = partial(_sum_volumes, data.features, data.unit, bound.norm)
    return sum_over_persons(data, part, (data.features,)) / data.units


def _mean_squares(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over units of (x, x²/(√2 B)), x clipped to B = `bound.influence`/2: 2 D.

    The squares add no privacy loss. For x, y of norm B with cosine c, ‖x - y‖² is 2 B² (1 - c) and
    ‖x² - y²‖² at most ‖x xᵀ - y yᵀ‖² = 2 B⁴ (1 - c²), whose diagonal is x² - y². Together they are
    B² (2 (1 - c) + 1 - c²) ≤ 4 B², which is reached at c = -1, as for x only. The distance is
    convex in ‖x‖ and ‖y‖. So it is largest for norms of B or 0, and then no larger.
    """
    del query
    return _moments(_vectors(data), _reach(bound)) / data.units


def _covered_volume(_plan: object, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return means over units of their clipped volume, and of indicators of voxels equal to 0."""
    del query
    norms = bound.block("mean").norm, bound.block(coverage.ABSENT).norm
    part = partial(_sum_covered, data.features, data.unit, norms)
    mean, absent = sum_over_persons(data, part, (2, data.features)) / data.units
    return bound.join({"mean": mean, coverage.ABSENT: absent})


def _covered_squares(_plan: object, data: SiteData, query: Query, bound: BlocksBound) -> Array:
    """Return means over units of (x, x²/(√2 B)), and of indicators of missing entries.

    A missing entry is not a finite number, and counts as 0 in x. Both blocks are made of one unit's
    own vector and clipped one by one. A unit therefore moves the first by 2 B at most
    (`_mean_squares`), the second by its own spread, and both, scaled by their shares, by 1.
    """
    del query
    vectors = _vectors(data)
    absent = ~np.isfinite(vectors)
    moments = _moments(np.where(absent, 0.0, vectors), bound.block("moments").spread / 2.0)
    missing = coverage.clip_absent(absent, bound.block(coverage.ABSENT).norm).sum(axis=1)
    return bound.join({"moments": moments / data.units, coverage.ABSENT: missing / data.units})


def _reach(bound: Bound) -> float:
    """Return B of the release of means and squares."""
    if bound.influence is None:
        raise PrivacyError(
            "The plan's bound must be that of means and squares, and is another. Refuse the query."
        )
    return bound.influence / 2.0


def _vectors(data: SiteData) -> Array:
    return np.hstack([_volumes(block, data.unit) for block in data.blocks()])


def _volumes(block: Array, unit: Unit) -> Array:
    with np.errstate(all="ignore"):
        return block.mean(axis=1, keepdims=True, dtype=np.float64) if unit == "subject" else block


def _moments(vectors: Array, reach: float) -> Array:
    """Return sums of (x, x²/(√2 B)) over vectors, D x N, that are clipped to norm B = ``reach``."""
    units = clip_columns(vectors, reach)
    squares = units * (units / (math.sqrt(2.0) * reach))
    return np.concatenate([units.sum(axis=1), squares.sum(axis=1)])


def _sum_volumes(features: int, unit: Unit, norm: float, blocks: Iterable[Array]) -> Array:
    total = np.zeros(features)
    for block in blocks:
        total += clip_columns(_volumes(block, unit), norm).sum(axis=1, dtype=np.float64)
    return total


def _sum_covered(
    features: int, unit: Unit, norms: tuple[float, float], blocks: Iterable[Array]
) -> Array:
    total = np.zeros((2, features))
    for block in blocks:
        volumes = _volumes(block, unit)
        total[0] += clip_columns(volumes, norms[0]).sum(axis=1, dtype=np.float64)
        total[1] += coverage.clip_absent(volumes == 0, norms[1]).sum(axis=1)
    return total


class Average(AnalysisPlan[AverageParameters]):
    """One release of D numbers, or of 2 D from feature vectors; with gaps, of D more."""

    name = "average"
    title = "private average"
    takes = "any"
    needs_means = True
    Parameters = AverageParameters
    statistics = {
        "mean_volume": _mean_volume,
        "mean_squares": _mean_squares,
        "covered_volume": _covered_volume,
        "covered_squares": _covered_squares,
    }
    cases = (
        Case(),
        Case({"bound": 0.3}, "timepoint"),
        Case({"bound": 0.7}, views=(("x", 4), ("y", 1))),
        Case({"gaps": 0.5}),
        Case({"bound": 0.3, "gaps": 0.4}, "timepoint"),
        Case({"bound": 0.7}, views=(("gaps", 4), ("y", 1))),
    )

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget."""
        views = bool(self.shape.views)
        if self.parameters.most_missing:
            statistic = "covered_squares" if views else "covered_volume"
            return (self._release(statistic, self._blocks.entries, self._blocks),)
        norm = self.parameters.bound
        entries = self.shape.features
        if not views:
            return (self._release("mean_volume", entries, Bound(norm)),)
        squares = Bound(math.sqrt(1.5) * norm, influence=2.0 * norm)
        return (self._release("mean_squares", 2 * entries, squares),)

    def _release(self, statistic: str, entries: int, bound: Bound) -> PlannedRelease:
        return PlannedRelease(
            stage="average", statistic=statistic, entries=entries, bound=bound, rounds=1, share=1.0
        )

    @property
    def _blocks(self) -> BlocksBound:
        """Bound of the means, with squares of feature vectors, and of the missing entries."""
        norm = self.parameters.bound
        entries = self.shape.features
        left = 1 - coverage.SHARE
        own = Block("mean", entries, norm, 2.0 * norm, left)
        if self.shape.views:
            own = Block("moments", 2 * entries, math.sqrt(1.5) * norm, 2.0 * norm, left)
        return BlocksBound.of([own, coverage.absent_block(entries, self.parameters.most_missing)])

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the standard error of an entry, from only noise to the largest sampling error.

        Participants whose norm is the bound and whose mean is zero have the largest sampling error,
        which a result reports. A usual one's squared norm is assumed to be four fifths of that.
        """
        (planned,) = self.releases
        units = sum(self.shape.units)
        entries = self.shape.features
        noise = mean_noise(planned.bound, planned.round_deviation(self.shape))
        chance = self.parameters.bound / math.sqrt(units * entries)
        error = math.hypot(noise, math.sqrt(_USUAL) * chance)
        most = math.hypot(noise, chance)
        floor = float(-ndtri((1 - self.parameters.confidence) / (2 * entries))) * most
        ranged = "from only noise to the largest sampling error"
        return (
            Expectation("standard error", error, noise, most, rises=False, ranged=ranged),
            Expectation("least mean that is seen", floor, rises=False),
        )

    def remarks(self) -> tuple[str, ...]:
        """Return which analysis replaces this one for tables."""
        views = self.parameters.views
        if not views or not all(view.single_columns for view in views):
            return ()
        return (_TABLES,)

    def run(self) -> Run:
        """Ask once and return the answer as a map (D x 1)."""
        (planned,) = self.releases
        release = yield Query("average", planned.statistic)
        return average_result(
            self.parameters, self.estimated_shape(release), planned.bound, release
        )
