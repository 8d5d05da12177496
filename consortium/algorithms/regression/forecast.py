"""How sure a regression's coefficients are expected to be, from public numbers alone.

Assumed: entries that explain have deviations of 0.3, as columns within their limits have, or of
what fills half of the bound's square together, if that is less; nothing explains the target, whose
own deviation is 0.3, too, or one of labels -1 and 1.
"""

from collections.abc import Iterator

import numpy as np

from consortium.algorithms.assumed import drawn, robust_deviation, round_deviation
from consortium.algorithms.base import Array, Expectation, Shape
from consortium.algorithms.linear import ASSUMED_DEVIATION, tell
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.plan import (
    constants,
    parts_of,
    plan_releases,
    release_weights,
)
from consortium.algorithms.regression.result import read_moment, regression_question
from consortium.kernels.moments import pack_symmetric
from consortium.kernels.noisy_least_squares import Fit, least_squares

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


def expect(parameters: RegressionParameters, shape: Shape) -> tuple[Expectation, ...]:
    """Error of a coefficient, and how many draws of the noise leave a coefficient's interval open.

    The range is that of half of the draws.
    """
    planned, errors, open_ends = plan_releases(parameters, shape)[0], [], 0
    asked = regression_question(parameters, shape)
    for fit in _fits(parameters, shape, _DRAWS):
        factor = asked.model(fit, fit.explained(asked.confidence)).factor
        errors.append(factor * fit.coefficients[: shape.features - 1])
        open_ends += not tell(asked, fit).coefficients[0].told
    value = robust_deviation(np.concatenate(errors))
    low, high = np.quantile([robust_deviation(each) for each in errors], (0.25, 0.75)).tolist()
    low, high = min(low, value), max(high, value)
    ranged = "half of all studies"
    return (
        Expectation("error of a coefficient", value, low, high, rises=False, ranged=ranged),
        Expectation("chance that coefficients have intervals", 1.0 - open_ends / _DRAWS),
        Expectation(
            "noise in an entry of the moment", round_deviation(planned, shape), rises=False
        ),
    )


def left_open(parameters: RegressionParameters, shape: Shape) -> tuple[str, ...]:
    """Say if coefficients will mostly be left open, and whether one constant for all would help."""
    if not shape.noise or _told(parameters, shape):
        return ()
    together = parameters.model_copy(update={"site_constants": False})
    helps = constants(parameters, shape) > 1 and _told(together, shape)
    return (f"{HOPELESS} {TOGETHER if helps else REMEDY}",)


def _told(parameters: RegressionParameters, shape: Shape) -> bool:
    """Whether a study in two has intervals."""
    fits = _fits(parameters, shape, _FEW)
    return sum(fit.intervals(parameters.confidence) is not None for fit in fits) > _FEW / 2


def _fits(parameters: RegressionParameters, shape: Shape, draws: int) -> Iterator[Fit]:
    """Studies of persons as they are assumed, each with noise and chance of its own."""
    planned = plan_releases(parameters, shape)[0]
    for seed in range(draws):
        generator = np.random.default_rng(seed)
        values = pack_symmetric(_moment(parameters, shape, generator))
        release = drawn(planned, shape, values, generator)
        yield least_squares(read_moment(release, parameters, shape))


def _moment(
    parameters: RegressionParameters, shape: Shape, generator: np.random.Generator
) -> Array:
    """Assumed E[z zᵀ], with what chance among persons leaves of the products with the target."""
    weights, explaining = release_weights(parameters, shape), shape.features - 1
    parts = parts_of(parameters, shape, range(len(shape.units)))
    parts = parts[: len(weights) - 1 - explaining]
    variance = min(FILLED * parameters.bound**2 / explaining, ASSUMED_DEVIATION**2)
    target = 1.0 if parameters.model == "logistic" else ASSUMED_DEVIATION**2
    diagonal = np.concatenate([np.full(explaining, variance), parts, [target]])
    moment = np.diag(np.square(weights) * diagonal)
    chance = np.sqrt(diagonal[:-1] * target / sum(shape.units)) * weights[:-1] * weights[-1]
    moment[:-1, -1] = moment[-1, :-1] = chance * generator.standard_normal(len(chance))
    return moment
