"""Parameters of `cca` in a study file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from consortium.algorithms.base import MOST_MOMENT_FEATURES, AnalysisParameters

Sizes = dict[str, float]


class CcaParameters(AnalysisParameters):
    """Parameters of `cca`."""

    pairs: int = Field(ge=1, le=100)
    """K, canonical pairs to report."""
    bounds: Sizes = Field(default_factory=dict)
    """Largest norm of a participant's vector by view, for the release of the mean; 1 (what
    normalize: true leads to) for views that are not named."""
    radii: Sizes = Field(default_factory=dict)
    """Largest distance of a participant's vector from the mean, by view. By default `headroom`
    times the root of the mean squared distance, which is released with the mean."""
    headroom: float = Field(default=1.2, gt=0)
    """Radius of a view over the root mean squared distance: a smaller one clips more participants,
    which draws correlations to zero a little, and has less noise."""
    shares: Sizes = Field(default_factory=dict)
    """Parts of the bound's square by view, in any unit. By default as the cube roots of the views'
    numbers of entries, which makes the summed squares of the views' noise least."""
    centre_share: float = Field(default=0.1, ge=0, lt=1)
    """Part of the budget (of μ²) for the mean and the spread. With 0 neither is released: vectors
    are then taken as they are, and radii are the bounds."""
    constant: float = Field(default=0.3, ge=0, le=1)
    """Constant in the stacked vector, over the bound of the rest, which estimates the rest of the
    mean. With 0 the views are assumed to have mean zero."""
    site_constants: bool = True
    """Whether each site has a constant of its own. Differences between sites then cause no link,
    and noisy site means become public. In small studies their noise costs power, as the plan
    states."""
    reduce: dict[str, int] = Field(default_factory=dict)
    """Views to reduce first to a number of principal components, by a private PCA: for views with
    too many entries for a number for every pair of them. The split of the budget minimizes the
    summed squares of the stages' noise."""
    solver: Literal["moment", "power"] | None = Field(
        default=None,
        description="Solver of the PCA in `reduce`: 'moment' releases a view's second moment, "
        "'power' its products with few columns. By default moment up to "
        f"{MOST_MOMENT_FEATURES} entries.",
    )
    keep: float = Field(default=0.5, gt=0)
    """Directions of a view are excluded if their variance is below this factor times the noise's
    largest eigenvalue."""
    detect: float = Field(default=0.5, gt=0, lt=1)
    """Assumption only for forecasts: correlation of one direction of every two views, whose
    probability to be found is forecast."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the noise floor's draws and of the public start of a power iteration."""
