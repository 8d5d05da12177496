"""capeFM: linear, logistic and any quadratic regression from one moment.

Source: dissertation Algorithms 8.1 and 8.2, tightened. The cost is a polynomial in s = b + wᵀx and
y of degree two. All its coefficient arrays are entries of the second moment of z = (x, c e, αy), e
a one at the place of the participant's site, released once in coordinates that preserve its norm.
Replacing a participant moves it by at most √2 (‖x‖² + c² + α²) / n: no more than only Λ_1 and Λ_2
as one vector (for α² ≤ ‖x‖²), and it contains E[y²]. `kernels.noisy_least_squares` gives the
uncertainty by noise and sampling, the latter from a second release (`result`).
With `held_out`, these are of training participants only, and a third release counts the others by
label and predicted score (`held_out`).

Assumptions of forecasts: explanatory entries have standard deviations of 0.3, as columns within
their limits have, or smaller ones that use half of the bound's square. Nothing explains the target,
whose standard deviation is also 0.3, or one for labels -1 and 1.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from consortium.algorithms.assumed import robust_deviation
from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    AnalysisPlan,
    Array,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Run,
    Shape,
)
from consortium.algorithms.linear import (
    ASSUMED_DEVIATION,
    LeastSquaresQuestion,
    Model,
    check_identified,
    drawn_fits,
    linear_result,
    open_coefficients,
    report_uncertainty,
)
from consortium.algorithms.regression.forecast import expect_auc, refuse_noisy_auc
from consortium.algorithms.regression.held_out import (
    BINS,
    HeldOutCounts,
    over_training,
    score_model,
    training_release,
    with_held_out,
)
from consortium.algorithms.regression.kernels.logistic_from_moments import TAYLOR
from consortium.algorithms.regression.kernels.logistic_groups import logistic_factors
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.result import (
    influence_arguments,
    with_measured_variance,
    worth_asking,
)
from consortium.algorithms.regression.site import (
    regression_held_out,
    regression_influence,
    regression_moment,
)
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.base.formatting import percent
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.noisy_least_squares import ExplainedShare, Fit, least_squares
from consortium.privacy.bounds import Bound

INFLUENCE_SHARE = 0.05
"""Part of the budget (of μ²) for the squared influences."""
_SMALLER = (
    " They are those of the published polynomial, which are smaller than the logistic model's."
)

HELD_OUT = (
    "A keyed hash selects about {} of each site's participants, who do not train the model. Their "
    "numbers by label and by predicted probability become public with noise. Both releases are "
    "charged to every participant."
)

_VIEWS = (("x", 4), ("y", 1))  # the examples' views
_HELD_OUT = {"target": "y", "bound": 2.0, "model": "logistic", "held_out": 0.4, "anyway": True}
FILLED = 0.5
"""Assumed fraction of the bound's square that a participant's entries use."""
_DRAWS = 48
_FEW = 8
_COST = [[0, 0, 1], [0, -2], [1]]


class Regression(AnalysisPlan[RegressionParameters]):
    """Two releases, of (P + S + 1)(P + S + 2)/2 and of P + S numbers, and one of held-out ones.

    Raises StudyError if the label's view is missing or has several entries, or if the explanatory
    entries are none, constant or too many.

    Attributes
    ----------
    target : int
        Place of the target within a participant's vector.
    constants : int
        S, constants of the model: one for each site, one for all, or none.
    intercept, weight : float
        c and α, weights of a participant's constant and target in the release.
    """

    name = "regression"
    title = "capeFM regression"
    takes = "features"
    needs_means = False
    Parameters = RegressionParameters
    statistics = {
        "regression_moment": regression_moment,
        "regression_influence": regression_influence,
        "regression_held_out": regression_held_out,
    }
    cases = (
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
        Case(_HELD_OUT, views=_VIEWS),
        Case({**_HELD_OUT, "site_constants": False}, views=_VIEWS),
    )

    def __init__(self, parameters: RegressionParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        remedy = "name a view of one number"
        self.target = shape.single_entry(parameters.target, "analysis.target", remedy)
        if shape.features < 2:
            raise StudyError(
                "field 'features': at least one entry besides the target is required, and there "
                "is none. Add a view."
            )
        if shape.features > MOST_SOLVED_FEATURES:
            raise StudyError(
                f"field 'features': a regression requires at most {MOST_SOLVED_FEATURES} entries, "
                f"got {shape.features}. Use fewer or coarser views."
            )
        check_identified(shape, self.target, parameters.intercept)
        levels = len(shape.units) if parameters.site_constants else 1
        self.constants = levels if parameters.intercept else 0
        self.intercept = parameters.intercept_weight * parameters.bound
        self.weight = parameters.target_weight * parameters.bound

    @property
    def moment_norm(self) -> float:
        """Largest Frobenius norm of a participant's z zᵀ."""
        constant = self.intercept if self.constants else 0.0
        return self.parameters.bound**2 + constant**2 + self.weight**2

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """The moment, the squared influences of participants, and counts of held-out ones."""
        norm = self.moment_norm
        size = self.shape.features + self.constants
        forms: dict[str, tuple[int, ...]] = {"influence": (size - 1, size - 1), "residual": (size,)}
        held = bool(self.parameters.held_out)
        training = 1.0 - self.parameters.judging if held else 1.0
        # With held-out participants the statistic itself counts the training ones.
        both = math.sqrt(2.0) * norm
        found = (
            PlannedRelease(
                stage="regression",
                statistic="regression_moment",
                entries=packed_size(size) + (len(self.shape.units) if held else 0),
                bound=Bound(both, influence=both) if held else Bound(norm, cone=True),
                rounds=1,
                share=(1.0 - INFLUENCE_SHARE) * training,
            ),
            PlannedRelease(
                stage="influence",
                statistic="regression_influence",
                entries=size - 1,
                bound=self._influence_bound,
                rounds=1,
                share=INFLUENCE_SHARE * training,
                arguments=forms,
            ),
        )
        return (*found, self._held_out_release(size)) if held else found

    def _held_out_release(self, size: int) -> PlannedRelease:
        return PlannedRelease(
            stage="held_out",
            statistic="regression_held_out",
            entries=2 * BINS,
            bound=Bound(1.0, cone=True),
            rounds=1,
            share=self.parameters.judging,
            arguments={"weights": (size - 1,), "edges": (BINS - 1,)},
        )

    @cached_property
    def training_shape(self) -> Shape:
        """Public sizes with the expected numbers of training participants."""
        held = self.parameters.held_out
        if not held:
            return self.shape
        return self.shape.with_units([(1.0 - held) * many for many in self.shape.units])

    @property
    def _influence_bound(self) -> Bound:
        """Largest norm of a participant's squared influences, each about 1 on average.

        Gaussian participants have a norm of about 3 √P. A few who are alike have a larger one, n
        over their number. Norms up to √n are not clipped, and the noise of the mean still decreases
        with n.
        """
        persons = sum(self.shape.units)
        return Bound(3.0 * math.sqrt(self.shape.features) + 2.0 * math.sqrt(persons), cone=True)

    @property
    def several(self) -> Array:
        """Whether each explaining entry is a level of a column of three or more."""
        found = np.zeros(self.shape.features, dtype=bool)
        for entries, value in self.shape.known_sums:
            found[entries] = bool(value)
        return np.delete(found, self.target)

    @cached_property
    def asked(self) -> LeastSquaresQuestion:
        """What least squares are asked."""
        parameters = self.parameters
        explaining = self.shape.features - 1
        constants = np.full(self.constants, self.intercept)
        weights = np.concatenate([np.ones(explaining), constants, [self.weight]])
        published = parameters.model == "logistic" and parameters.approximation == "taylor"
        return LeastSquaresQuestion(
            shape=self.training_shape,
            target=parameters.target,
            place=self.target,
            constants=self.constants,
            weights=weights,
            order=np.arange(len(weights)),
            confidence=parameters.confidence,
            model=partial(model_of, parameters, self.several),
            remark=_SMALLER if published else "",
        )

    def remarks(self) -> tuple[str, ...]:
        """State what becomes public besides coefficients, and whether nothing can be expected."""
        share = self.parameters.held_out
        held = (HELD_OUT.format(percent(share)),) if share else ()
        return ((SITE_MEANS,) if self.constants > 1 else ()) + held + _open(self)

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
        noise = _noise_in_moment(self)
        return (
            Expectation("error of a coefficient", value, low, high, rises=False, ranged=ranged),
            Expectation("chance that coefficients have intervals", 1.0 - open_ends / _DRAWS),
            Expectation("noise in an entry of the moment", noise, rises=False),
            *expect_auc(self),
        )

    refuse_hopeless = refuse_noisy_auc

    def run(self) -> Run:
        """Request the moment, solve, and request the sampling error of reported coefficients."""
        release = yield Query("regression", "regression_moment")
        if self.parameters.held_out:
            release = training_release(self, release)
        training = release
        sites = self.sites_with_units(release)
        question = replace(self.asked, shape=self.estimated_shape(release))
        fit = least_squares(question.moment(release.values, release.deviation, sites))
        if worth_asking(fit, self.parameters.confidence):
            asked = influence_arguments(self, fit, sites)
            release = yield Query("influence", "regression_influence", asked)
            if self.parameters.held_out:
                release = over_training(self, release, training)
            fit = with_measured_variance(self, fit, sites, release)
        result = linear_result(question, fit)
        if not self.parameters.held_out:
            return result
        factor = question.model(fit, fit.explained(question.confidence)).factor
        model = score_model(self, fit, factor, sites)
        heard = {"weights": model.query_weights(self), "edges": model.edges}
        release = yield Query("held_out", "regression_held_out", heard)
        return with_held_out(self, result, model, HeldOutCounts.of(self, release))


