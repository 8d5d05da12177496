"""What is publicly known of outcomes and covariates, as a study states it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from consortium.frozen_model import FrozenModel

MOST_CORRELATION = 0.95

Deviation = Annotated[float, Field(ge=1e-12, le=1e12)]
Location = Annotated[float, Field(ge=-1e12, le=1e12)]


class Norms(FrozenModel):
    """What is publicly known of the outcomes, best from a norm over several scanners."""

    location: Location | tuple[Location, ...] = Field(
        default=0.0,
        description="Usual value of the outcomes, in the view's unit (that of the column, for a "
        "table): one number, or one for each. It need not be exact.",
    )
    deviation: Deviation | tuple[Deviation, ...] = Field(
        description="Total standard deviation among persons, between and within scanners: one "
        "number, or one for each outcome. Effects are told in this unit; a wrong one costs "
        "precision, and one that is too small draws effects to zero.",
    )
    correlation: float = Field(
        default=0.25,
        ge=0,
        le=MOST_CORRELATION,
        description="Usual correlation of two outcomes. A wrong one costs precision only. "
        "Of no meaning with `basis: smooth`.",
    )


class CovariateNorm(FrozenModel):
    """What is publicly known of a covariate, in the column's unit."""

    mean: Location = Field(description="Usual mean among persons.")
    deviation: Deviation = Field(description="Usual standard deviation among persons.")
