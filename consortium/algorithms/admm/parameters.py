"""Parameters of `admm` in a study file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from consortium.algorithms.admm.graph import Layout, study_edges
from consortium.algorithms.base import AnalysisParameters
from consortium.base.frozen_model import FieldError

_SITE = Annotated[str, StringConstraints(max_length=63)]


class AdmmParameters(AnalysisParameters):
    """Parameters of `admm`."""

    target: str
    """View that is predicted from all others: a column of two levels, -1 and +1."""
    graph: Layout | None = None
    """Which site receives from which, over the run's sites in the study's order. The first is the
    middle of a star. By default a ring, unless there are `edges`."""
    edges: tuple[tuple[_SITE, _SITE], ...] = Field(default=(), max_length=10_000)
    """Pairs of neighbouring sites, instead of `graph`. All sites of a run must be connected."""
    rounds: int = Field(default=30, ge=1, le=1000)
    """T, iterations."""
    bound: float = Field(default=1.0, gt=0)
    """Clipping bound of a participant's explaining entries together (Euclidean norm)."""
    constant: float = Field(default=0.5, ge=0, le=1)
    """Weight of the model's constant, over bound; 0: none."""
    site_constants: bool = True
    """Whether each site has its own constant, on which the sites don't agree. Different shares of
    patients then don't bias the coefficients. Otherwise all sites have one constant."""
    radius: float = Field(default=20.0, gt=0)
    """Largest norm of the model, over 1/bound: about the most that a participant's log odds can
    be."""
    penalty: float | None = Field(default=None, gt=0)
    """Curvature that neighbours add to a site's cost, at the least, over the squared length of a
    participant's vector. ADMM's step size η follows from it. A small one lets models move far in a
    round, with more noise. By default 0.0002 a round (or broadcast), or the value that balances
    that noise if it is larger."""
    regularization: float = Field(default=0.0, ge=0)
    """Weight of half the squared norm of the model."""
    averaged: float = Field(default=0.2, gt=0, le=1)
    """Part of the rounds, the last ones, whose models are averaged."""
    broadcasts: int | None = Field(default=None, ge=1)
    """IPP-ADMM: most iterations in which models are exchanged. By default all."""
    threshold: float = Field(default=0.01, ge=0)
    """IPP-ADMM: gain that is worth an exchange, as part of the most that it can be: about the norm
    of a mean local gradient over that of one participant."""
    trust: float = Field(default=0.1, gt=0, le=2)
    """IPP-ADMM: longest step of a gain, over radius."""
    tests: float = Field(default=0.1, gt=0, lt=1)
    """IPP-ADMM: part of the budget that tests use."""

    detect: float | None = Field(default=None, ge=0.5, lt=1)
    """Assumption only for forecasts: share of the participants that the best rule classifies
    correctly, both labels being equally frequent. Without it no accuracy is forecast."""

    @model_validator(mode="after")
    def _enough(self) -> AdmmParameters:
        if self.broadcasts is not None and not self.broadcasts < self.rounds:
            raise FieldError("broadcasts", "they are fewer than rounds, or left out. Lower them")
        if self.graph is not None and self.edges:
            raise FieldError("graph", "it is given by edges. Leave one of the two out")
        return self

    def check_sites(self, sites: Sequence[str]) -> None:
        """Refuse a graph that does not fit a study's sites: see `study_edges`."""
        study_edges(len(sites), sites, self.graph or "ring", self.edges)

    def joined(self, sites: Sequence[str], more: Sequence[str]) -> AdmmParameters | None:
        """Return None, because the neighbours of further sites are unknown."""
        del sites
        return None if more else self