def model_of(
    parameters: RegressionParameters, several: Array, fit: Fit, share: ExplainedShare | None
) -> Model:
    """Return the linear or logistic model that a least-squares fit gives.

    Minimizing c20 s² + c11 s y + c10 s over b and w gives w = -c11 / (2 c20) times least squares,
    and constants that are moved by -c10 / (2 c20).
    """
    if parameters.cost is not None:
        (_, (linear, mixed), (square,)) = parameters.cost
        factor = -mixed / (2 * square)
        return Model(factor, factor, factor, -linear / (2 * square))
    if parameters.model == "linear":
        return Model()
    if parameters.approximation == "taylor":
        return Model(TAYLOR, TAYLOR, TAYLOR)
    whole = share.variance if share else 1.0
    ends = (share.value, share.low, share.high) if share else (0.0, 0.0, 1.0)
    found = logistic_factors(fit, several, (ends[0] * whole, ends[1] * whole, ends[2] * whole))
    return Model(
        found.factor,
        found.least,
        found.most,
        least_squares=False,
        own=found.own,
        fails=found.fails,
    )


def _open(plan: Regression) -> tuple[str, ...]:
    """State if coefficients will mostly be withheld, and whether one constant for all helps."""
    if not plan.shape.noise:
        return ()
    return open_coefficients(plan, plan.constants > 1, partial(_fits, draws=_FEW))


