"""How sure means, or coefficients, of views with levels are expected to be.

A mean's standard error is what a result tells, and needs no assumption. For coefficients it is
assumed that nothing explains the target, whose own deviation is 0.3, and that entries vary alike,
with standard deviation 0.4 or with one over the root of their view's number, within its radius.
"""

import math
from functools import partial

import numpy as np

from consortium.algorithms.assumed import robust_deviation, round_deviation
from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import Array, Expectation
from consortium.algorithms.coordinate.plan import CoordinatePlan
from consortium.algorithms.coordinate.result import widest_variance
from consortium.algorithms.linear import ASSUMED_DEVIATION, drawn_fits, report_uncertainty

_DRAWS = 48


def expect(plan: CoordinatePlan) -> tuple[Expectation, ...]:
    """Standard error of a mean of each view, or error of a coefficient of each."""
    return _coefficients(plan) if plan.squares else _means(plan)


def _means(plan: CoordinatePlan) -> tuple[Expectation, ...]:
    level, persons, expected = _pooled_level(plan), sum(plan.shape.units), []
    for (view, _), part in zip(plan.shape.views, plan.bound.parts, strict=True):
        noise = level / part.weight
        error = math.hypot(noise, math.sqrt(widest_variance(part) / persons))
        name = f"standard error of a mean of '{view}'"
        expected.append(
            Expectation(name, error, noise, error, False, "from noise alone to what is reported")
        )
    return tuple(expected)


def _coefficients(plan: CoordinatePlan) -> tuple[Expectation, ...]:
    """By draws of noise and chance through the analysis's own code."""
    asked, errors, open_ends = plan.asked, [], 0
    for fit in drawn_fits(asked, _pooled_level(plan), partial(_moment, plan), _DRAWS):
        errors.append(fit.coefficients[: plan.shape.features - 1])
        open_ends += not report_uncertainty(asked, fit).coefficients[0].reported
    expected, first, drawn = [], 0, np.stack(errors)
    for view, size in plan.shape.views:
        if view == asked.target:
            continue
        own, first = drawn[:, first : first + size], first + size
        name = f"error of a coefficient of '{view}'"
        expected.append(Expectation(name, robust_deviation(own.ravel()), rises=False))
    share = 1.0 - open_ends / _DRAWS
    return *expected, Expectation("chance that coefficients have intervals", share)


def _moment(plan: CoordinatePlan, generator: np.random.Generator) -> Array:
    """Assumed E[z zᵀ] with what chance among persons leaves of the products with the target."""
    sizes, units, target = [size for _, size in plan.shape.views], plan.shape.units, plan.target
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
    """Noise of an entry, where sites' answers are put together as `pool_sites` does."""
    (planned,), sizes = plan.releases, np.array(plan.shape.units, dtype=np.float64)
    level = round_deviation(planned, plan.shape)
    if planned.released == "sum":
        return level
    return level * float(sizes.min() / sizes.sum()) * math.sqrt(len(sizes))
