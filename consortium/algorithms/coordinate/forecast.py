"""How sure means, or coefficients, of views with levels are expected to be.

A mean's standard error is what a result tells, and needs no assumption. For coefficients it is
assumed that nothing explains the target, whose own deviation is 0.3, and that entries vary alike,
with standard deviation 0.4 or with one over the root of their view's number, within its radius.
"""

import math

import numpy as np

from consortium.algorithms.assumed import robust_deviation, round_deviation
from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import Array, Expectation, Shape
from consortium.algorithms.coordinate.parameters import CoordinateParameters
from consortium.algorithms.coordinate.plan import plan_bound, plan_release
from consortium.algorithms.coordinate.result import (
    Pooled,
    coordinate_question,
    entry_weights,
    squares_moment,
    widest_variance,
)
from consortium.algorithms.linear import ASSUMED_DEVIATION, tell
from consortium.kernels.moments import pack_symmetric
from consortium.kernels.noisy_least_squares import least_squares
from consortium.privacy.view_bounds import PartsBound

_DRAWS = 48


def expect(parameters: CoordinateParameters, shape: Shape) -> tuple[Expectation, ...]:
    """Standard error of a mean of each view, or error of a coefficient of each."""
    if parameters.target is None:
        return _means(parameters, shape)
    return _coefficients(parameters, shape)


def _means(parameters: CoordinateParameters, shape: Shape) -> tuple[Expectation, ...]:
    bound, level, told = plan_bound(parameters, shape), _pooled_level(parameters, shape), []
    for (view, _), part in zip(shape.views, bound.parts, strict=True):
        noise = level / part.weight
        error = math.hypot(noise, math.sqrt(widest_variance(part) / sum(shape.units)))
        name = f"standard error of a mean of '{view}'"
        told.append(
            Expectation(name, error, noise, error, False, "from noise alone to what is reported")
        )
    return tuple(told)


def _coefficients(parameters: CoordinateParameters, shape: Shape) -> tuple[Expectation, ...]:
    """By draws of noise and chance through the analysis's own code."""
    bound, level = plan_bound(parameters, shape), _pooled_level(parameters, shape)
    units, sites = sum(shape.units), tuple(range(len(shape.units)))
    asked, errors, open_ends = coordinate_question(parameters, shape, bound), [], 0
    for seed in range(_DRAWS):
        generator = np.random.default_rng(seed)
        values = pack_symmetric(_moment(parameters, shape, bound, generator))
        values = values + level * generator.standard_normal(len(values))
        fit = least_squares(
            squares_moment(parameters, shape, bound, Pooled(values, level, units, sites))
        )
        errors.append(fit.coefficients[: shape.features - 1])
        open_ends += not tell(asked, fit).coefficients[0].told
    told, first, drawn = [], 0, np.stack(errors)
    for view, size in shape.views:
        if view == parameters.target:
            continue
        own, first = drawn[:, first : first + size], first + size
        name = f"error of a coefficient of '{view}'"
        told.append(Expectation(name, robust_deviation(own.ravel()), rises=False))
    share = 1.0 - open_ends / _DRAWS
    return *told, Expectation("chance that coefficients have intervals", share)


def _moment(
    parameters: CoordinateParameters,
    shape: Shape,
    bound: PartsBound,
    generator: np.random.Generator,
) -> Array:
    """Assumed E[z zᵀ] with what chance among persons leaves of the products with the target."""
    spread, units = np.empty(shape.features), np.array(shape.units, dtype=np.float64)
    for (view, size), part in zip(shape.views, bound.parts, strict=True):
        place = shape.view_slice(view, "analysis.radii")
        spread[place] = min(usual_spread(size), part.radius / math.sqrt(size))
    target = shape.view_slice(str(parameters.target), "analysis.target").start
    spread[target] = min(ASSUMED_DEVIATION, spread[target])
    places = units / units.sum() if bound.places > 1 else np.ones(1)
    weights = np.append(entry_weights(bound), np.full(bound.places, bound.constant))
    scale = weights * np.sqrt(np.append(np.square(spread), places))
    moment = np.diag(np.square(scale))
    chance = scale * scale[target] / math.sqrt(units.sum()) * generator.standard_normal(len(scale))
    chance[target] = scale[target] ** 2
    moment[target] = moment[:, target] = chance
    return moment


def _pooled_level(parameters: CoordinateParameters, shape: Shape) -> float:
    """Noise of an entry, where sites' answers are put together as `pooled` does."""
    planned, sizes = plan_release(parameters, shape), np.array(shape.units, dtype=np.float64)
    level = round_deviation(planned, shape)
    if planned.released == "sum":
        return level
    return level * float(sizes.min() / sizes.sum()) * math.sqrt(len(sizes))
