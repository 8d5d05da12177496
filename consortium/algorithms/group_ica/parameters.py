"""Parameters of group ICA."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from consortium.algorithms.base import AnalysisParameters
from consortium.algorithms.subspace import BasisKind, Directions
from consortium.kernels.projectors import GlobalSignal

DIRECTIONS = 20
"""Default number of directions of a participant: group ICA's most common order."""


class GroupIcaParameters(AnalysisParameters):
    """Parameters of `group_ica`."""

    components: Literal["auto"] | Annotated[int, Field(ge=1, le=100)] = "auto"
    """Maximum number of networks; 'auto' is the number of directions."""
    directions: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="K, leading spatial directions of each participant that count; by default as "
        f"many as components, or {DIRECTIONS}. About the number of networks is best.",
    )
    basis: BasisKind | None = None
    """What maps are made of: 'smooth', waves longer than cutoff; 'atlas', the regions of
    data.atlas; 'voxels', every voxel of a coarse grid. By default smooth, or the atlas if there is
    one."""
    cutoff: float | None = Field(default=None, gt=0, le=200)
    """Basis smooth: shortest wavelength in mm, about twice the finest detail. By default as fine as
    the noise of the study's ε and participants allows."""
    global_signal: GlobalSignal = "keep"
    """'remove' takes the mean time series of all voxels out of each participant's series."""
    least: float = Field(default=0.7, gt=0, lt=1)
    """Expected correlation with the truth from which on a network counts as found."""
    separation: Literal["varimax", "fastica"] = "varimax"
    """How directions become maps: 'varimax' weights each by its strength and excludes none;
    'fastica' uses those that exceed the noise, with equal weights."""
    starts: int = Field(default=10, ge=1, le=100)
    """Separation fastica: number of random starts; the best is used."""
    replays: int = Field(default=40, ge=10, le=500)
    """Times that the analysis is done again with fresh noise, for its accuracy."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Of starts and replays; public."""
    open: str | None = None
    """File of an open cohort next to the study file, which 'consortium open-cohort' writes. The
    maps are drawn by both, and the release confirms which of them the hospitals have."""
    anyway: bool = False
    """Whether to run a study that is expected to find nothing."""

    @property
    def open_file(self) -> str | None:
        """File of an open cohort next to the study file."""
        return self.open

    @property
    def without_global_signal(self) -> bool:
        """Whether the mean over all voxels is removed from each participant's series."""
        return self.global_signal == "remove"

    @property
    def kept(self) -> int:
        """K."""
        named = DIRECTIONS if self.components == "auto" else self.components
        return self.directions or named

    @property
    def asked(self) -> Directions:
        """Fields about the directions."""
        return Directions(
            kept=self.kept,
            field="analysis.directions",
            basis=self.basis,
            cutoff=self.cutoff,
            global_signal=self.global_signal,
            least=self.least,
            anyway=self.anyway,
        )

    @property
    def most(self) -> int:
        """Maximum number of separated networks."""
        return self.kept if self.components == "auto" else self.components
