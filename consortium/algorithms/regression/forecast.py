"""How sure a regression's coefficients are expected to be, from public numbers alone.

Assumed: entries that explain have deviations of 0.3, as columns within their limits have, or of
what fills half of the bound's square together, if that is less; nothing explains the target, whose
own deviation is 0.3, too, or one of labels -1 and 1.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from consortium.algorithms.assumed import robust_deviation, round_deviation
from consortium.algorithms.base import Array, Expectation
from consortium.algorithms.linear import ASSUMED_DEVIATION, drawn_fits, report_uncertainty
from consortium.algorithms.regression.plan import RegressionPlan
from consortium.kernels.noisy_least_squares import Fit

FILLED = 0.5
"""Assumed part of the bound's square that a person's entries fill."""
_DRAWS, _FEW = 48, 8
HOPELESS = (
    "Of so many entries with so few participants for this ε noise is expected to leave every "
    "coefficient open: nothing would be reported."
)
TOGETHER = (
    "With analysis.site_constants: false something would be; differences between sites then count "
    "as what explains."
)
REMEDY = "Name fewer columns, bring more participants, or raise epsilon."


def expect(plan: RegressionPlan) -> tuple[Expectation, ...]:
    """Error of a coefficient, and how many draws of the noise leave a coefficient's interval open.

    The range is that of half of the draws.
    """
    asked, errors, open_ends = plan.asked, [], 0
    for fit in _fits(plan, _DRAWS):
        factor = asked.model(fit, fit.explained(asked.confidence)).factor
        errors.append(factor * fit.coefficients[: plan.shape.features - 1])
        open_ends += not report_uncertainty(asked, fit).coefficients[0].reported
    value = robust_deviation(np.concatenate(errors))
    low, high = np.quantile([robust_deviation(each) for each in errors], (0.25, 0.75)).tolist()
    low, high = min(low, value), max(high, value)
    ranged, noise = "half of all studies", round_deviation(plan.releases[0], plan.shape)
    return (
        Expectation("error of a coefficient", value, low, high, rises=False, ranged=ranged),
        Expectation("chance that coefficients have intervals", 1.0 - open_ends / _DRAWS),
        Expectation("noise in an entry of the moment", noise, rises=False),
    )


def left_open(plan: RegressionPlan) -> tuple[str, ...]:
    """Say if coefficients will mostly be left open, and whether one constant for all would help."""
    if not plan.shape.noise or _told(plan):
        return ()
    together = plan.parameters.model_copy(update={"site_constants": False})
    helps = plan.constants > 1 and _told(type(plan)(together, plan.shape))
    return (f"{HOPELESS} {TOGETHER if helps else REMEDY}",)


def _told(plan: RegressionPlan) -> bool:
    """Whether a study in two has intervals."""
    confidence = plan.parameters.confidence
    return sum(fit.intervals(confidence) is not None for fit in _fits(plan, _FEW)) > _FEW / 2


def _fits(plan: RegressionPlan, draws: int) -> Iterator[Fit]:
    """Studies of persons as they are assumed, each with noise and chance of its own."""
    level = round_deviation(plan.releases[0], plan.shape)
    return drawn_fits(plan.asked, level, partial(_moment, plan), draws)


def _moment(plan: RegressionPlan, generator: np.random.Generator) -> Array:
    """Assumed E[z zᵀ], with what chance among persons leaves of the products with the target."""
    weights, units, explaining = plan.asked.weights, plan.shape.units, plan.shape.features - 1
    variance = min(FILLED * plan.parameters.bound**2 / explaining, ASSUMED_DEVIATION**2)
    target = 1.0 if plan.parameters.model == "logistic" else ASSUMED_DEVIATION**2
    parts = plan.asked.parts(range(len(units)))
    diagonal = np.concatenate([np.full(explaining, variance), parts, [target]])
    moment = np.diag(np.square(weights) * diagonal)
    chance = np.sqrt(diagonal[:-1] * target / sum(units)) * weights[:-1] * weights[-1]
    moment[:-1, -1] = moment[-1, :-1] = chance * generator.standard_normal(len(chance))
    return moment
