"""The private average of every unit's mean volume: the smallest complete algorithm.

Source: dissertation section 3.1 and Algorithm 3.2, for vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from consortium.algorithms.base import (
    Array,
    Captions,
    Case,
    Local,
    PlannedRelease,
    Query,
    Result,
    Run,
    Shape,
    SiteData,
    Takes,
)
from consortium.frozen_model import FrozenModel
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, clip_vector


class AverageParameters(FrozenModel):
    """Parameters of `average`."""

    bound: float = Field(
        default=1.0, gt=0, description="Clipping bound of one unit's mean volume (Euclidean norm)."
    )


def _mean_volume(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over the site's units of their clipped (mean) volume, length D."""
    del query
    total = np.zeros(data.features)
    for block in data.blocks():
        if data.unit == "subject":
            total += clip_vector(block.mean(axis=1, dtype=np.float64), bound.norm)
        else:
            total += clip_columns(block, bound.norm).sum(axis=1, dtype=np.float64)
    return total / data.units


class Average:
    """One release of D numbers."""

    name = "average"
    title = "private average"
    takes: Takes = "any"
    needs_means = True
    Parameters = AverageParameters
    statistics: ClassVar[Mapping[str, Local]] = {"mean_volume": _mean_volume}
    cases: ClassVar[Sequence[Case]] = (
        Case(),
        Case({"bound": 0.3}, "timepoint"),
    )

    def releases(self, parameters: AverageParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget."""
        bound = Bound(parameters.bound)
        return (PlannedRelease("average", "mean_volume", shape.features, bound, 1, 1.0),)

    def run(self, parameters: AverageParameters, shape: Shape) -> Run:
        """Ask once and return the answer as a map (D x 1)."""
        del parameters, shape
        release = yield Query("average", "mean_volume")
        return Result(
            {"mean": release.values[:, None]},
            {"noise_deviation": release.deviation},
            maps="mean",
            noise=release.deviation,
            captions=Captions("mean", "", "Mean over all persons."),
        )
