"""Parameters of `pca` in a study file."""

from typing import Literal

from pydantic import Field

from consortium.algorithms.base import MOST_MOMENT_FEATURES, AnalysisParameters

Solver = Literal["moment", "power", "subspace"]


class PcaParameters(AnalysisParameters):
    """Parameters of `pca`."""

    components: int = Field(ge=1, le=500)
    """K, dimensions to keep."""
    bound: float | None = Field(default=None, gt=0)
    """Clipping bound: unit subject, Frobenius norm of a subject's own second moment (its trace is 1
    after standardize: subject); unit timepoint, squared norm of a volume. By default 0.5 and 2.
    With solver power, Frobenius norm of the moment's product with orthonormal columns, which is at
    most as large. By default 0.3 and 1. With solver subspace, that of the moment within the
    directions. By default 0.3."""
    solver: Solver | None = Field(
        default=None,
        description="'moment' releases the second moment at once; 'power' its products with K "
        "columns, round by round, without a number for every pair of features; 'subspace' the "
        "directions that participants share, on a smooth basis, and then the variances along them "
        f"(unit subject only). By default moment up to {MOST_MOMENT_FEATURES} features, and power "
        "beyond.",
    )
    iterations: int | None = Field(default=None, ge=1, le=50)
    """Solver power: products, each with an equal part of the stage's budget. By default as many as
    are best for the study's noise."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the public random start (solver `power`)."""
