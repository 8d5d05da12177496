"""Parameters of networks by templates."""

from typing import Any

from pydantic import Field, model_validator

from consortium.algorithms.base import AnalysisParameters
from consortium.base.frozen_model import FieldError
from consortium.kernels.projectors import GlobalSignal
from consortium.views.base import BesideName


class TemplateNetworksParameters(AnalysisParameters):
    """Parameters of `template_networks`."""

    templates: BesideName
    """4-D NIfTI next to the study file with a public map for each network: those of an earlier
    release, or a published set."""
    connectivity: bool = True
    """Whether the mean correlation of every two networks' time series is released."""
    connectivity_bound: float = Field(default=0.5, gt=0, le=5)
    """Maximum root mean square of a participant's Fisher-transformed correlations; larger ones are
    scaled down."""
    cutoff: float | None = Field(default=None, gt=0, le=200)
    """Shortest wavelength in mm that is estimated of participants; finer details of a map are its
    template's. By default as fine as the noise of the study's ε and participants allows."""
    global_signal: GlobalSignal = "keep"
    """'remove' takes the mean time series of all voxels out of each participant's series."""
    least: float = Field(default=0.7, gt=0, lt=1)
    """Expected correlation with the truth from which on a map counts as found."""
    anyway: bool = False
    """Whether to run a study that is expected to add nothing to its templates."""

    @model_validator(mode="before")
    @classmethod
    def _no_open_cohort(cls, values: Any) -> Any:
        if isinstance(values, dict) and "open" in values:
            raise FieldError(
                "open",
                "the maps of template_networks can't confirm those of an open cohort. Use "
                "algorithm: group_ica, whose maps may become templates",
            )
        return values

    @property
    def without_global_signal(self) -> bool:
        """Whether the mean over all voxels is removed from each participant's series."""
        return self.global_signal == "remove"

    @property
    def template_file(self) -> str:
        """File of public maps next to the study file."""
        return self.templates
