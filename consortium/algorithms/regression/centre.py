"""capeFM: linear, logistic and any quadratic regression from one moment.

Source: dissertation Algorithms 8.1 and 8.2, tightened. The cost is a polynomial in s = b + wᵀx and
y of degree two; all its coefficient arrays are entries of the second moment of z = (x, c e, αy), e
a one at the place of the participant's site, released once in coordinates that preserve its norm.
Replacing a participant moves it by at most √2 (‖x‖² + c² + α²) / n: no more than only Λ_1 and Λ_2
as one vector (for α² ≤ ‖x‖²), and it contains E[y²]. `kernels.noisy_least_squares` gives the
uncertainty by noise and sampling, the latter from a second release (`result`).

Assumptions of forecasts: explanatory entries have standard deviations of 0.3, as columns within
their limits have, or smaller ones that use half of the bound's square; nothing explains the target,
whose standard deviation is also 0.3, or one for labels -1 and 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from consortium.algorithms.assumed import robust_deviation, round_deviation
from consortium.algorithms.base import Array, Case, Expectation, Local, Query, Run
from consortium.algorithms.linear import (
    ASSUMED_DEVIATION,
    drawn_fits,
    linear_result,
    mostly_reported,
    open_coefficients,
    report_uncertainty,
)
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.plan import RegressionPlan
from consortium.algorithms.regression.result import (
    influence_arguments,
    with_measured_variance,
    worth_asking,
)
from consortium.algorithms.regression.site import regression_influence, regression_moment
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.kernels.noisy_least_squares import Fit, least_squares

_VIEWS = (("x", 4), ("y", 1))  # the examples' views
FILLED = 0.5
"""Assumed fraction of the bound's square that a participant's entries use."""
_DRAWS = 48
_FEW = 8
_COST = [[0, 0, 1], [0, -2], [1]]


class Regression(RegressionPlan):
    """Two releases, of (P + S + 1)(P + S + 2)/2 and of P + S numbers."""

    name = "regression"
    title = "capeFM regression"
    takes = "features"
    needs_means = False
    Parameters = RegressionParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "regression_moment": regression_moment,
        "regression_influence": regression_influence,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"target": "y", "bound": 1.5}, views=_VIEWS),
        Case({"target": "y", "bound": 0.5, "intercept": False}, views=_VIEWS),
        Case({"target": "y", "bound": 2.0, "model": "logistic"}, views=_VIEWS),
        Case(
            {
                "target": "y",
                "bound": 1.0,
                "model": "polynomial",
                "cost": _COST,
                "site_constants": False,
            },
            views=_VIEWS,
        ),
    )

    def remarks(self) -> tuple[str, ...]:
        """State that sites' means become public, and whether nothing can be expected."""
        return ((SITE_MEANS,) if self.constants > 1 else ()) + _open(self)

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the error of a coefficient, and the share of draws with open intervals.

        The range is that of half of the draws.
        """
        asked = self.asked
        errors = []
        open_ends = 0
        for fit in _fits(self, _DRAWS):
            factor = asked.model(fit, fit.explained(asked.confidence)).factor
            errors.append(factor * fit.coefficients[: self.shape.features - 1])
            open_ends += not report_uncertainty(asked, fit).coefficients[0].reported
        value = robust_deviation(np.concatenate(errors))
        low, high = np.quantile([robust_deviation(each) for each in errors], (0.25, 0.75)).tolist()
        low = min(low, value)
        high = max(high, value)
        ranged = "half of all studies"
        noise = round_deviation(self.releases[0], self.shape)
        return (
            Expectation("error of a coefficient", value, low, high, rises=False, ranged=ranged),
            Expectation("chance that coefficients have intervals", 1.0 - open_ends / _DRAWS),
            Expectation("noise in an entry of the moment", noise, rises=False),
        )

    def run(self) -> Run:
        """Request the moment, solve, and request the sampling error of reported coefficients."""
        release = yield Query("regression", "regression_moment")
        sites = self.sites_with_units(release)
        question = replace(self.asked, shape=self.estimated_shape(release))
        fit = least_squares(question.moment(release.values, release.deviation, sites))
        if worth_asking(fit, self.parameters.confidence):
            asked = influence_arguments(self, fit, sites)
            release = yield Query("influence", "regression_influence", asked)
            fit = with_measured_variance(self, fit, sites, release)
        return linear_result(question, fit)


def _open(plan: RegressionPlan) -> tuple[str, ...]:
    """State if coefficients will mostly be withheld, and whether one constant for all helps."""
    if not plan.shape.noise:
        return ()
    return open_coefficients(plan.constants > 1, partial(_reports, plan))


def _reports(plan: RegressionPlan, separate: bool) -> bool:
    if plan.constants > 1 and not separate:
        together = plan.parameters.model_copy(update={"site_constants": False})
        plan = type(plan)(together, plan.shape)
    return mostly_reported(_fits(plan, _FEW), plan.parameters.confidence)


def _fits(plan: RegressionPlan, draws: int) -> Iterator[Fit]:
    """Draw studies of assumed participants, each with its own noise and sampling error."""
    level = round_deviation(plan.releases[0], plan.shape)
    return drawn_fits(plan.asked, level, partial(_moment, plan), draws)


def _moment(plan: RegressionPlan, generator: np.random.Generator) -> Array:
    """Draw the assumed E[z zᵀ], with the sampling error of the products with the target."""
    weights = plan.asked.weights
    units = plan.shape.units
    explaining = plan.shape.features - 1
    variance = min(FILLED * plan.parameters.bound**2 / explaining, ASSUMED_DEVIATION**2)
    target = 1.0 if plan.parameters.model == "logistic" else ASSUMED_DEVIATION**2
    parts = plan.asked.parts(range(len(units)))
    diagonal = np.concatenate([np.full(explaining, variance), parts, [target]])
    moment = np.diag(np.square(weights) * diagonal)
    chance = np.sqrt(diagonal[:-1] * target / sum(units)) * weights[:-1] * weights[-1]
    moment[:-1, -1] = moment[-1, :-1] = chance * generator.standard_normal(len(chance))
    return moment
