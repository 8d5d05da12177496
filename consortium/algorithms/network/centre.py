"""A classifier network that all sites train together, round by round.

Source: dissertation section 3.4. Each participant's gradient is clipped to a public norm over all
layers together (Abadi et al. 2016), all participants take part in every round, and the centre
descends along the noisy mean with momentum. Replacing a participant moves the mean by 2 B / n. The
result is the mean of the last rounds' parameters, in which their noise averages out without further
privacy loss.
"""

import math

import numpy as np

from consortium.algorithms.base import (
    MOST_ENTRIES_A_ROUND,
    AnalysisPlan,
    Array,
    Case,
    PlannedRelease,
    Query,
    Run,
    Shape,
)
from consortium.algorithms.network.forecast import expect, why_withheld
from consortium.algorithms.network.kernels.classifier import (
    initial_parameters,
    layers,
    parameter_count,
)
from consortium.algorithms.network.parameters import NetworkParameters
from consortium.algorithms.network.result import measured_accuracy, network_result
from consortium.algorithms.network.site import accuracy_counts, mean_gradient
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound

_MOST_NOISE = 0.5
"""Norm of a round's noise over the clipping bound, with inputs for sites: beyond, there are none.

At a third the networks were as good with them as without, at 1.1 worse by four points."""

KNOWN_SITES = (
    "Each participant's site is an input of the network, and the learned differences of sites "
    "become public."
)
UNKNOWN_SITES = (
    "A participant's site is not an input of the network, which may learn differences between "
    "scanners from the entries. The accuracy is compared with prediction by only the site."
)


class NeuralNetwork(AnalysisPlan[NetworkParameters]):
    """Plan of `network`: a release of all weights and biases by round, and one of accuracy.

    Raises StudyError if target or units don't fit the study.
    """

    name = "network"
    title = "jointly trained network"
    takes = "features"
    needs_means = False
    Parameters = NetworkParameters
    statistics = {
        "network_gradient": mean_gradient,
        "network_accuracy": accuracy_counts,
    }
    cases = (
        Case({"target": "y", "hidden": [3], "rounds": 3, "bound": 0.3}, views=(("x", 4), ("y", 1))),
        Case(
            {"target": "kind", "hidden": [3, 2], "rounds": 2, "site_constants": True},
            views=(("kind", 3), ("x", 4)),
        ),
    )

    expect = expect
    withheld = why_withheld

    def __init__(self, parameters: NetworkParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if self.classes >= self.shape.features:
            raise StudyError(
                "field 'features': at least one entry besides the target is required, and there "
                "is none. Add a view."
            )
        if any(units < 1 for units in self.parameters.hidden):
            raise StudyError(
                "field 'analysis.hidden': each layer must have at least one unit, got "
                f"{min(self.parameters.hidden)}. Raise it."
            )
        if self.count > MOST_ENTRIES_A_ROUND:
            raise StudyError(
                f"field 'analysis.hidden': the network must have at most {MOST_ENTRIES_A_ROUND:,} "
                f"parameters, got {self.count:,}. Use fewer units."
            )

    @property
    def target(self) -> slice:
        """Entries of the target."""
        return self.shape.view_slice(self.parameters.target, "analysis.target")

    @property
    def classes(self) -> int:
        """Entries of the target: 1 for two classes."""
        return int(self.target.stop - self.target.start)

    @property
    def judging(self) -> float:
        """Part of the budget that the accuracy takes."""
        return self.parameters.judging if self.parameters.held_out else 0.0

    @property
    def places(self) -> int:
        """S, number of inputs for a participant's site; 0 for none."""
        asked = self.parameters.site_constants
        sites = len(self.shape.units)
        if sites < 2:
            return 0
        if asked is not None:
            return sites if asked else 0
        return sites if self._noise(sites) <= _MOST_NOISE else 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of all layers, inputs first."""
        return self._sizes(self.places)

    @property
    def count(self) -> int:
        """Parameters."""
        return parameter_count(self.sizes)

    @property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Equal rounds, and the accuracy of their final parameters."""
        forms: dict[str, tuple[int, ...]] = {"parameters": (self.count,)}
        bound = Bound(self.parameters.bound)
        rounds = self.parameters.rounds
        share = self.judging
        training = PlannedRelease(
            stage="network",
            statistic="network_gradient",
            entries=self.count,
            bound=bound,
            rounds=rounds,
            share=1.0 - share,
            arguments=forms,
        )
        if not share:
            return (training,)
        once = Bound(math.sqrt(2.0), influence=math.sqrt(2.0))
        return (
            training,
            PlannedRelease(
                stage="accuracy",
                statistic="network_accuracy",
                entries=3,
                bound=once,
                rounds=1,
                share=share,
                arguments=forms,
            ),
        )

    def start(self) -> Array:
        """Return public first weights, with zeros for the sites."""
        first = initial_parameters(self.sizes, self.parameters.seed)
        if self.places:
            layers(first, self.sizes)[0][:, -self.places :] = 0.0
        return first

    def _sizes(self, places: int) -> tuple[int, ...]:
        inputs = self.shape.features - self.classes + places
        return (inputs, *self.parameters.hidden, self.classes)

    def _noise(self, places: int) -> float:
        """Return the norm of the noise in a round's mean gradient, over the clipping bound."""
        rounds = self.parameters.rounds / (1.0 - self.judging)
        noise = 2.0 * self.shape.noise * math.sqrt(rounds) / sum(self.shape.units)
        return noise * math.sqrt(parameter_count(self._sizes(places)))

    def remarks(self) -> tuple[str, ...]:
        """State whether the site is an input of the network."""
        if len(self.shape.units) < 2:
            return ()
        return (KNOWN_SITES,) if self.places else (UNKNOWN_SITES,)

    def run(self) -> Run:
        """Descend, and average the last parameters."""
        parameters = self.parameters
        current = self.start()
        step = np.zeros_like(current)
        total = np.zeros_like(current)
        last = max(1, round(parameters.averaged * parameters.rounds))
        norms = []
        for left in reversed(range(parameters.rounds)):
            release = yield Query("network", "network_gradient", {"parameters": current})
            norms.append(float(np.linalg.norm(release.values)))
            rate = _learning_rate(parameters, release.deviation, len(current))
            step = parameters.momentum * step - rate * release.values
            current = current + step
            total += current if left < last else 0.0
        noise = release.deviation * float(np.sqrt(len(current)))
        trained = total / last
        if not parameters.held_out:
            return network_result(self, trained, norms, noise)
        release = yield Query("accuracy", "network_accuracy", {"parameters": trained})
        persons = round(self.units_in(release).sum())
        accuracy = measured_accuracy(release, persons, parameters)
        return network_result(self, trained, norms, noise, accuracy)


def _learning_rate(parameters: NetworkParameters, deviation: float, count: int) -> float:
    """Step over the gradient: divided by √(1 + 4 ν²/B²), ν = σ √P the norm of a round's noise.

    The best step of stochastic descent falls as the whole gradient's root mean square grows. With
    twice ν over the bound it is within a point of the best accuracy from ν = 0 to B.
    """
    noise = deviation * float(np.sqrt(count))
    return parameters.learning_rate / float(np.hypot(1.0, 2.0 * noise / parameters.bound))
