"""capeFM: linear, logistic and any quadratic regression from one moment.

Source: dissertation Algorithms 8.1 and 8.2, tightened. The cost is a polynomial in s = b + wᵀx and
y of degree two; all its coefficient arrays are entries of the second moment of z = (x, c e, αy), e
a one in the place of the person's site, released once in coordinates that keep its norm. Replacing
a person moves it by √2 (‖x‖² + c² + α²) / n at the most: no more than Λ_1 and Λ_2 alone as one
vector would (for α² ≤ ‖x‖²), and E[y²] is in it. What noise and chance leave open is told by
`kernels.noisy_least_squares`, with chance as a second release measures it (`influence`).

How much more, or less, chance there is in a coefficient than of one residual variance.

The error of a coefficient by chance is the mean over persons of aᵀz r, r = qᵀz the residual. Its
variance is E[(aᵀz)² r²]/n whatever persons' residuals are like (White 1980), and E[(aᵀz)²] E[r²]/n
only if all residuals have one variance. a and q follow from the released moment, so that one more
mean over persons, of one number for each coefficient, measures the ratio of the two.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from consortium.algorithms.base import (
    AnalysisPlan,
    Argument,
    Array,
    Case,
    Expectation,
    Local,
    PlannedRelease,
    Query,
    Release,
    Run,
    Shape,
)
from consortium.algorithms.linear import linear_result
from consortium.algorithms.query_arguments import SITE_MEANS
from consortium.algorithms.regression.forecast import expect, left_open
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.plan import (
    constants,
    kept_places,
    plan_releases,
    release_weights,
)
from consortium.algorithms.regression.result import present_sites, read_moment, regression_question
from consortium.algorithms.regression.site import regression_influence, regression_moment
from consortium.kernels.noisy_least_squares import Fit, least_squares
from consortium.kernels.noisy_moment import NoisyMoment, is_positive

_VIEWS = (("x", 4), ("y", 1))  # of the examples
_COST = [[0, 0, 1], [0, -2], [1]]


class Regression(AnalysisPlan[RegressionParameters]):
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

    @cached_property
    def releases(self) -> tuple[PlannedRelease, PlannedRelease]:
        """The moment, and squared influences with a small part of the budget."""
        return plan_releases(self.parameters, self.shape)

    def remarks(self) -> tuple[str, ...]:
        """Tell that sites' means become public, and if nothing can be expected."""
        means = (SITE_MEANS,) if constants(self.parameters, self.shape) > 1 else ()
        return means + left_open(self.parameters, self.shape)

    def expect(self) -> tuple[Expectation, ...]:
        """Expected error, if persons are as `forecast` assumes."""
        return expect(self.parameters, self.shape)

    def run(self) -> Run:
        """Ask for the moment, solve, and ask what chance there is in what can be told."""
        release = yield Query("regression", "regression_moment")
        fit, sites = (
            least_squares(read_moment(release, self.parameters, self.shape)),
            present_sites(release, self.shape),
        )
        if worth_asking(fit, self.parameters.confidence):
            asked = influence_arguments(self.parameters, self.shape, fit, sites)
            release = yield Query("influence", "regression_influence", asked)
            fit = measured(self.parameters, self.shape, fit, sites, release)
        return linear_result(regression_question(self.parameters, self.shape), self.shape, fit)


_USUAL = 2.0
"""How far from 1 a ratio usually is: what is noisier than that is drawn towards 1."""
_LEAST = 0.1


def worth_asking(fit: Fit, confidence: float) -> bool:
    """Whether there are intervals at all, and chance in every one of them."""
    if fit.intervals(confidence) is None or not is_positive(fit.moment.matrix[:-1, :-1]):
        return False
    return bool((fit.chance() > 0).all())


def influence_arguments(
    parameters: RegressionParameters, shape: Shape, fit: Fit, sites: tuple[int, ...]
) -> dict[str, Argument]:
    """What persons' z and residual are multiplied by, so that a ratio of 1 is a mean of 1.

    A site's own constant is of its persons alone: its ratio counts by their part.
    """
    moment, kept = fit.moment, kept_places(parameters, shape, sites)
    lift = moment.coefficients / release_weights(parameters, shape)[kept[:-1], None]
    scale = np.sqrt(_parts(moment) / fit.chance())
    size = len(release_weights(parameters, shape))
    influence, residual = np.zeros((size - 1, size - 1)), np.zeros(size)
    influence[np.ix_(kept[:-1], kept[:-1])] = scale[:, None] * (fit.directions @ lift.T)
    residual[kept] = np.append(lift @ fit.solution[:-1], fit.solution[-1])
    return {"influence": influence, "residual": residual}


def measured(
    parameters: RegressionParameters,
    shape: Shape,
    fit: Fit,
    sites: tuple[int, ...],
    release: Release,
) -> Fit:
    """The fit with chance as was measured, drawn to that of one variance as far as it is noise."""
    parts = _parts(fit.moment)
    found = release.values[kept_places(parameters, shape, sites)[:-1]] / parts
    trust = 1.0 / (1.0 + np.square(release.deviation / parts / _USUAL))
    return fit.widened(np.maximum(1.0 + trust * (found - 1.0), _LEAST))


def _parts(moment: NoisyMoment) -> Array:
    """1 for every entry, and each constant's part of the persons."""
    return np.append(np.ones(moment.entries), moment.parts)
