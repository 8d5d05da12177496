"""From the released moment of a regression to its coefficients, intervals and table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import MOST_ROWS, Array, Release, Result, Shape, Table
from consortium.algorithms.regression.parameters import RegressionParameters
from consortium.algorithms.regression.plan import release_weights
from consortium.kernels.logistic_from_moments import TAYLOR, logistic_factor
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.normal_equations import Fit, NoisyMoment, noise_edge, noisy_moment

_STEP = 0.99  # of a difference quotient


@dataclass(frozen=True)
class _Model:
    """Factor from least squares, mean of s, and the factor's growth with wᵀ Σ w."""

    factor: float
    centre: float
    growth: float = 0.0


def read_moment(release: Release, parameters: RegressionParameters, units: int) -> NoisyMoment:
    """Undo packing and weights of the release."""
    matrix = unpack_symmetric(release.values)
    weights = np.concatenate([np.ones(len(matrix) - 2), release_weights(parameters)])
    return noisy_moment(matrix, weights, release.deviation, units)


def _model(parameters: RegressionParameters, moment: NoisyMoment, fit: Fit) -> _Model:
    """Turn least squares into the model's coefficients.

    Minimizing c20 s² + c11 s y + c10 s over w0 and w gives w = -c11 / (2 c20) times least squares.
    """
    if parameters.cost is not None:
        (_, (linear, mixed), (square,)) = parameters.cost
        return _Model(-mixed / (2 * square), -(linear + mixed * moment.response) / (2 * square))
    if parameters.model == "linear":
        return _Model(1.0, moment.response)
    if parameters.approximation == "taylor":
        return _Model(TAYLOR, TAYLOR * moment.response)
    explained = float(np.clip(moment.variance - fit.residual, 1e-6, 0.999))
    intercept = parameters.intercept
    factor, centre = logistic_factor(explained, moment.response, intercept=intercept)
    near, _ = logistic_factor(_STEP * explained, moment.response, intercept=intercept)
    return _Model(factor, centre, (factor - near) / ((1 - _STEP) * explained))


def _deviations(model: _Model, moment: NoisyMoment, fit: Fit) -> Array:
    """Standard deviations of the model's coefficients, as the factor moves with wᵀ Σ w too."""
    change = 2 * model.growth * np.outer(fit.coefficients, moment.cross)
    change[np.diag_indices_from(change)] += model.factor
    variances = np.einsum("ij,jk,ik->i", change, fit.covariance, change, optimize=True)
    deviations: Array = np.sqrt(np.maximum(variances, 0.0))
    return deviations


def regression_result(
    parameters: RegressionParameters, shape: Shape, target: int, moment: NoisyMoment, fit: Fit
) -> Result:
    """Coefficients over all views' entries, 0 for the target, with a table of intervals."""
    model = _model(parameters, moment, fit)
    values, deviations = model.factor * fit.coefficients, _deviations(model, moment, fit)
    constant = model.centre - float(moment.mean @ values) if parameters.intercept else 0.0
    arrays = {
        "coefficients": np.insert(values, target, 0.0)[:, None],
        "deviations": np.insert(deviations, target, 0.0)[:, None],
        "intercept": np.array([constant]),
    }
    explained = 1 - fit.residual / moment.variance if moment.variance > 0 else 0.0
    numbers = {
        "explained": float(np.clip(explained, 0.0, 1.0)),
        "residual_deviation": float(np.sqrt(fit.residual)),
        "intercept": constant,
        "noise_edge": noise_edge(moment),
    }
    table = _table(parameters, shape, arrays)
    return Result(arrays, numbers, loadings="coefficients", tables={"coefficients": table})


def _table(parameters: RegressionParameters, shape: Shape, arrays: Mapping[str, Array]) -> Table:
    width = float(ndtri((1 + parameters.confidence) / 2))
    rows: list[tuple[float | int | str, ...]] = []
    values, deviations = arrays["coefficients"][:, 0], arrays["deviations"][:, 0]
    for index, (view, entry) in enumerate(_entries(shape)):
        if view != parameters.target and len(rows) < MOST_ROWS:
            value, half = float(values[index]), width * float(deviations[index])
            rows.append((view, entry, value, value - half, value + half))
    percent = f"{100 * parameters.confidence:g}"
    return Table(
        f"Coefficients of {parameters.target} with {percent} % intervals, which account for the "
        "noise of privacy and for chance among the persons.",
        ("view", "entry", "coefficient", "low", "high"),
        tuple(rows),
    )


def _entries(shape: Shape) -> Iterator[tuple[str, int]]:
    """View and number within the view, from 1, of every entry."""
    for view, size in shape.views:
        for number in range(size):
            yield view, number + 1
