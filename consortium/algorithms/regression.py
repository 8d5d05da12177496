"""capeFM: linear, logistic and any quadratic regression from one release.

Source: dissertation Algorithms 8.1 and 8.2, tightened. The cost is a polynomial in
s = w0 + wᵀx and y of degree two; all its coefficient arrays are entries of the second moment of
z = (x, c, αy), released once in coordinates that keep its norm. Replacing a person moves it by
√2 (‖x‖² + c² + α²) / n at the most: no more than Λ_1 and Λ_2 alone as one vector would (for
α² ≤ ‖x‖²), and E[y²], from which intervals come, is in it. What makes the problem well posed is
done after the release: see `kernels.normal_equations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.special import ndtri

from consortium.algorithms.base import (
    Array,
    Local,
    PlannedRelease,
    Query,
    Release,
    Result,
    Run,
    Shape,
    SiteData,
    Table,
    Takes,
)
from consortium.algorithms.vectors import index_argument, number_argument, view_slice
from consortium.errors import StudyError
from consortium.kernels.columns import bounded_columns, mean_packed_square
from consortium.kernels.logit import TAYLOR, logistic_factor
from consortium.kernels.moments import packed_size, unpack_symmetric
from consortium.kernels.normal_equations import (
    Fit,
    NoisyMoment,
    noise_edge,
    noisy_moment,
    posterior_fit,
    trimmed_fit,
)
from consortium.privacy.bounds import Bound

_MOST_FEATURES = 3_000  # 4.5 million numbers a message
_MOST_ROWS = 1_000
_STEP = 0.99  # of a difference quotient

Cost = tuple[tuple[float, float, float], tuple[float, float], tuple[float]]


@dataclass(frozen=True)
class _Model:
    """Factor from least squares, mean of s, and the factor's growth with wᵀ Σ w."""

    factor: float
    centre: float
    growth: float = 0.0


class RegressionParameters(BaseModel):
    """Parameters of `regression`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    target: str = Field(
        description="View that is explained, of one entry; all other views explain it. For "
        "logistic, a column of two levels."
    )
    model: Literal["linear", "logistic", "polynomial"] = Field(
        default="linear",
        description="'linear': squared error; 'logistic': of labels -1 and +1; 'polynomial': the "
        "cost that `cost` gives.",
    )
    bound: float = Field(
        gt=0,
        description="Clipping bound of a person's explaining entries together (Euclidean norm); "
        "entries lie within -1 and 1, so that the root of their number clips nobody.",
    )
    intercept: bool = Field(default=True, description="Whether the model has a constant.")
    intercept_weight: float = Field(
        default=0.5, gt=0, le=1, description="Weight of the constant in the release, over bound."
    )
    target_weight: float = Field(
        default=0.7, gt=0, le=1, description="Weight of the target in the release, over bound."
    )
    cost: Cost | None = Field(
        default=None,
        description="For polynomial: coefficients of [[1, y, y²], [s, s y], [s²]], s being the "
        "model's value; linear is [[0, 0, 1], [0, -2], [1]].",
    )
    approximation: Literal["gaussian", "taylor"] = Field(
        default="gaussian",
        description="For logistic: 'taylor' is the published second-order polynomial; 'gaussian' "
        "holds for large coefficients too, where s is about Gaussian.",
    )
    stabilize: Literal["posterior", "trim"] = Field(
        default="posterior",
        description="'posterior' weighs every direction by its noise; 'trim' leaves out "
        "directions below the noise edge.",
    )
    confidence: float = Field(
        default=0.95, gt=0.5, lt=1, description="Level of the coefficients' intervals."
    )

    @model_validator(mode="after")
    def _complete(self) -> RegressionParameters:
        if (self.model == "polynomial") != (self.cost is not None):
            raise ValueError("cost: it belongs to model: polynomial; give both or neither")
        if self.cost is not None and self.cost[2][0] <= 0:
            raise ValueError("cost: the coefficient of s² must be positive, or there is no minimum")
        if self.cost is not None and self.cost[1][0] != 0 and not self.intercept:
            raise ValueError("cost: the coefficient of s needs a model with intercept; set it to 0")
        return self


def _regression_moment(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of z zᵀ, packed: (P + 2)(P + 3)/2 entries."""
    target = index_argument(query, "target", data.features)
    reach, constant, weight = (
        number_argument(query, name) for name in ("reach", "intercept", "weight")
    )
    table = data.table()
    columns = np.empty((len(table) + 1, table.shape[1]))
    columns[:-2] = bounded_columns(np.delete(table, target, axis=0), max(reach, 1e-300))
    columns[-2] = constant
    columns[-1] = weight * np.clip(table[target].astype(np.float64), -1.0, 1.0)
    return mean_packed_square(columns, bound.norm)


class Regression:
    """One release of (P + 2)(P + 3)/2 numbers."""

    name = "regression"
    title = "capeFM regression"
    takes: Takes = "features"
    needs_means = False
    Parameters = RegressionParameters
    statistics: ClassVar[Mapping[str, Local]] = {"regression_moment": _regression_moment}

    def releases(self, parameters: RegressionParameters, shape: Shape) -> tuple[PlannedRelease]:
        """One release with the whole budget."""
        _target(parameters, shape)
        if shape.features > _MOST_FEATURES:
            raise StudyError(
                f"field 'features': {shape.features} entries are more than the {_MOST_FEATURES} "
                "that a regression can hold the moments of; use fewer or coarser views."
            )
        scales = _weights(parameters)
        bound = Bound(parameters.bound**2 + scales[0] ** 2 + scales[1] ** 2, cone=True)
        entries = packed_size(shape.features + 1)
        forms = {"target": int, "reach": float, "intercept": float, "weight": float}
        return (PlannedRelease("regression", "regression_moment", entries, bound, 1, 1.0, forms),)

    def run(self, parameters: RegressionParameters, shape: Shape) -> Run:
        """Ask for the moment and solve the regression."""
        target = _target(parameters, shape)
        constant, weight = _weights(parameters)
        arguments = {
            "target": target,
            "reach": float(parameters.bound),
            "intercept": constant,
            "weight": weight,
        }
        release = yield Query("regression", "regression_moment", arguments)
        moment = _moment(release, parameters, sum(shape.units))
        fit = (posterior_fit if parameters.stabilize == "posterior" else trimmed_fit)(moment)
        return _result(parameters, shape, target, moment, fit)


def _target(parameters: RegressionParameters, shape: Shape) -> int:
    found = view_slice(shape, parameters.target, "analysis.target")
    if found.stop - found.start != 1:
        raise StudyError(
            f"field 'analysis.target': view '{parameters.target}' has {found.stop - found.start} "
            "entries; name a view of one number."
        )
    if shape.features < 2:
        raise StudyError("field 'features': nothing is left to explain the target; add a view.")
    return int(found.start)


def _weights(parameters: RegressionParameters) -> tuple[float, float]:
    """Weights c (0 without intercept) and α in the release."""
    constant = parameters.intercept_weight * parameters.bound if parameters.intercept else 0.0
    return constant, parameters.target_weight * parameters.bound


def _moment(release: Release, parameters: RegressionParameters, units: int) -> NoisyMoment:
    matrix = unpack_symmetric(release.values)
    weights = np.concatenate([np.ones(len(matrix) - 2), _weights(parameters)])
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


def _result(
    parameters: RegressionParameters, shape: Shape, target: int, moment: NoisyMoment, fit: Fit
) -> Result:
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
        if view != parameters.target and len(rows) < _MOST_ROWS:
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
