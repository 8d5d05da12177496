"""capeFM: linear, logistic and any quadratic regression from one release.

Source: dissertation Algorithms 8.1 and 8.2, tightened. The cost is a polynomial in
s = w0 + wᵀx and y of degree two; all its coefficient arrays are entries of the second moment of
z = (x, c, αy), released once in coordinates that keep its norm. Replacing a person moves it by
√2 (‖x‖² + c² + α²) / n at the most: no more than Λ_1 and Λ_2 alone as one vector would (for
α² ≤ ‖x‖²), and E[y²], from which intervals come, is in it. What makes the problem well posed is
done after the release: see `kernels.normal_equations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from consortium.algorithms.base import (
    Argument,
    Array,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
    SiteData,
    Takes,
    forms_of,
)
from consortium.algorithms.query_arguments import index_argument, number_argument
from consortium.algorithms.regression.result import read_moment, regression_result, release_weights
from consortium.errors import StudyError
from consortium.kernels.columns import mean_packed_square
from consortium.kernels.moments import packed_size
from consortium.kernels.normal_equations import posterior_fit, trimmed_fit
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns

_MOST_FEATURES = 3_000  # 4.5 million numbers a message

Cost = tuple[tuple[float, float, float], tuple[float, float], tuple[float]]


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
    columns[:-2] = clip_columns(np.delete(table, target, axis=0), reach)
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
        scales = release_weights(parameters)
        bound = Bound(parameters.bound**2 + scales[0] ** 2 + scales[1] ** 2, cone=True)
        entries = packed_size(shape.features + 1)
        fixed = _arguments(parameters, shape)
        return (
            PlannedRelease(
                *("regression", "regression_moment", entries, bound, 1, 1.0, forms_of(fixed)),
                fixed=fixed,
            ),
        )

    def run(self, parameters: RegressionParameters, shape: Shape) -> Run:
        """Ask for the moment and solve the regression."""
        target = _target(parameters, shape)
        release = yield Query("regression", "regression_moment", _arguments(parameters, shape))
        moment = read_moment(release, parameters, sum(shape.units))
        fit = (posterior_fit if parameters.stabilize == "posterior" else trimmed_fit)(moment)
        return regression_result(parameters, shape, target, moment, fit)


def _arguments(parameters: RegressionParameters, shape: Shape) -> dict[str, Argument]:
    constant, weight = release_weights(parameters)
    return {
        "target": _target(parameters, shape),
        "reach": float(parameters.bound),
        "intercept": constant,
        "weight": weight,
    }


def _target(parameters: RegressionParameters, shape: Shape) -> int:
    found = shape.single_entry(parameters.target, "analysis.target", "name a view of one number")
    if shape.features < 2:
        raise StudyError("field 'features': nothing is left to explain the target; add a view.")
    return found
