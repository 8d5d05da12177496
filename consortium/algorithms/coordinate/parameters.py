"""Parameters of `coordinate` in a study file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, model_validator

from consortium.algorithms.base import AnalysisParameters
from consortium.base.frozen_model import FieldError
from consortium.errors import StudyError
from consortium.views.base import ViewName

Level = Annotated[float, Field(gt=0)]
Radius = Annotated[float, Field(ge=1e-6)]


class CoordinateParameters(AnalysisParameters):
    """Parameters of `coordinate`."""

    levels: dict[ViewName, Level] = Field(default_factory=dict)
    """ε of a change of only one view, at the study's δ, by view. The others have the participant's
    ε."""
    protects: Literal["view", "entry"] = "view"
    """Scope of a level: all entries of the view together, or any one of them."""
    target: ViewName | None = None
    """View of one entry that all others explain by least squares. Without it the mean of every
    entry is asked for."""
    site_constants: bool = True
    """With a target: whether each site has a constant of its own. Differences between sites then
    explain nothing, and noisy site means become public."""
    radii: dict[ViewName, Radius] = Field(default_factory=dict)
    """Euclidean norm that a view's entries are clipped to; 1 for normalized views. By default the
    root of their number, which clips no participant."""
    dependence: float | None = Field(default=None, ge=0, le=1)
    """Assumption: for any values of a participant's view, the distribution of the participant's
    other views changes by no more than this (total variation). The result reports the levels under
    this assumption."""
    randomize: Literal["mean", "record"] = "mean"
    """'mean': noise for the mean over all sites; 'record': as much as if every participant's vector
    had been randomized by itself before it was averaged (local privacy)."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the intervals."""
    epsilon: float | None = Field(default=None, gt=0)
    """The study's own, taken from `privacy`; leave it out."""
    delta: float | None = Field(default=None, gt=0, lt=0.5)
    """The study's own, taken from `privacy`; leave it out."""

    @model_validator(mode="before")
    @classmethod
    def _take_promise(cls, values: Any, info: ValidationInfo) -> Any:
        privacy = (info.context or {}).get("privacy")
        if privacy is None or not isinstance(values, dict):
            return values
        return {"epsilon": privacy.epsilon, "delta": privacy.delta, **values}

    @model_validator(mode="after")
    def _agrees(self, info: ValidationInfo) -> CoordinateParameters:
        privacy = (info.context or {}).get("privacy")
        if privacy is not None and (self.epsilon, self.delta) != (privacy.epsilon, privacy.delta):
            raise FieldError("epsilon", "must be that of privacy, as must delta. Leave both out.")
        for view, level in self.levels.items():
            if self.epsilon is not None and level > self.epsilon:
                raise FieldError(
                    "levels",
                    f"{level:g} for '{view}' is above the participant's ε. Lower it or "
                    "leave it out",
                )
        if self.protects == "entry" and self.target is not None and self.radii:
            raise FieldError("radii", "with a target they go with protects: view. Leave them out")
        return self

    def promise(self) -> tuple[float, float]:
        """Return ε and δ of the study; raises StudyError if they are missing."""
        if self.epsilon is None or self.delta is None:
            raise StudyError(
                "field 'analysis': the study's epsilon and delta are required. Add them."
            )
        return self.epsilon, self.delta

    def level(self, view: str) -> float:
        """Return ε of changing only the view (or an entry of it)."""
        return self.levels.get(view, self.promise()[0])
