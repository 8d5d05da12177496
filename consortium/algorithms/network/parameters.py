"""Parameters of `network` in a study file."""

from pydantic import Field

from consortium.algorithms.base import AnalysisParameters


class NetworkParameters(AnalysisParameters):
    """Parameters of `network`."""

    target: str
    """View that is predicted from all others: a column of two levels, or of more, with one entry
    each."""
    hidden: tuple[int, ...] = Field(default=(16,), max_length=8)
    """Units of the hidden layers, inputs first."""
    site_constants: bool | None = None
    """Whether each participant's site is an input of the network, which then need not learn
    differences between sites from the entries (default: if the noise of its weights is small)."""
    rounds: int = Field(default=60, ge=1, le=2000)
    """Rounds, each with an equal part of the budget."""
    bound: float = Field(default=1.0, gt=0)
    """Clipping bound of a participant's gradient (Euclidean norm)."""
    learning_rate: float = Field(default=1.0, gt=0)
    """Step over the gradient without noise; smaller with noise."""
    momentum: float = Field(default=0.8, ge=0, lt=1)
    """Momentum: fraction of the last step that is added to the next."""
    averaged: float = Field(default=0.3, gt=0, le=1)
    """Part of the rounds, the last ones, whose parameters are averaged."""
    held_out: float = Field(default=0.2, ge=0, le=0.5)
    """Part of the participants who train nothing; on them the accuracy is measured."""
    judging: float = Field(default=0.15, gt=0, lt=1)
    """Part of the budget (of μ²) that measuring the accuracy takes."""
    detect: float | None = Field(default=None, gt=0, lt=1)
    """Assumption only for forecasts: share of the participants that the best rule classifies
    correctly, classes being equally frequent. Without it no accuracy is forecast."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the interval."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the public first weights, and of the draw of training participants."""
