"""The private histogram of one entry of a view, and the quantiles that are read from it.

Every participant counts in exactly one bin: the statistic is the mean of unit vectors. So nothing
is clipped, and two participants' vectors are equal or orthogonal. Replacing a participant moves the
mean by at most √2/n (`Bound.cone`). The shares of all bins add up to one, which removes a K-th of
the noise's variance without privacy loss. Counts and quantiles are of the participants in the
study, and their intervals account for the noise, whose size is known.
"""

import math
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator
from scipy.special import ndtri

from consortium.algorithms.base import (
    AnalysisParameters,
    AnalysisPlan,
    Array,
    Captions,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    SiteData,
    Table,
)
from consortium.algorithms.describe.kernels.bins import bins_of
from consortium.base.formatting import number
from consortium.errors import StudyError
from consortium.kernels.simplex import project_to_simplex
from consortium.privacy.bounds import Bound
from consortium.views.base import ViewName

_VIEWS = (("x", 4), ("y", 1))  # the examples' views


class HistogramParameters(AnalysisParameters):
    """Parameters of `histogram`."""

    view: ViewName
    """View that the column, or another entry, is of."""
    entry: int = Field(default=1, ge=1)
    """Number of the entry within the view."""
    bins: int = Field(default=20, ge=2, le=1_000)
    """K, equal parts of the column's public range."""
    limits: tuple[float, float] = (-1.0, 1.0)
    """Values of -1 and +1 in the column's own unit: its 'low' and 'high'."""
    quantiles: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field(
        default=(0.05, 0.25, 0.5, 0.75, 0.95), max_length=99
    )
    """Quantiles to report."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of every single interval."""

    @field_validator("limits")
    @classmethod
    def _in_order(cls, limits: tuple[float, float]) -> tuple[float, float]:
        if not limits[0] < limits[1]:
            raise ValueError("the first is not below the second; correct them")
        return limits


