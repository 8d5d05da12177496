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

Assumptions: both labels are equally frequent in all hospitals; entries are normal with equal
variances and use half of the bound's square; the best rule has the accuracy that the study assumes.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from consortium.algorithms.admm.parameters import AdmmParameters
from consortium.algorithms.admm.plan import AdmmPlan
from consortium.algorithms.admm.result import admm_result, gathered_floor
from consortium.algorithms.admm.site import local_gain, local_model
from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.assumed_persons import (
    Classes,
    class_means,
    expected_accuracy,
    sizes_drawn,
)
from consortium.algorithms.base import (
    Array,
    Case,
    Expectation,
    Local,
    Query,
    Release,
    Run,
)
from consortium.algorithms.simulated_run import NO_EFFECT, train_on_assumed


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


class Admm(AdmmPlan):
    """As many releases of each site's model as rounds; IPP: fewer, with one number before each."""

    name = "admm"
    title = "ADMM among neighbours"
    takes = "features"
    needs_means = False
    Parameters = AdmmParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "admm_model": local_model,
        "admm_gain": local_gain,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case(
            {"target": "y", "rounds": 3, "bound": 1.2, "regularization": 0.1, "penalty": 0.002},
            views=(("x", 4), ("y", 1)),
        ),
        Case(
            {"target": "y", "rounds": 4, "broadcasts": 3, "threshold": 0, "constant": 0},
            views=(("y", 1), ("x", 3)),
        ),
    )

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the accuracy on new participants for an assumed effect, and the threshold.

        The range is that of half of the draws. If there are too many participants to draw, fewer
        are drawn, which overstates the sampling error.
        """
        noise = round_deviation(self.releases[0], self.shape)
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


def _is_worth_it(plan: AdmmPlan, course: _Course) -> Generator[Query, Release, bool]:
    """Request the gain of a broadcast, as a fraction of its maximum."""
    release = yield Query("gain", "admm_gain", {"held": course.held.copy()})
    course.gains.append(float(release.values[0]) / (plan.length * plan.trust))
    return course.gains[-1] >= plan.parameters.threshold


FILLED = 0.5
"""Assumed fraction of the bound's square that a participant's entries use."""


def assumed_labels(plan: AdmmPlan, generator: np.random.Generator) -> Classes:
    """Draw participants as the study assumes them."""
    entries = plan.shape.features - 1
    means = class_means(float(plan.parameters.detect or 0.5), 2, entries, generator)
    spread = plan.parameters.bound * math.sqrt(FILLED / entries)
    return Classes(means, np.full(entries, spread))


def with_label(plan: AdmmPlan, entries: Array, kinds: Array) -> Array:
    """Return a site's table, with the label in its place."""
    return np.insert(entries, plan.target, np.where(kinds > 0, 1.0, -1.0), axis=0)


def _accuracy(plan: AdmmPlan) -> Expectation:
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
    """Share of participants whose label the sites' mean model predicts."""
    weights = np.delete(arrays["coefficients"][:, 0], target)
    odds = weights @ entries + float(np.sum(arrays["intercept"]))
    return float(np.mean((odds > 0) == (kinds > 0)))
