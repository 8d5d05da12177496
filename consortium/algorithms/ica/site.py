"""A site's half of `ica`: moments of unmixed time series, and maps.

They are computed for an unmixing W and a whitening of the query. Every unit's moment is clipped by
itself.

Maps have full resolution if the ICA ran on few features (an atlas, a coarse grid). One private
average of y zᵀ, y a volume at full resolution and z the unmixed time series, equals the regression
of voxels on them, since they are white. Source: the second half of dual regression (Beckmann et al.
2009), as one sum over all subjects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, overload

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.ica.kernels import infomax
from consortium.algorithms.over_persons import sum_over_persons
from consortium.kernels.power import add_subject_maps, add_volume_maps
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.clipping import clipped_mean

if TYPE_CHECKING:
    from consortium.algorithms.ica.centre import Ica


def rotation(plan: Ica, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return `ica`'s mean over units of the clipped antisymmetric moment, R(R−1)/2 entries."""
    unmixing, reduced = _unmixing_and_data(data, query)
    if data.unit == "timepoint":
        return infomax.rotation_by_volume(unmixing, reduced, bound.norm) / data.units
    moments = infomax.subject_moments(unmixing, reduced, data.lengths, plan.score)
    return clipped_mean(map(infomax.antisymmetric_part, moments), bound.norm, data.units)


def fixed_point(plan: Ica, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return `ica`'s mean over subjects of the clipped ψ zᵀ − diag ψ', R² entries."""
    unmixing, reduced = _unmixing_and_data(data, query)
    steps = infomax.subject_steps(unmixing, reduced, data.lengths, plan.score)
    return clipped_mean(steps, bound.norm, data.units)


def gradient(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return `ica`'s mean over units of the clipped ŷ (z; 1)ᵀ, R(R+1) entries."""
    unmixing, reduced = _unmixing_and_data(data, query)
    bias = query.arguments["bias"]
    if data.unit == "timepoint":
        return infomax.infomax_by_volume(unmixing, bias, reduced, bound.norm) / data.units
    ends = np.cumsum([0, *data.lengths])
    # One layout for any other subjects, because the rounding of a product may depend on it.
    spans = (np.ascontiguousarray(reduced[:, a:b]) for a, b in pairwise(ends))
    means = (infomax.infomax_mean(unmixing, bias, block)[None] for block in spans)
    return clipped_mean(means, bound.norm, data.units)


def map_products(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return `ica`'s mean over units of the clipped Y Zᵀ / T (y zᵀ of a volume), V x R entries."""
    unmixing, reduced = _unmixing_and_data(data, query)
    shape = (data.voxels, len(unmixing))
    spans = _Spans(reduced, data.lengths)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = unmixing.astype(reduced.dtype)
    part = partial(_sum_maps, shape, narrow, data.unit, bound.norm)
    return sum_over_persons(data, part, shape, "maps", spans) / data.units


def _unmixing_and_data(data: SiteData, query: Query) -> tuple[Array, Array]:
    """Return the query's unmixing (R x R), and its whitened data (R x N_s)."""
    return query.arguments["unmixing"], data.reduced(query.arguments["whitening"])


class _Spans(Sequence[Array]):
    """Each participant's columns, copied on access, since all together may not fit in memory."""

    def __init__(self, reduced: Array, lengths: Sequence[int]) -> None:
        self._reduced = reduced
        self._ends = np.cumsum([0, *lengths])

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, which: int) -> Array: ...
    @overload
    def __getitem__(self, which: slice) -> list[Array]: ...
    def __getitem__(self, which: int | slice) -> Array | list[Array]:
        if isinstance(which, slice):
            return [self[number] for number in range(len(self))[which]]
        start, stop = self._ends[range(len(self))[which] :][:2]
        # One layout, sent to a worker or not: how a product is rounded may depend on it.
        return np.ascontiguousarray(self._reduced[:, start:stop])


def _sum_maps(
    shape: tuple[int, int],
    unmixing: Array,
    unit: Unit,
    norm: float,
    persons: Iterable[tuple[Array, Array]],
) -> Array:
    total = np.zeros(shape)
    for block, reduced in persons:
        if unit == "timepoint":
            add_volume_maps(total, block, product_of_columns(unmixing, reduced), norm)
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            courses = unmixing @ reduced
        add_subject_maps(total, block, courses, norm)
    return total