def _bin_shares(plan: "Histogram", data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the fraction of the site's participants in each of K bins, times the bound."""
    del query
    entries = np.nan_to_num(data.table()[plan.entry].astype(np.float64))
    places = bins_of(np.clip(entries, -1.0, 1.0), plan.edges)
    shares: Array = bound.norm * (np.bincount(places, minlength=len(plan.edges) - 1) / len(places))
    return shares


class Histogram(AnalysisPlan[HistogramParameters]):
    """One release of K numbers."""

    name = "histogram"
    title = "private histogram"
    takes = "features"
    needs_means = True
    Parameters = HistogramParameters
    statistics = {"bin_shares": _bin_shares}
    cases = (
        Case({"view": "y", "bins": 5}, views=_VIEWS),
        Case({"view": "x", "entry": 3, "limits": [0, 90], "quantiles": [0.5]}, views=_VIEWS),
    )

    @property
    def entry(self) -> int:
        """Place of the counted entry within a participant's vector."""
        view = self.shape.view_slice(self.parameters.view, "analysis.view")
        return int(view.start) + self.parameters.entry - 1

    @property
    def column(self) -> str:
        """Name of the counted entry: its column, or its number in the view."""
        view, label = self.shape.entry_names[self.entry]
        return label if isinstance(label, str) else f"entry {label} of {view}"

    @cached_property
    def edges(self) -> Array:
        """Edges of the bins in the column's own unit, length K + 1."""
        return np.linspace(*self.parameters.limits, self.parameters.bins + 1)

    @cached_property
    def releases(self) -> tuple[PlannedRelease]:
        """One release with the whole budget.

        Raises StudyError if the view has no such entry, or it is one level of a column.
        """
        view = self.parameters.view
        number = self.parameters.entry
        place = self.shape.view_slice(view, "analysis.view")
        if number > place.stop - place.start:
            raise StudyError(
                f"field 'analysis.entry': view '{view}' has {place.stop - place.start} entries, "
                f"and {number} is asked for; name one of them."
            )
        if any(self.entry in levels and value for levels, value in self.shape.known_sums):
            raise StudyError(
                f"field 'analysis.entry': entry {number} of view '{view}' is one level of a "
                "column, 1 for participants with it and 0 for the others; ask 'average' for the "
                "share of each level."
            )
        bins = self.parameters.bins
        bound = Bound(1.0, cone=True)
        return (
            PlannedRelease(
                stage="histogram",
                statistic="bin_shares",
                entries=bins,
                bound=bound,
                rounds=1,
                share=1.0,
            ),
        )

    def half_width(self, deviation: float) -> float:
        """Return half the width of a share's interval, from the noise in a released share.

        All shares add up to one, which removes a K-th of the variance.
        """
        return _width(self, deviation) * math.sqrt(1.0 - 1.0 / self.parameters.bins)

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast half the width of a count's interval, which depends only on the noise."""
        half = self.half_width(self.releases[0].round_deviation(self.shape))
        name = "a count's interval to either side, in participants"
        usual = "the same over a bin's mean share of the participants"
        return (
            Expectation(name, sum(self.shape.units) * half, rises=False),
            Expectation(usual, half * self.parameters.bins, rises=False),
        )

    def withheld(self) -> str:
        """Return why there is no forecast of quantiles."""
        if not self.parameters.quantiles:
            return ""
        return (
            "The quantiles' intervals are not forecast, since they depend on how the column is "
            "spread."
        )

    def run(self) -> Run:
        """Ask once, and read counts and quantiles."""
        return _result(self, (yield Query("histogram", "bin_shares")))


def _width(plan: Histogram, deviation: float) -> float:
    return float(ndtri((1.0 + plan.parameters.confidence) / 2.0)) * deviation


def _result(plan: Histogram, release: Release) -> Result:
    parameters = plan.parameters
    name = plan.column
    half = plan.half_width(release.deviation)
    persons = round(plan.units_in(release).sum())
    edges = plan.edges
    shares = release.values + (1.0 - release.values.sum()) / parameters.bins
    found, low, high = (np.clip(s, 0.0, 1.0) for s in (shares, shares - half, shares + half))
    width = _width(plan, release.deviation)
    marks = read_quantiles(shares, np.array(parameters.quantiles), edges, width)
    counts = persons * np.stack([found, low, high])
    arrays = {"edges": edges, "shares": found, "low": low, "high": high, "quantiles": marks}
    numbers = {"persons": persons, "count_noise": persons * release.deviation}
    percent = f"{100 * parameters.confidence:g} % intervals, which account for privacy's noise"
    tables = {
        "counts": Table(
            f"Participants in each bin of {name}, of {persons} in all, with {percent}.",
            ("from", "to", "persons", "low", "high"),
            _rows(edges[:-1], edges[1:], *counts),
        ),
        "quantiles": Table(
            f"Quantiles of {name}, with {percent} and end where bins do.",
            ("quantile", "value", "low", "high"),
            _rows(np.array(parameters.quantiles), *marks.T),
        ),
    }
    headline = _headline(parameters.bins, name, half, float(found.max()), persons)
    words = Captions("bin", headline, "")
    return Result(arrays, numbers, tables=tables, captions=words)


def _headline(bins: int, name: str, half: float, largest: float, persons: int) -> str:
    off = f"{number(persons * half)} of {persons:,} participants"
    if half >= largest:
        return (
            f"Nothing can be reported of how {name} is spread: at this ε noise may move the count "
            f"of a bin by {off}."
        )
    return f"Each of {bins} bins of {name} is counted to within {off}."


def _rows(*columns: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(zip(*(column.tolist() for column in columns), strict=True))


def read_quantiles(shares: Array, quantiles: Array, edges: Array, width: float) -> Array:
    """Return quantiles of a noisy histogram.

    A bin may contain a quantile q unless one of its ends rules it out: the share of participants
    below the bin may be less than q, that up to its end q or more. The noise of the share up to the
    end of bin k of K has the variance σ² k (1 - k/K), as all shares add up to one. For every
    distribution, each end rules the true bin out in at most half of the allowed cases.

    Parameters
    ----------
    shares : array, length K
        Noisy, adding up to one.
    quantiles : array, length Q
    edges : array, length K + 1
    width : float
        Half the interval of a number with the noise of a share, before shares were normalized.

    Returns
    -------
    array, Q x 3
        Value, interpolated within its bin, and both ends of the interval, which are edges.
    """
    bins = len(shares)
    below = np.concatenate([[0.0], np.cumsum(shares)[:-1], [1.0]])
    ends = np.arange(bins + 1)
    half = width * np.sqrt(ends * (1.0 - ends / bins))
    steps = np.cumsum(np.concatenate([[0.0], project_to_simplex(shares)]))
    found = np.empty((len(quantiles), 3))
    for row, quantile in enumerate(quantiles):
        value = float(np.interp(quantile, steps, edges))
        here = min(int(np.searchsorted(edges, value, side="right")) - 1, bins - 1)
        possible = (below[:-1] - half[:-1] < quantile) & (below[1:] + half[1:] >= quantile)
        possible[here] = True
        bins_left = np.flatnonzero(possible)
        found[row] = value, edges[bins_left[0]], edges[bins_left[-1] + 1]
    return found
