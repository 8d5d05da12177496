"""What is publicly known of outcomes and covariates, as a study states it."""

from typing import Annotated

from pydantic import Field

from consortium.base.frozen_model import FrozenModel

MOST_CORRELATION = 0.95

Deviation = Annotated[float, Field(ge=1e-12, le=1e12)]
Location = Annotated[float, Field(ge=-1e12, le=1e12)]


class Norms(FrozenModel):
    """What is publicly known of the outcomes; what is not stated, or wrongly, is learned."""

    location: Location | tuple[Location, ...] | None = None
    """Usual value of the outcomes, in the view's unit (that of the column, for a table): one
    number, or one for each. The first round learns where they really lie, from here; without it
    from the middle of each column's limits."""
    deviation: Deviation | tuple[Deviation, ...] | None = None
    """Total standard deviation among participants, between and within scanners: one number, or one
    for each outcome. Effects are reported in this unit. The first round learns by what all are off
    together. Without it that starts from an eighth of the distance between each column's limits,
    and effects are reported in the deviations that were learned."""
    correlation: float = Field(default=0.25, ge=0, le=MOST_CORRELATION)
    """Usual correlation of two outcomes. A wrong one costs precision only. Of no meaning with
    `basis: smooth`."""

    @property
    def complete(self) -> bool:
        """Whether location and deviation are stated."""
        return self.location is not None and self.deviation is not None


class CovariateNorm(FrozenModel):
    """What is publicly known of a covariate, in the column's unit."""

    mean: Location
    """Usual mean among participants."""
    deviation: Deviation
    """Usual standard deviation among participants."""
