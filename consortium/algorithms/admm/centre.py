"""PP-ADMM and IPP-ADMM: a classifier that sites agree on with their neighbours, without a centre.

Source: Ding, Wang, Liang, Bi and Pan (2020), Algorithms 1 and 2, with an accounting that is exact.
The paper perturbs the local cost and its approximate minimizer. Here only the minimizer has
Gaussian noise, for the sensitivity that `site` proves. In every round each site sends its noisy
model to its neighbours and computes its next one from theirs. This half only counts the rounds. A
site uses only public parameters of it. So a wrong one reduces accuracy, but never privacy.

With `broadcasts` (IPP), a round takes place only if the sites gain enough from it: before it they
release, as one noisy mean over all, by how much the local costs could fall. If it is too little,
the models stay and the duals are updated, as in Algorithm 2. Every such test is charged.

Forecast of the accuracy of the neighbours' model, from an assumed effect.

Assumptions: both labels are equally frequent in all hospitals. Entries are normal with equal
variances and use half of the bound's square. The best rule has the accuracy that the study assumes.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Self

import numpy as np

from consortium.algorithms.admm.graph import Edge, neighbours, study_edges
from consortium.algorithms.admm.parameters import AdmmParameters
from consortium.algorithms.admm.result import admm_result, gathered_floor
from consortium.algorithms.admm.site import LARGEST, PRECISION, STEEPEST, local_gain, local_model
from consortium.algorithms.assumed_persons import (
    Classes,
    class_means,
    expected_accuracy,
    sizes_drawn,
)
from consortium.algorithms.base import (
    AnalysisPlan,
    Array,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Release,
    Run,
    Shape,
)
from consortium.algorithms.simulated_run import NO_EFFECT, train_on_assumed
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound

_MOST_FEATURES = 2_000
_FLATTEST = 2e-4  # a round; below, steps are long enough for any data
_STIFFEST = 1e3
_SUREST = 1e6  # LR: log odds beyond which rounding moves a gradient by about β


def model_influence(length: float, curvature: float, radius: float) -> float:
    """Return the nominal participants times the most that one of them moves a site's minimizer."""
    slope = 1 / (1 + math.exp(-length * radius))
    return 2 * length * (slope + PRECISION) / curvature


def gain_influence(length: float, trust: float) -> float:
    """Return the nominal participants times the most that one of them moves the gain."""
    return length * trust * (2 + 4 * PRECISION)


def solvable(length: float, curvature: float, radius: float) -> bool:
    """Return whether double precision is enough for the precision that `admm` charges."""
    if not all(1 / LARGEST <= size <= LARGEST for size in (length, curvature, radius)):
        return False
    steep = length * (length / curvature)
    flat = curvature * radius / length
    return max(steep, flat) <= STEEPEST and length * radius <= _SUREST


@dataclass
class _Course:
    """Earlier releases."""

    models: Array
    held: Array
    """How many iterations each broadcast's models stood."""
    history: list[Array] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    broadcasts: int = 0
    noise: float = 0.0

    def take(self, release: Release) -> None:
        """Put in a broadcast; who is missing keeps the model before."""
        self.models = self.models.copy()
        self.models[list(release.sites) or slice(None)] = release.values
        self.noise = release.deviation
        self.broadcasts += 1

    def stand(self) -> None:
        """End an iteration with the models as they are."""
        self.held[self.broadcasts - 1] += 1
        self.history.append(self.models)


