"""Parameters of ADMM, and the public numbers that follow from them and from the sites' sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from consortium.algorithms.admm.graph import Edge, Layout, neighbours, study_edges
from consortium.algorithms.admm.site import solvable
from consortium.algorithms.base import Argument, Shape
from consortium.errors import StudyError

_MOST_FEATURES = 2_000
_FLATTEST = 2e-4  # a round; below, steps are long enough for any data
_STIFFEST = 1e3
_SITE = Annotated[str, StringConstraints(max_length=63)]


class AdmmParameters(BaseModel):
    """Parameters of `admm`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    target: str = Field(
        description="View that is told from all others: a column of two levels, -1 and +1."
    )
    graph: Layout = Field(
        default="ring",
        description="Who hears whom, over the run's sites in the study's order; the first is the "
        "middle of a star.",
    )
    edges: tuple[tuple[_SITE, _SITE], ...] = Field(
        default=(),
        max_length=10_000,
        description="Pairs of sites that hear each other, instead of `graph`. All sites of a run "
        "must be connected.",
    )
    rounds: int = Field(default=30, ge=1, le=1000, description="T, iterations.")
    bound: float = Field(
        default=1.0,
        gt=0,
        description="Clipping bound of a person's explaining entries together (Euclidean norm).",
    )
    constant: float = Field(
        default=0.5, ge=0, le=1, description="Weight of the model's constant, over bound; 0: none."
    )
    radius: float = Field(
        default=20.0,
        gt=0,
        description="Largest norm of the model, over 1/bound: about the most that a person's log "
        "odds can be.",
    )
    penalty: float | None = Field(
        default=None,
        gt=0,
        description="Curvature that neighbours add to a site's cost, at the least, over the "
        "squared length of a person's vector; ADMM's step size η follows from it. A small "
        "one lets models move far in a round, with more noise. By default 0.0002 a "
        "round (or broadcast), or what balances that noise if it is more.",
    )
    regularization: float = Field(
        default=0.0, ge=0, description="Weight of half the squared norm of the model."
    )
    averaged: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="Part of the rounds, the last ones, whose models are averaged.",
    )
    broadcasts: int | None = Field(
        default=None,
        ge=1,
        description="IPP-ADMM: most iterations in which models are exchanged. By default all.",
    )
    threshold: float = Field(
        default=0.01,
        ge=0,
        description="IPP-ADMM: gain that is worth an exchange, as part of the most that it can be: "
        "about the norm of a mean local gradient over that of one person.",
    )
    trust: float = Field(
        default=0.1, gt=0, le=2, description="IPP-ADMM: longest step of a gain, over radius."
    )
    tests: float = Field(
        default=0.1, gt=0, lt=1, description="IPP-ADMM: part of the budget that tests use."
    )

    @model_validator(mode="after")
    def _enough(self) -> AdmmParameters:
        if self.broadcasts is not None and not self.broadcasts < self.rounds:
            raise ValueError("broadcasts: they are fewer than rounds, or left out; lower them")
        return self

    def check_sites(self, sites: Sequence[str]) -> None:
        """Refuse a graph that does not fit a study's sites: see `study_edges`."""
        study_edges(len(sites), sites, self.graph, self.edges)


class AdmmPlan:
    """What every site and the centre know before the first round.

    Parameters
    ----------
    parameters : AdmmParameters
    shape : Shape

    Attributes
    ----------
    target : int
        Entry of the label.
    edges : tuple of (int, int)
    broadcasts : int
        Most exchanges of models.
    constant : float
        What a person's vector has beside the explaining entries; 0 without.
    length : float
        L, the longest vector of a person with the constant.
    radius : float
        R, the largest norm of a model.
    penalty : float
        Least curvature that neighbours add.
    entries : int
        Numbers of a model.

    Raises
    ------
    StudyError
        If target or graph don't fit the study, or the costs are too flat or steep to be solved.
    """

    def __init__(self, parameters: AdmmParameters, shape: Shape) -> None:
        self.parameters, self.shape = parameters, shape
        self.target = _target(parameters, shape)
        self.edges: tuple[Edge, ...] = study_edges(
            len(shape.units), shape.sites, parameters.graph, parameters.edges
        )
        self.broadcasts = parameters.broadcasts or parameters.rounds
        self.constant = parameters.constant * parameters.bound
        self.length = math.hypot(parameters.bound, self.constant)
        self.radius = parameters.radius / parameters.bound
        self.trust = parameters.trust * self.radius
        self.entries = shape.features - (self.constant == 0)
        squared = self.length * self.length  # may be infinite, where ** would raise
        self.penalty = (parameters.penalty or self._balanced_penalty) * squared
        longest = [self.radius] if parameters.broadcasts is None else [self.radius, self.trust]
        if not all(solvable(self.length, self.curvature, each) for each in longest):
            raise StudyError(
                "field 'analysis.penalty': local costs this flat or steep can't be solved to the "
                "precision that is charged; choose a value nearer to the default, or of bound, "
                "radius and trust."
            )

    @property
    def _balanced_penalty(self) -> float:
        """Penalty, over L², at which the noise moves log odds by about one.

        Models go about rounds/Λ times the gradient, and their mean over sites gathers noise of
        2 L rounds/(Λ μ n) √S in each entry, μ being the whole budget. Rounded, since a site whose
        processor gets another last digit of μ would refuse the centre's queries.
        """
        units = self.shape.units
        noise = 2 * self.shape.noise * math.sqrt(len(units)) / sum(units)
        return float(f"{min(_STIFFEST, self.broadcasts * max(_FLATTEST, noise)):.3g}")

    @property
    def curvature(self) -> float:
        """Λ, the least of all sites."""
        return self.parameters.regularization + self.penalty

    @property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Each site's neighbours."""
        return neighbours(self.edges, len(self.shape.units))

    @property
    def arguments(self) -> dict[str, Argument]:
        """What is the same in all queries; η makes 2 η d_i / ω_i at least the penalty."""
        units = self.shape.units
        weights = np.array(units) * len(units) / sum(units)
        degrees = np.array([len(beside) for beside in self.neighbours])
        return {
            "target": self.target,
            "reach": float(self.parameters.bound),
            "constant": float(self.constant),
            "penalty": self.penalty / 2 * float((weights / degrees).max()),
            "regularization": float(self.parameters.regularization),
            "weights": weights,
            "edges": np.array(self.edges, dtype=np.float64),
        }


def _target(parameters: AdmmParameters, shape: Shape) -> int:
    found = shape.single_entry(parameters.target, "analysis.target", "name a column of two levels")
    if not 2 <= shape.features <= _MOST_FEATURES:
        raise StudyError(
            f"field 'features': the views have {shape.features} entries where ADMM takes 2 to "
            f"{_MOST_FEATURES}; add a view, or use fewer or coarser ones."
        )
    return found