def _noise_in_moment(plan: Regression) -> float:
    """Return the noise in an entry of the mean over training participants."""
    whole = sum(plan.shape.units) / sum(plan.training_shape.units)
    return plan.releases[0].round_deviation(plan.shape) * whole


def _fits(plan: Regression, draws: int) -> Iterator[Fit]:
    """Draw studies of assumed participants, each with its own noise and sampling error."""
    level = _noise_in_moment(plan)
    return drawn_fits(plan.asked, level, partial(_moment, plan), draws)


def _moment(plan: Regression, generator: np.random.Generator) -> Array:
    """Draw the assumed E[z zᵀ], with the sampling error of the products with the target."""
    weights = plan.asked.weights
    units = plan.training_shape.units
    explaining = plan.shape.features - 1
    variance = min(FILLED * plan.parameters.bound**2 / explaining, ASSUMED_DEVIATION**2)
    target = 1.0 if plan.parameters.model == "logistic" else ASSUMED_DEVIATION**2
    parts = plan.asked.parts(range(len(units)))
    diagonal = np.concatenate([np.full(explaining, variance), parts, [target]])
    moment = np.diag(np.square(weights) * diagonal)
    chance = np.sqrt(diagonal[:-1] * target / sum(units)) * weights[:-1] * weights[-1]
    moment[:-1, -1] = moment[-1, :-1] = chance * generator.standard_normal(len(chance))
    return moment
