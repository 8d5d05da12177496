"""Parameters of `regression` in a study file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from consortium.algorithms.base import AnalysisParameters
from consortium.base.frozen_model import FieldError

Cost = tuple[tuple[float, float, float], tuple[float, float], tuple[float]]


class RegressionParameters(AnalysisParameters):
    """Parameters of `regression`."""

    target: str
    """View that is explained, of one entry; all other views explain it. For logistic, a column of
    two levels."""
    model: Literal["linear", "logistic", "polynomial"] = "linear"
    """'linear': squared error; 'logistic': of labels -1 and +1; 'polynomial': the cost that `cost`
    gives."""
    bound: float = Field(gt=0)
    """Clipping bound of a participant's explanatory entries together (Euclidean norm). Entries are
    between -1 and 1, so the root of their number clips no participant."""
    intercept: bool = True
    """Whether the model has a constant."""
    site_constants: bool = True
    """Whether each site has a constant of its own. Differences between sites then explain nothing,
    and noisy site means become public. Otherwise all have one constant."""
    intercept_weight: float = Field(default=0.5, gt=0, le=1)
    """Weight of the constant in the release, over bound."""
    target_weight: float = Field(default=0.7, gt=0, le=1)
    """Weight of the target in the release, over bound."""
    cost: Cost | None = None
    """For polynomial: coefficients of [[1, y, y²], [s, s y], [s²]], s being the model's value.
    Those of linear are [[0, 0, 1], [0, -2], [1]]."""
    approximation: Literal["gaussian", "taylor"] = "gaussian"
    """For logistic: 'taylor' is the published second-order polynomial; 'gaussian' holds for large
    coefficients too, where s is about Gaussian."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the intervals."""
    held_out: float = Field(default=0.0, ge=0, le=0.5)
    """For logistic: fraction of the participants who train nothing. On them the AUC and the
    calibration are measured. By default none."""
    judging: float = Field(default=0.3, gt=0, lt=1)
    """Fraction of the budget (of μ²) for the measurement on held-out participants."""
    prevalence: float = Field(default=0.5, gt=0, lt=1)
    """Expected fraction of participants with the label 1, for the forecast of the AUC."""
    auc_error: float = Field(default=0.05, gt=0)
    """Maximum forecast standard error of the AUC, from noise and chance. A study with a larger one
    is refused, unless `anyway` is set."""
    anyway: bool = False
    """Whether to run a study whose AUC is expected to have a larger error than `auc_error`."""

    @model_validator(mode="after")
    def _complete(self) -> RegressionParameters:
        if (self.model == "polynomial") != (self.cost is not None):
            raise FieldError("cost", "it belongs to model: polynomial. Give both or neither")
        if self.held_out and self.model != "logistic":
            raise FieldError("held_out", "it belongs to model: logistic. Set it to 0 or omit it")
        if self.cost is not None and self.cost[2][0] <= 0:
            raise FieldError("cost", "the coefficient of s² must be positive for a minimum")
        if self.cost is not None and self.cost[1][0] != 0 and not self.intercept:
            raise FieldError(
                "cost", "the coefficient of s needs a model with intercept. Set it to 0"
            )
        return self
