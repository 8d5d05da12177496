"""The private average of every unit's mean volume: the smallest complete algorithm.

Source: dissertation section 3.1 and Algorithm 3.2, for vectors. What chance adds to the noise is
told, for feature vectors, by the mean of every entry's square, which in the same release costs
nothing (`_mean_squares`); for images it is bounded by what is public, the clipping bound.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy.special import log_ndtr, ndtri

from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.base import (
    MOST_ROWS,
    AnalysisParameters,
    AnalysisPlan,
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
    SiteData,
    Table,
)
from consortium.algorithms.findings import Finding, ImageSet
from consortium.algorithms.over_persons import sum_over_persons
from consortium.base.formatting import count
from consortium.errors import PrivacyError
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.clipping import clip_columns

_USUAL = 0.8
"""Assumed squared norm of a person over the bound's square."""


class AverageParameters(AnalysisParameters):
    """Parameters of `average`."""

    bound: float = Field(default=1.0, gt=0)
    """Clipping bound of one unit's mean volume (Euclidean norm)."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of every interval, and of all values together that are coloured."""


def _mean_volume(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over the site's units of their clipped (mean) volume, length D."""
    del query
    part = partial(_sum_volumes, data.features, data.unit, bound.norm)
    return sum_over_persons(data, part, (data.features,)) / data.units


def _mean_squares(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over the site's units of (x, x²/(√2 B)), x clipped to B = `bound.influence`/2: 2 D.

    The squares cost nothing. For x, y of norm B with cosine c, ‖x - y‖² is 2 B² (1 - c) and
    ‖x² - y²‖² at most ‖x xᵀ - y yᵀ‖² = 2 B⁴ (1 - c²), of which x² - y² is the diagonal; together
    B² (2 (1 - c) + 1 - c²) ≤ 4 B², which is reached at c = -1, as of x alone. The distance is
    convex in ‖x‖ and ‖y‖, so that it is largest for norms of B or 0, and then no larger.
    """
    del query
    reach = _reach(bound)
    units = np.hstack([_units(block, data.unit, reach) for block in data.blocks()])
    squares = units * (units / (math.sqrt(2.0) * reach))
    return np.concatenate([units.sum(axis=1), squares.sum(axis=1)]) / data.units


def _reach(bound: Bound) -> float:
    """B, of the release of means and squares."""
    if bound.influence is None:
        raise PrivacyError("The plan's bound is not that of means and squares; refuse the query.")
    return bound.influence / 2.0


def _units(block: Array, unit: Unit, norm: float) -> Array:
    volumes = block.mean(axis=1, keepdims=True, dtype=np.float64) if unit == "subject" else block
    return clip_columns(volumes, norm)


def _sum_volumes(features: int, unit: Unit, norm: float, blocks: Iterable[Array]) -> Array:
    total = np.zeros(features)
    for block in blocks:
        total += _units(block, unit, norm).sum(axis=1, dtype=np.float64)
    return total


class Average(AnalysisPlan[AverageParameters]):
    """One release of D numbers, or of 2 D from feature vectors."""

    name = "average"
    title = "private average"
    takes = "any"
    needs_means = True
    Parameters = AverageParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "mean_volume": _mean_volume,
        "mean_squares": _mean_squares,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case(),
        Case({"bound": 0.3}, "timepoint"),
        Case({"bound": 0.7}, views=(("x", 4), ("y", 1))),
    )

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget."""
        norm, entries = self.parameters.bound, self.shape.features
        if not self.shape.views:
            return (PlannedRelease("average", "mean_volume", entries, Bound(norm), 1, 1.0),)
        bound = Bound(math.sqrt(1.5) * norm, influence=2.0 * norm)
        return (PlannedRelease("average", "mean_squares", 2 * entries, bound, 1, 1.0),)

    def expect(self) -> tuple[Expectation, ...]:
        """Standard error of an entry, from noise alone to what chance can add at the most.

        Persons whose norm is the bound and whose mean is zero have the largest chance, which is
        what a result tells; a usual one's squared norm is assumed to be four fifths of that.
        """
        (planned,) = self.releases
        units, entries = sum(self.shape.units), self.shape.features
        noise = round_deviation(planned, self.shape)
        chance = self.parameters.bound / math.sqrt(units * entries)
        error, most = math.hypot(noise, math.sqrt(_USUAL) * chance), math.hypot(noise, chance)
        floor = float(-ndtri((1 - self.parameters.confidence) / (2 * entries))) * most
        ranged = "from noise alone to all that chance can add"
        return (
            Expectation("standard error", error, noise, most, rises=False, ranged=ranged),
            Expectation("least mean that is seen", floor, rises=False),
        )

    def run(self) -> Run:
        """Ask once and return the answer as a map (D x 1)."""
        return _result(self, (yield Query("average", self.releases[0].statistic)))


def _evenly(mean: Array, level: float, bound: float) -> Array:
    """Variance of every entry, if all vary alike and as much as the bound lets them.

    Of units x of norm B or less, all entries' variances together are E‖x‖² − ‖m‖² ≤ B² − ‖m‖².
    ‖m‖² is freed of the noise's D τ².
    """
    square = max(float(mean @ mean) - len(mean) * level**2, 0.0)
    return np.full(len(mean), max(bound**2 - square, 0.0) / len(mean))


def _variances(mean: Array, squares: Array, level: float, bound: float) -> Array:
    """Variance of every entry, from noisy means of entries and squares.

    Shrunk to the entries' mean as far as they differ by noise (James and Stein), and told as what
    is expected of a variance, which is not negative.
    """
    many, own = len(mean), math.sqrt(2.0) * bound * level  # noise of a mean square
    found = squares - np.square(mean) + level**2
    noise = own**2 + 4.0 * np.square(mean) * level**2
    kept = 1.0
    if many > 3:
        apart, doubt = float(found.var(ddof=1)), float(noise.mean()) * (many - 3) / (many - 1)
        kept = max(1.0 - doubt / apart, 0.0) if apart > 0 else 0.0
    middle = found.mean() + kept * (found - found.mean())
    spread = np.sqrt(noise * (kept + (1.0 - kept) / many))
    return np.minimum(positive_mean(middle, spread), bound**2)


def positive_mean(values: Array, spread: Array) -> Array:
    """Expectation of normal numbers of which is known that they are not negative."""
    with np.errstate(all="ignore"):
        z = values / spread
        density = np.exp(-np.square(z) / 2 - log_ndtr(z)) / math.sqrt(2 * math.pi)
    return np.where(spread > 0, values + spread * density, np.maximum(values, 0.0))


def _result(plan: Average, release: Release) -> Result:
    """The mean, its error, and which of its values stand out of noise and chance together."""
    bound, level, size = plan.parameters.bound, release.deviation, plan.shape.features
    mean, squares = release.values[:size], math.sqrt(2.0) * bound * release.values[size:]
    variances = (
        _variances(mean, squares, level, bound) if len(squares) else _evenly(mean, level, bound)
    )
    errors = np.sqrt(level**2 + variances / sum(plan.shape.units))
    floors = float(-ndtri((1 - plan.parameters.confidence) / (2 * size))) * errors
    found, floor = np.abs(mean) > floors, float(np.median(floors))
    numbers = {
        "noise_deviation": level,
        "standard_error": float(np.median(errors)),
        "floor": floor,
        "found": int(found.sum()),
    }
    meaning = "Mean over the participants of these sites."
    words = Captions("mean", _headline(found, floor), meaning, found=any(found))
    arrays = {"mean": mean[:, None], "found": found[:, None]}
    if not plan.shape.views:
        return Result(arrays, numbers, images=_images(mean, errors, found, floor), captions=words)
    tables = {"means": _table(plan, mean, errors, found)}
    return Result(arrays, numbers, loadings="mean", drawn="found", tables=tables, captions=words)


def _headline(found: Array, floor: float) -> str:
    if found.any():
        return f"{int(found.sum())} of {count(len(found), 'value')} of the mean are not zero."
    return f"Nothing was found; a mean below {floor:.2g} would not be seen at this ε and number."


def _images(mean: Array, errors: Array, found: Array, floor: float) -> dict[str, ImageSet]:
    names, shown = ("mean",), (bool(found.any()),)
    return {
        "mean": ImageSet(
            mean[:, None],
            "Mean over the participants of these sites; what noise and chance could make anywhere "
            "in the map is not coloured.",
            names,
            found=shown,
            threshold=floor,
        ),
        "errors": ImageSet(
            errors[:, None],
            "Standard error of each value of the mean, of noise and chance together.",
            names,
            {"stat": "stderr"},
            drawn=False,
        ),
    }


def _table(plan: Average, mean: Array, errors: Array, found: Array) -> Table:
    half = float(ndtri((1 + plan.parameters.confidence) / 2)) * errors
    rows = tuple(
        (*name, Finding(float(m), float(m - h), float(m + h), "found" if f else "not found"))
        for name, m, h, f in zip(plan.shape.entry_names, mean, half, found, strict=True)
    )
    percent = f"{100 * plan.parameters.confidence:g}"
    return Table(
        f"Means over the participants of these sites, clipped, with {percent} % intervals for "
        f"noise and chance; found are those that differ from zero, all together at {percent} %.",
        ("view", "entry", "mean"),
        rows[:MOST_ROWS],
    )
