"""Maps at full resolution for one release more: every voxel's series times the courses of ICA.

ICA ran on few features (an atlas, a coarse grid). One private average of y zᵀ, y a volume at full
resolution and z the unmixed courses, then gives what the regression of voxels on courses would,
since the courses are white. Source: the second half of dual regression (Beckmann et al. 2009),
as one sum over all subjects.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Protocol

import numpy as np

from consortium.algorithms.base import Array, PlannedRelease, Query, Shape, SiteData
from consortium.algorithms.query_arguments import array_argument, feature_argument
from consortium.errors import ProtocolError, StudyError
from consortium.kernels.power import add_subject_maps, add_volume_maps
from consortium.privacy.bounds import Bound

_MOST_ENTRIES = 50_000_000  # 400 MB a vector


class MapParameters(Protocol):
    """What an analysis says of its maps."""

    @property
    def components(self) -> int:
        """R, maps."""

    @property
    def maps_bound(self) -> float | None:
        """Clipping bound of one unit's maps."""

    @property
    def maps_share(self) -> float:
        """Part of the whole budget (of μ²) that they may use."""


def unmixed(data: SiteData, query: Query) -> tuple[Array, Array]:
    """The query's unmixing (R x R), and the data that it is for, whitened (R x N_s).

    Raises
    ------
    ProtocolError
        If the query's matrices don't fit each other or the data.
    """
    whitening = feature_argument(query, "whitening", data.features)
    unmixing = array_argument(query, "unmixing", 2)
    if whitening.shape[1] != unmixing.shape[1]:
        raise ProtocolError(
            f"The query's whitening has shape {whitening.shape} and its unmixing "
            f"{unmixing.shape}, which don't fit each other; discard it."
        )
    return unmixing, data.reduced(whitening)


def map_products(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over units of the clipped Y Zᵀ / T (y zᵀ of a volume), V x R entries."""
    unmixing, reduced = unmixed(data, query)
    total = np.zeros((data.voxels, len(unmixing)))
    ends = np.cumsum([0, *data.lengths])
    add = add_subject_maps if data.unit == "subject" else add_volume_maps
    for block, (start, stop) in zip(data.fine_blocks(), pairwise(ends), strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            courses = unmixing.astype(reduced.dtype) @ reduced[:, start:stop]
        add(total, block, courses, bound.norm)
    units = len(data.lengths) if data.unit == "subject" else sum(data.lengths)
    return total / units


def plan_maps(parameters: MapParameters, shape: Shape) -> PlannedRelease:
    """One release of V x R numbers.

    Raises
    ------
    StudyError
        If the message would be too large.
    """
    size, entries = parameters.components, shape.map_rows * parameters.components
    if entries > _MOST_ENTRIES:
        raise StudyError(
            f"field 'data.maps_resolution': {size} maps of {shape.map_rows} voxels are more than "
            f"{_MOST_ENTRIES:,} numbers; choose coarser maps or fewer components."
        )
    bound = Bound(parameters.maps_bound or _default_bound(size, shape))
    forms = {"unmixing": (size, size), "whitening": (shape.features, size)}
    return PlannedRelease("maps", "maps", entries, bound, 1, parameters.maps_share, forms)


def ask_maps(unmixing: Array, whitening: Array) -> Query:
    """The one query of the stage."""
    return Query("maps", "maps", {"unmixing": unmixing, "whitening": whitening})


def _default_bound(components: int, shape: Shape) -> float:
    """About the largest usual norm, from public sizes, for volumes of mean squared norm 1.

    White courses take up a share of the variance, which is at most 1 and 0.3 in noisy voxels;
    by chance T volumes give each of R courses a 1/T more.
    """
    if shape.unit == "timepoint":
        return math.sqrt(components)
    length = sum(shape.samples) / sum(shape.subjects)
    return min(1.0, math.sqrt(0.3 + components / length))
