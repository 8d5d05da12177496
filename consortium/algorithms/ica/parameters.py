"""Parameters of `ica` in a study file."""

from typing import Literal

from pydantic import Field

from consortium.algorithms.base import AnalysisParameters
from consortium.algorithms.ica.kernels import infomax
from consortium.algorithms.pca.parameters import Solver

Optimizer = Literal["rotation", "fixed-point", "gradient"]


class IcaParameters(AnalysisParameters):
    """Parameters of `ica`."""

    components: int = Field(ge=2, le=200)
    """R, networks to look for."""
    pca_bound: float | None = Field(default=None, gt=0)
    """Clipping bound of the PCA before it, as in pca. By default 0.3 for unit subject."""
    pca_share: float = Field(default=0.6, gt=0, lt=1)
    """Part of the whole budget (of μ²) that PCA may use."""
    pca_solver: Solver | None = None
    """Solver of the PCA before it, as in pca. By default subspace for voxels with unit subject."""
    pca_iterations: int | None = Field(default=None, ge=1, le=50)
    """Products of the solver power, as in pca."""
    maps: bool = False
    """Whether one more release gives maps at full resolution: for the voxels of
    data.maps_resolution, or with data.atlas for those of the grid."""
    maps_share: float = Field(default=0.3, gt=0, lt=1)
    """Fraction of the whole budget (of μ²) for maps; the rest is divided by pca_share."""
    maps_bound: float | None = Field(default=None, gt=0)
    """Clipping bound of one unit's maps (Frobenius norm over voxels and components). By default
    from R and the mean number of volumes per subject."""
    optimizer: Optimizer = "rotation"
    """How the unmixing is improved from round to round."""
    score: infomax.Score | None = None
    """'tanh', or 'volatility' for time series whose variance wanders (unit subject only). By
    default volatility for unit subject and tanh for unit timepoint."""
    rounds: int | None = Field(default=None, ge=1, le=2000)
    """Rounds. By default 20 for rotation (30 with unit timepoint), 8 for fixed-point and 150 for
    gradient."""
    bound: float | None = Field(default=None, gt=0)
    """Clipping bound of one unit's statistic. By default from R and the mean number of volumes per
    subject."""
    first_step: float = Field(default=4.0, gt=0)
    """Rotation: first step over a full Newton step."""
    learning_rate: float = Field(default=0.5, gt=0)
    """Gradient: ρ."""
    decay: float = Field(default=0.1, gt=0, le=1)
    """Rotation: last step over the first; steps shrink geometrically."""
