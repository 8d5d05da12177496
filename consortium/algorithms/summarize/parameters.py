"""Parameters of `summarize` in a study file."""

from pydantic import Field

from consortium.algorithms.base import AnalysisParameters


class SummarizeParameters(AnalysisParameters):
    """Parameters of `summarize`."""

    target: str | None = None
    """Site whose participants the others' are compared with, and are to make up. By default each
    site is compared with all others together."""
    frequencies: int = Field(default=50, ge=2, le=5_000)
    """Random frequencies of the features; each site releases two numbers for each."""
    width: float | None = Field(default=None, gt=0)
    """Distance within which two participants are alike: the kernel is exp(-‖x - y‖²/(2 width²)). By
    default half the root of the number of entries; about 1 for one normalized view."""
    points: int = Field(default=10, ge=1, le=1_000)
    """Simulated participants that summarize the target."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the intervals."""
    seed: int = Field(default=0, ge=0)
    """Seed of the public frequencies."""
