"""Parameters of `tensor` in a study file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from consortium.algorithms.base import AnalysisParameters
from consortium.base.frozen_model import FieldError


class TensorParameters(AnalysisParameters):
    """Parameters of `tensor`."""

    components: int = Field(ge=2, le=50)
    """K, components of the mixture, or topics."""
    model: Literal["mixture", "topics"] = "mixture"
    """'mixture': Gaussians of one spherical covariance, over the entries of all views; 'topics':
    three words of each participant, `words`."""
    bound: float | None = Field(default=None, gt=0)
    """For mixture: clipping bound of a participant's vector (Euclidean norm)."""
    words: tuple[str, str, str] | None = None
    """For topics: three views of a word each, one entry for each word."""
    site_constants: bool = True
    """For mixture: whether each site's mean is subtracted from its participants. Offsets between
    sites then are not components, and noisy site means become public."""
    share: float = Field(default=0.6, gt=0, lt=1)
    """Part of the whole budget (of μ²) that the second moment may use."""
    margin: float | None = Field(default=None, gt=0)
    """Clipping bound of a participant's whitened vector over the root of its mean square; by
    default from 1.3, where noise rules, to 2.5, where clipping would."""
    restarts: int = Field(default=30, ge=1, le=1000)
    """Random starts per component."""
    iterations: int = Field(default=50, ge=1, le=1000)
    """Power iterations per start."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the public random starts."""

    @model_validator(mode="after")
    def _complete(self) -> TensorParameters:
        if (self.model == "mixture") != (self.bound is not None):
            raise FieldError("bound", "it belongs to model: mixture. Give both or neither")
        if (self.model == "topics") != (self.words is not None):
            raise FieldError("words", "they belong to model: topics. Give both or neither")
        return self
