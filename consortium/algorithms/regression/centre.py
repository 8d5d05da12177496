"""capeFM: linear, logistic and any quadratic regression from one moment.

Source: dissertation Algorithms 8.1 and 8.2, tightened. The cost is a polynomial in s = b + wᵀx and
y of degree two; all its coefficient arrays are entries of the second moment of z = (x, c e, αy), e
a one in the place of the person's site, released once in coordinates that keep its norm. Replacing
a person moves it by √2 (‖x‖² + c² + α²) / n at the most: no more than Λ_1 and Λ_2 alone as one
vector would (for α² ≤ ‖x‖²), and E[y²] is in it. What noise and chance leave open is told by
`kernels.noisy_least_squares`, with chance as a second release measures it (`result`).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import Case, Local, Query, Run
from consortium.algorithms.linear import linear_result
from consortium.algorithms.regression.forecast import expect, left_open
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.plan import RegressionPlan
from consortium.algorithms.regression.result import (
    influence_arguments,
    with_measured_variance,
    worth_asking,
)
from consortium.algorithms.regression.site import regression_influence, regression_moment
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.kernels.noisy_least_squares import least_squares

_VIEWS = (("x", 4), ("y", 1))  # of the examples
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
        """Tell that sites' means become public, and if nothing can be expected."""
        return ((SITE_MEANS,) if self.constants > 1 else ()) + left_open(self)

    expect = expect

    def run(self) -> Run:
        """Ask for the moment, solve, and ask what chance there is in what can be told."""
        release = yield Query("regression", "regression_moment")
        sites = self.present(release)
        fit = least_squares(self.asked.moment(release.values, release.deviation, sites))
        if worth_asking(fit, self.parameters.confidence):
            asked = influence_arguments(self, fit, sites)
            release = yield Query("influence", "regression_influence", asked)
            fit = with_measured_variance(self, fit, sites, release)
        return linear_result(self.asked, fit)
