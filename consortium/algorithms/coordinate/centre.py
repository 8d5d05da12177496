"""A privacy level for every view: means, or least squares, with less information about some views.

Source: Aliakbarpour, Chaudhuri, Courtade, Fallah and Jordan (2024), Bayesian coordinate
differential privacy, for Gaussian noise on a mean over all sites. A view has such a small weight in
the release that changing only it costs no more than its level, while the whole participant has the
study's ε; see `privacy.view_bounds`. `privacy.bayesian` computes the level against an observer who
has the dependence between views, which the result reports.

The weights are in the plan's bound, which every site computes by itself. The queries have no
arguments. So no party can request other levels than the approved ones.

Forecasts: the standard error of a mean assumes the largest variance that the entries of a view can
have together. For coefficients it is assumed that nothing explains the target, whose standard
deviation is 0.3, and that entries have equal standard deviations of 0.4, or of one over the root of
their number in the view, within its radius.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from consortium.algorithms.assumed import robust_deviation, round_deviation
from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import Array, Case, Expectation, Local, Query, Run
from consortium.algorithms.coordinate.parameters import CoordinateParameters
from consortium.algorithms.coordinate.plan import CoordinatePlan
from consortium.algorithms.coordinate.result import (
    mean_result,
    pool_sites,
    squares_result,
)
from consortium.algorithms.coordinate.site import coordinate_mean, coordinate_moment
from consortium.algorithms.linear import (
    ASSUMED_DEVIATION,
    drawn_fits,
    mostly_reported,
    open_coefficients,
    report_uncertainty,
)
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.kernels.noisy_least_squares import Fit
from consortium.privacy.view_bounds import Part

_VIEWS = (("x", 4), ("y", 1))  # the examples' views
_DRAWS = 48
_FEW = 8


class Coordinate(CoordinatePlan):
    """One release: of 2 D numbers, or of (D + S)(D + S + 1)/2 for least squares."""

    name = "coordinate"
    title = "levels of privacy by view"
    takes = "features"
    needs_means = True
    Parameters = CoordinateParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "coordinate_mean": coordinate_mean,
        "coordinate_moment": coordinate_moment,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"levels": {"x": 0.5}, "dependence": 0.1}, views=_VIEWS),
        Case({"levels": {"x": 1}, "target": "y", "protects": "entry"}, views=_VIEWS),
        Case({"radii": {"x": 1.0}, "target": "y"}, views=_VIEWS),
        Case({"levels": {"y": 2.0}, "randomize": "record"}, views=_VIEWS),
    )

    def remarks(self) -> tuple[str, ...]:
        """State that sites' means become public, and whether nothing can be expected."""
        return ((SITE_MEANS,) if self.bound.places > 1 else ()) + _open(self)

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the standard error of a mean of each view, or of a coefficient of each."""
        return _coefficients(self) if self.squares else _means(self)

    def run(self) -> Run:
        """Ask once, and take the weights off again."""
        release = yield Query("coordinate", self.releases[0].statistic)
        return (squares_result if self.squares else mean_result)(self, pool_sites(self, release))


def _means(plan: CoordinatePlan) -> tuple[Expectation, ...]:
    level = _pooled_level(plan)
    persons = sum(plan.shape.units)
    expected = []
    for (view, _), part in zip(plan.shape.views, plan.bound.parts, strict=True):
        noise = level / part.weight
        error = math.hypot(noise, math.sqrt(_widest_variance(part) / persons))
        name = f"standard error of a mean of '{view}'"
        expected.append(
            Expectation(
                name=name,
                value=error,
                low=noise,
                high=error,
                rises=False,
                ranged="from only noise to the largest sampling error",
            )
        )
    return tuple(expected)


def _widest_variance(part: Part) -> float:
    """Return the largest mean variance of a view's entries."""
    return min(1.0, part.radius**2 / part.entries)


def _coefficients(plan: CoordinatePlan) -> tuple[Expectation, ...]:
    """Forecast coefficients by draws of noise and sampling error through the analysis's code."""
    asked = plan.asked
    errors = []
    open_ends = 0
    for fit in _fits(plan, _DRAWS):
        errors.append(fit.coefficients[: plan.shape.features - 1])
        open_ends += not report_uncertainty(asked, fit).coefficients[0].reported
    expected = []
    first = 0
    drawn = np.stack(errors)
    for view, size in plan.shape.views:
        if view == asked.target:
            continue
        own = drawn[:, first : first + size]
        first = first + size
        name = f"error of a coefficient of '{view}'"
        expected.append(Expectation(name, robust_deviation(own.ravel()), rises=False))
    share = 1.0 - open_ends / _DRAWS
    return *expected, Expectation("chance that coefficients have intervals", share)


def _open(plan: CoordinatePlan) -> tuple[str, ...]:
    """State if coefficients will mostly be withheld, and whether one constant for all helps."""
    if not (plan.squares and plan.shape.noise):
        return ()
    return open_coefficients(plan.bound.places > 1, partial(_reports, plan))


def _reports(plan: CoordinatePlan, separate: bool) -> bool:
    if plan.bound.places > 1 and not separate:
        together = plan.parameters.model_copy(update={"site_constants": False})
        plan = type(plan)(together, plan.shape)
    return mostly_reported(_fits(plan, _FEW), plan.parameters.confidence)


def _fits(plan: CoordinatePlan, draws: int) -> Iterator[Fit]:
    """Draw studies of assumed participants, each with its own noise and sampling error."""
    return drawn_fits(plan.asked, _pooled_level(plan), partial(_moment, plan), draws)


def _moment(plan: CoordinatePlan, generator: np.random.Generator) -> Array:
    """Draw the assumed E[z zᵀ], with the sampling error of the products with the target."""
    sizes = [size for _, size in plan.shape.views]
    units = plan.shape.units
    target = plan.target
    own = [
        min(usual_spread(size), radius / math.sqrt(size))
        for size, radius in zip(sizes, plan.radii, strict=True)
    ]
    spread = np.repeat(own, sizes)
    spread[target] = min(ASSUMED_DEVIATION, spread[target])
    squares = np.append(np.square(spread), plan.asked.parts(range(len(units))))
    scale = plan.asked.weights * np.sqrt(squares)
    moment = np.diag(np.square(scale))
    chance = scale * scale[target] / math.sqrt(sum(units)) * generator.standard_normal(len(scale))
    chance[target] = scale[target] ** 2
    moment[target] = moment[:, target] = chance
    return moment


def _pooled_level(plan: CoordinatePlan) -> float:
    """Return the noise of an entry if sites' answers are combined as in `pool_sites`."""
    (planned,) = plan.releases
    sizes = np.array(plan.shape.units, dtype=np.float64)
    level = round_deviation(planned, plan.shape)
    if planned.released == "sum":
        return level
    return level * float(sizes.min() / sizes.sum()) * math.sqrt(len(sizes))
