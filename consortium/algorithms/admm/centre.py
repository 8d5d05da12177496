"""PP-ADMM and IPP-ADMM: a classifier that sites agree on with their neighbours, without a centre.

Source: Ding, Wang, Liang, Bi and Pan (2020), Algorithms 1 and 2, with an accounting that is exact.
The paper perturbs the local cost and its approximate minimizer; here the minimizer alone carries
Gaussian noise, for the sensitivity that `site` proves. In every round each site tells its
neighbours its noisy model and works out its next one from what they told it. This half only counts
the rounds; nothing that a site computes with comes from it but public parameters, so that a wrong
one costs accuracy and never privacy.

With `broadcasts` (IPP), a round is held only if the sites gain enough from it: before it they
release, as one noisy mean over all, by how much the local costs could fall. Where it is too little,
the models stay and the duals move on, as in Algorithm 2. Every such test is paid for.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from consortium.algorithms.admm.forecast import expect
from consortium.algorithms.admm.parameters import AdmmParameters
from consortium.algorithms.admm.plan import AdmmPlan
from consortium.algorithms.admm.result import admm_result
from consortium.algorithms.admm.site import local_gain, local_model
from consortium.algorithms.assumed_persons import NO_EFFECT
from consortium.algorithms.base import (
    Array,
    Case,
    Expectation,
    Local,
    Query,
    Release,
    Run,
)


@dataclass
class _Course:
    """What was released so far."""

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
        self.noise, self.broadcasts = release.deviation, self.broadcasts + 1

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
        """Accuracy, where an effect is assumed, and what a coefficient must pass."""
        return expect(self)

    def withheld(self) -> str:
        """Why no accuracy is foretold."""
        return "" if self.parameters.detect is not None else NO_EFFECT

    def run(self) -> Run:
        """Ask for models, round by round, and tell what the sites agreed on."""
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
    """Ask what a broadcast would bring, as part of the most that it could."""
    release = yield Query("gain", "admm_gain", {"held": course.held.copy()})
    course.gains.append(float(release.values[0]) / (plan.length * plan.trust))
    return course.gains[-1] >= plan.parameters.threshold
