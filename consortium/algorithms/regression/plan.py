"""The releases of a regression: one moment with public weights, and then squared influences."""

import math
from functools import cached_property, partial

import numpy as np

from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    AnalysisPlan,
    Array,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.linear import LeastSquaresQuestion, Model, check_identified
from consortium.algorithms.regression.kernels.logistic_from_moments import TAYLOR
from consortium.algorithms.regression.kernels.logistic_groups import logistic_factors
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.noisy_least_squares import ExplainedShare, Fit
from consortium.privacy.bounds import Bound

INFLUENCE_SHARE = 0.05
"""Part of the budget (of μ²) for the squared influences."""
_SMALLER = (
    " They are those of the published polynomial, which are smaller than the logistic model's."
)


class RegressionPlan(AnalysisPlan[RegressionParameters]):
    """Public quantities of every site and the centre before the first round.

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

    def __init__(self, parameters: RegressionParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        remedy = "name a view of one number"
        self.target = shape.single_entry(parameters.target, "analysis.target", remedy)
        if shape.features < 2:
            raise StudyError("field 'features': nothing is left to explain the target; add a view.")
        if shape.features > MOST_SOLVED_FEATURES:
            raise StudyError(
                f"field 'features': {shape.features} entries are more than the "
                f"{MOST_SOLVED_FEATURES} of a regression; use fewer or coarser views."
            )
        check_identified(shape, self.target, parameters.intercept)
        levels = len(shape.units) if parameters.site_constants else 1
        self.constants = levels if parameters.intercept else 0
        self.intercept = parameters.intercept_weight * parameters.bound
        self.weight = parameters.target_weight * parameters.bound

    @cached_property
    def releases(self) -> tuple[PlannedRelease, PlannedRelease]:
        """The moment, and the squared influences of participants on each coefficient."""
        constant = self.intercept if self.constants else 0.0
        norm = self.parameters.bound**2 + constant**2 + self.weight**2
        size = self.shape.features + self.constants
        forms: dict[str, tuple[int, ...]] = {"influence": (size - 1, size - 1), "residual": (size,)}
        return (
            PlannedRelease(
                stage="regression",
                statistic="regression_moment",
                entries=packed_size(size),
                bound=Bound(norm, cone=True),
                rounds=1,
                share=1.0 - INFLUENCE_SHARE,
            ),
            PlannedRelease(
                stage="influence",
                statistic="regression_influence",
                entries=size - 1,
                bound=self._influence_bound,
                rounds=1,
                share=INFLUENCE_SHARE,
                arguments=forms,
            ),
        )

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
    def _several(self) -> Array:
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
            shape=self.shape,
            target=parameters.target,
            place=self.target,
            constants=self.constants,
            weights=weights,
            order=np.arange(len(weights)),
            confidence=parameters.confidence,
            model=partial(model_of, parameters, self._several),
            remark=_SMALLER if published else "",
        )


def model_of(
    parameters: RegressionParameters, several: Array, fit: Fit, share: ExplainedShare | None
) -> Model:
    """Turn least squares into the model.

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
