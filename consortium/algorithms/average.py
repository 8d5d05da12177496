"""The private average of every unit's mean volume: the smallest complete algorithm.

Source: dissertation section 3.1 and Algorithm 3.2, for vectors. What chance adds to the noise is
bounded by what is public, the clipping bound, so that it costs no release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy.special import ndtri

from consortium.algorithms.assumed import deviation_of
from consortium.algorithms.base import (
    MOST_ROWS,
    Array,
    Captions,
    Case,
    Expectation,
    Local,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    Shape,
    SiteData,
    Table,
    Takes,
)
from consortium.algorithms.findings import Finding, ImageSet
from consortium.algorithms.over_persons import sum_over_persons
from consortium.formatting import count
from consortium.frozen_model import FrozenModel
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.clipping import clip_columns, clip_vector

_USUAL = 0.8
"""Assumed squared norm of a person over the bound's square."""


class AverageParameters(FrozenModel):
    """Parameters of `average`."""

    bound: float = Field(
        default=1.0, gt=0, description="Clipping bound of one unit's mean volume (Euclidean norm)."
    )
    confidence: float = Field(
        default=0.95,
        gt=0.5,
        lt=1,
        description="Level of every interval, and of all values together that are coloured.",
    )


def _mean_volume(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over the site's units of their clipped (mean) volume, length D."""
    del query
    part = partial(_sum_volumes, data.features, data.unit, bound.norm)
    return sum_over_persons(data, part, (data.features,)) / data.units


def _sum_volumes(features: int, unit: Unit, norm: float, blocks: Iterable[Array]) -> Array:
    total = np.zeros(features)
    for block in blocks:
        if unit == "subject":
            total += clip_vector(block.mean(axis=1, dtype=np.float64), norm)
        else:
            total += clip_columns(block, norm).sum(axis=1, dtype=np.float64)
    return total


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

    def expect(self, parameters: AverageParameters, shape: Shape) -> tuple[Expectation, ...]:
        """Standard error of an entry, from noise alone to what chance can add at the most.

        Persons whose norm is the bound and whose mean is zero have the largest chance, which is
        what a result tells; a usual one's squared norm is assumed to be four fifths of that.
        """
        (planned,) = self.releases(parameters, shape)
        units, entries = sum(shape.units), shape.features
        noise = deviation_of(planned, shape)
        chance = parameters.bound / math.sqrt(units * entries)
        error, most = math.hypot(noise, math.sqrt(_USUAL) * chance), math.hypot(noise, chance)
        floor = float(-ndtri((1 - parameters.confidence) / (2 * entries))) * most
        ranged = "from noise alone to all that chance can add"
        return (
            Expectation("standard error", error, noise, most, rises=False, ranged=ranged),
            Expectation("least mean that is seen", floor, rises=False),
        )

    def run(self, parameters: AverageParameters, shape: Shape) -> Run:
        """Ask once and return the answer as a map (D x 1)."""
        release = yield Query("average", "mean_volume")
        return _result(release, parameters, shape)


def standard_error(release: Release, bound: float, units: int) -> float:
    """Of an entry of the mean: noise of privacy, and chance of units at the most.

    Of units x of norm B or less, all entries' variances together are E‖x‖² − ‖m‖² ≤ B² − ‖m‖², a
    D-th of it each if entries vary alike. ‖m‖² is freed of the noise's D τ².
    """
    mean, level = release.values, release.deviation
    square = max(float(mean @ mean) - len(mean) * level**2, 0.0)
    chance = max(bound**2 - square, 0.0) / (units * len(mean))
    return math.hypot(level, math.sqrt(chance))


def _result(release: Release, parameters: AverageParameters, shape: Shape) -> Result:
    """The mean, its error, and which of its values stand out of noise and chance together."""
    mean, size = release.values, len(release.values)
    error = standard_error(release, parameters.bound, sum(shape.units))
    half = float(ndtri((1 + parameters.confidence) / 2)) * error
    floor = float(-ndtri((1 - parameters.confidence) / (2 * size))) * error
    found = np.abs(mean) > floor
    numbers = {
        "noise_deviation": release.deviation,
        "standard_error": error,
        "floor": floor,
        "found": int(found.sum()),
    }
    words = Captions(
        "mean", _headline(found, floor), "Mean over the persons of these sites.", found=any(found)
    )
    arrays = {"mean": mean[:, None], "found": found[:, None]}
    if shape.views:
        tables = {"means": _table(mean, half, found, parameters, shape)}
        return Result(arrays, numbers, loadings="mean", told="found", tables=tables, captions=words)
    return Result(arrays, numbers, images=_images(mean, error, found, floor), captions=words)


def _headline(found: Array, floor: float) -> str:
    if found.any():
        return f"{int(found.sum())} of {count(len(found), 'value')} of the mean are not zero."
    return f"Nothing was found; a mean below {floor:.2g} would not be seen at this ε and number."


def _images(mean: Array, error: float, found: Array, floor: float) -> dict[str, ImageSet]:
    names, told = ("mean",), (bool(found.any()),)
    errors = np.full((len(mean), 1), error)
    return {
        "mean": ImageSet(
            mean[:, None],
            "Mean over the persons of these sites; what noise and chance could make anywhere in "
            "the map is not coloured.",
            names,
            found=told,
            threshold=floor,
        ),
        "errors": ImageSet(
            errors,
            "Standard error of each value of the mean, of noise and chance together.",
            names,
            {"stat": "stderr"},
            drawn=False,
        ),
    }


def _table(
    mean: Array, half: float, found: Array, parameters: AverageParameters, shape: Shape
) -> Table:
    rows = tuple(
        (*name, Finding(float(m), float(m - half), float(m + half), "found" if f else "not found"))
        for name, m, f in zip(shape.entry_names, mean, found, strict=True)
    )
    percent = f"{100 * parameters.confidence:g}"
    return Table(
        f"Means over the persons of these sites, clipped, with {percent} % intervals for noise and "
        f"chance; found are those that differ from zero, all together at {percent} %.",
        ("view", "entry", "mean"),
        rows[:MOST_ROWS],
    )
