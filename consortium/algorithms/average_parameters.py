"""Parameters of the private average."""

from __future__ import annotations

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from consortium.algorithms.base import AnalysisParameters
from consortium.views import AnyView


class AverageParameters(AnalysisParameters):
    """Parameters of `average`."""

    bound: float = Field(default=1.0, gt=0)
    """Clipping bound of one unit's mean volume (Euclidean norm)."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of every interval, and of all values together that are coloured."""
    gaps: float = Field(default=0.0, ge=0, le=0.5)
    """For image series: fraction of the voxels that may be exactly 0 in a participant's images
    because these do not reach there. The share of participants who have each voxel is then released
    for 2 % of the budget. Each mean is that of those participants, and voxels that fewer than half
    of them have are withheld. With 0, missing voxels count as 0. Views state gaps of their own."""
    _views: tuple[AnyView, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _read_views(self, info: ValidationInfo) -> AverageParameters:
        self._views = tuple((info.context or {}).get("features") or ())
        return self

    @property
    def may_lack(self) -> tuple[str, ...]:
        """Views in which a participant may lack values."""
        return tuple(view.name for view in self._views)

    @property
    def most_missing(self) -> float:
        """Fraction of the entries that a participant may lack; 0 if none may."""
        return max([self.gaps, *(view.most_missing for view in self._views)])

    @property
    def views(self) -> tuple[AnyView, ...]:
        """Views of the study; empty where parameters were made without a study."""
        return self._views
