"""Public numbers of ADMM, which follow from parameters and the sites' sizes, and its releases."""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np

from consortium.algorithms.admm.graph import Edge, neighbours, study_edges
from consortium.algorithms.admm.parameters import AdmmParameters
from consortium.algorithms.base import AnalysisPlan, Array, PlannedRelease, Shape
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound

_MOST_FEATURES = 2_000
_FLATTEST = 2e-4  # a round; below, steps are long enough for any data
_STIFFEST = 1e3
PRECISION = 1e-3
"""β over L/n: precision of the solver, which is charged."""
STEEPEST = 1e5  # L²/Λ and ΛR/L, beyond which double precision would not reach β
_SUREST = 1e6  # LR: log odds beyond which rounding moves a gradient by about β
LARGEST = 1e100
"""Of numbers whose squares and quotients don't overflow."""


def model_influence(length: float, curvature: float, radius: float) -> float:
    """Return the nominal participants times the most that one of them moves the minimizer."""
    slope = 1 / (1 + math.exp(-length * radius))
    return 2 * length * (slope + PRECISION) / curvature


def gain_influence(length: float, trust: float) -> float:
    """Return the nominal participants times the most that one of them moves the gain."""
    return length * trust * (2 + 4 * PRECISION)


def solvable(length: float, curvature: float, radius: float) -> bool:
    """Return whether double precision is enough for the charged precision."""
    if not all(1 / LARGEST <= size <= LARGEST for size in (length, curvature, radius)):
        return False
    steep = length * (length / curvature)
    flat = curvature * radius / length
    return max(steep, flat) <= STEEPEST and length * radius <= _SUREST


class AdmmPlan(AnalysisPlan[AdmmParameters]):
    """Public quantities of every site and the centre before the first round.

    Raises StudyError if target or graph don't fit the study, or the costs are too flat or steep to
    be solved.

    Attributes
    ----------
    target : int
        Entry of the label.
    edges : tuple of (int, int)
    broadcasts : int
        Maximum number of exchanges of models.
    constant : float
        Constant entry of a participant's vector next to the explanatory ones; 0 without.
    length : float
        L, the longest vector of a participant with the constant.
    radius : float
        R, the largest norm of a model.
    penalty : float
        Least curvature that neighbours add.
    entries : int
        Numbers of a model.
    agreed : int
        Number of the first entries on which all sites agree. The rest is each site's own.
    divisors : tuple of int
        Nominal participants of each site, by which the sum of its participants' losses is divided.
    """

    def __init__(self, parameters: AdmmParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        self.target = _target(parameters, shape)
        self.divisors = shape.subjects
        self.edges: tuple[Edge, ...] = study_edges(
            len(shape.units), shape.sites, parameters.graph or "ring", parameters.edges
        )
        self.broadcasts = parameters.broadcasts or parameters.rounds
        self.constant = parameters.constant * parameters.bound
        self.length = math.hypot(parameters.bound, self.constant)
        self.radius = parameters.radius / parameters.bound
        self.trust = parameters.trust * self.radius
        self.entries = shape.features - (self.constant == 0)
        self.agreed = shape.features - 1 if parameters.site_constants else self.entries
        squared = self.length * self.length  # may be infinite, where ** would raise
        self.penalty = (parameters.penalty or self._balanced_penalty) * squared
        longest = [self.radius] if parameters.broadcasts is None else [self.radius, self.trust]
        extremes = (self.curvature, float(self.curvatures.max()))
        if not all(solvable(self.length, c, each) for c in extremes for each in longest):
            raise StudyError(
                "field 'analysis.penalty': local costs this flat or steep can't be solved to the "
                "precision that is charged; choose a value nearer to the default, or of bound, "
                "radius and trust."
            )

    def dividing_by(self, divisors: Sequence[int]) -> Self:
        """Return the same plan for forecasts in which fewer participants represent all."""
        found = copy(self)
        found.divisors = tuple(divisors)
        return found

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Equal broadcasts with the whole budget, or with the rest after the tests."""
        parameters = self.parameters
        forms: dict[str, tuple[int, ...]] = {"held": (self.broadcasts,)}
        influence = model_influence(self.length, self.curvature, self.radius)
        model = PlannedRelease(
            stage="broadcast",
            statistic="admm_model",
            entries=self.entries,
            bound=Bound(self.radius, influence=influence),
            rounds=self.broadcasts,
            share=1.0 if parameters.broadcasts is None else 1.0 - parameters.tests,
            arguments=forms,
            released="each",
            neighbours=self.neighbours,
        )
        if parameters.broadcasts is None:
            return (model,)
        influence = gain_influence(self.length, self.trust)
        bound = Bound(2 * self.length * self.trust, influence=influence)
        what = ("gain", "admm_gain", 1, bound, parameters.rounds - 1, parameters.tests)
        return model, PlannedRelease(*what, forms, neighbours=self.neighbours)

    @property
    def _balanced_penalty(self) -> float:
        """Penalty, over L², at which the noise moves log odds by about one.

        Models go about rounds/Λ times the gradient, and their mean over sites gathers noise of
        2 L rounds/(Λ μ n) √S in each entry, μ being the whole budget. It is rounded, because
        processors may differ in the last digit of μ.
        """
        units = self.shape.units
        noise = 2 * self.shape.noise * math.sqrt(len(units)) / sum(units)
        return float(f"{min(_STIFFEST, self.broadcasts * max(_FLATTEST, noise)):.3g}")

    @property
    def computed(self) -> Mapping[str, float]:
        """Quantities that follow from the noise, which is solved for."""
        return {"penalty": self.penalty}

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Each site's neighbours."""
        return neighbours(self.edges, len(self.shape.units))

    @cached_property
    def stiffness(self) -> Array:
        """η/ω_i of each site; η makes 2 η d_i / ω_i at least the penalty."""
        weights = np.array(self.shape.units) * len(self.shape.units) / sum(self.shape.units)
        return np.asarray(self.penalty / 2 * (weights / self._degrees).max() / weights)

    @cached_property
    def curvatures(self) -> Array:
        """Λ_i of each site."""
        return np.asarray(self.parameters.regularization + 2 * self.stiffness * self._degrees)

    @property
    def curvature(self) -> float:
        """Λ, the least of all sites."""
        return float(self.curvatures.min())

    @property
    def _degrees(self) -> Array:
        return np.array([len(beside) for beside in self.neighbours])


def _target(parameters: AdmmParameters, shape: Shape) -> int:
    found = shape.single_entry(parameters.target, "analysis.target", "name a column of two levels")
    if not 2 <= shape.features <= _MOST_FEATURES:
        raise StudyError(
            f"field 'features': the views have {shape.features} entries where ADMM takes 2 to "
            f"{_MOST_FEATURES}; add a view, or use fewer or coarser ones."
        )
    return found