class Admm(AnalysisPlan[AdmmParameters]):
    """Plan of `admm`: a release of every model in each round. IPP: fewer, a number before each.

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

    name = "admm"
    title = "ADMM among neighbours"
    takes = "features"
    needs_means = False
    Parameters = AdmmParameters
    statistics = {
        "admm_model": local_model,
        "admm_gain": local_gain,
    }
    cases = (
        Case(
            {"target": "y", "rounds": 3, "bound": 1.2, "regularization": 0.1, "penalty": 0.002},
            views=(("x", 4), ("y", 1)),
        ),
        Case(
            {"target": "y", "rounds": 4, "broadcasts": 3, "threshold": 0, "constant": 0},
            views=(("y", 1), ("x", 3)),
        ),
    )

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
                "field 'analysis.penalty': the sites' problems must be solvable to the precision "
                "that the privacy loss assumes, and are not: their costs are too flat or too "
                "steep. Choose a value of penalty, bound, radius or trust that is nearer to its "
                "default."
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
        return np.array([len(adjacent) for adjacent in self.neighbours])

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the accuracy on new participants for an assumed effect, and the threshold.

        The range is that of half of the draws. If there are too many participants to draw, fewer
        are drawn, which overstates the sampling error.
        """
        noise = self.releases[0].round_deviation(self.shape)
        floor = gathered_floor(self, self.broadcasts, noise)
        accuracy = () if self.parameters.detect is None else (_accuracy(self),)
        return *accuracy, Expectation("least coefficient that is found", floor, rises=False)

    def withheld(self) -> str:
        """Return why there is no forecast of the accuracy."""
        return "" if self.parameters.detect is not None else NO_EFFECT

    def run(self) -> Run:
        """Request models, round by round, and return the agreed model."""
        empty = np.zeros((len(self.shape.units), self.entries))
        course = _Course(empty, np.zeros(self.broadcasts))
        for iteration in range(self.parameters.rounds):
            if course.broadcasts == self.broadcasts:
                break
            worth = iteration == 0 or self.parameters.broadcasts is None
            if worth or (yield from _is_worth_it(self, course)):
                held = {"held": course.held.copy()}
                course.take((yield Query("broadcast", "admm_model", held)))
            course.stand()
        return admm_result(self, course.history, course.gains, course.noise)


def _target(parameters: AdmmParameters, shape: Shape) -> int:
    found = shape.single_entry(parameters.target, "analysis.target", "name a column of two levels")
    if not 2 <= shape.features <= _MOST_FEATURES:
        raise StudyError(
            f"field 'features': all views together must have 2 to {_MOST_FEATURES} entries, got "
            f"{shape.features}. Add a view, or use fewer or coarser views."
        )
    return found


def _is_worth_it(plan: Admm, course: _Course) -> Generator[Query, Release, bool]:
    """Request the gain of a broadcast, as a fraction of its maximum."""
    release = yield Query("gain", "admm_gain", {"held": course.held.copy()})
    course.gains.append(float(release.values[0]) / (plan.length * plan.trust))
    return course.gains[-1] >= plan.parameters.threshold


FILLED = 0.5
"""Assumed fraction of the bound's square that a participant's entries use."""


def assumed_labels(plan: Admm, generator: np.random.Generator) -> Classes:
    """Draw participants with labels as a study of `admm` assumes them, for its forecast."""
    entries = plan.shape.features - 1
    means = class_means(float(plan.parameters.detect or 0.5), 2, entries, generator)
    spread = plan.parameters.bound * math.sqrt(FILLED / entries)
    return Classes(means, np.full(entries, spread))


def with_label(plan: Admm, entries: Array, kinds: Array) -> Array:
    """Return a site's table of participants with the label in its place, for `admm`'s forecast."""
    return np.insert(entries, plan.target, np.where(kinds > 0, 1.0, -1.0), axis=0)


def _accuracy(plan: Admm) -> Expectation:
    sizes = sizes_drawn(plan.shape, plan.entries, plan.broadcasts)
    law = partial(assumed_labels, plan)
    table = partial(with_label, plan)
    return expected_accuracy(
        [
            share_classified(result.arrays, plan.target, entries, kinds)
            for result, entries, kinds in train_on_assumed(
                plan.dividing_by(sizes), sizes, law, table
            )
        ]
    )


def share_classified(
    arrays: Mapping[str, Array], target: int, entries: Array, kinds: Array
) -> float:
    """Return the share of participants whose label the sites' mean model of `admm` predicts."""
    weights = np.delete(arrays["coefficients"][:, 0], target)
    odds = weights @ entries + float(np.sum(arrays["intercept"]))
    return float(np.mean((odds > 0) == (kinds > 0)))
