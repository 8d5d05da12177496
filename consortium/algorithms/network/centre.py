"""A classifier network that all sites train together, round by round.

Source: dissertation section 3.4. Each participant's gradient is clipped to a public norm over all
layers together (Abadi et al. 2016), all participants take part in every round, and the centre
descends along the noisy mean with momentum. Replacing a participant moves the mean by 2 B / n. The
result is the mean of the last rounds' parameters, in which their noise averages out without further
privacy loss.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from consortium.algorithms.base import (
    Case,
    Local,
    Query,
    Run,
)
from consortium.algorithms.network.forecast import expect, why_withheld
from consortium.algorithms.network.parameters import NetworkParameters
from consortium.algorithms.network.plan import NetworkPlan
from consortium.algorithms.network.result import measured_accuracy, network_result
from consortium.algorithms.network.site import accuracy_counts, mean_gradient

KNOWN_SITES = (
    "Each participant's site is an input of the network, and the learned differences of sites "
    "become public."
)
UNKNOWN_SITES = (
    "A participant's site is not an input of the network, which may learn differences between "
    "scanners from the entries. The accuracy is compared with prediction by only the site."
)


class Network(NetworkPlan):
    """As many releases as rounds, of one number for each weight and bias, and one of accuracy."""

    name = "network"
    title = "jointly trained network"
    takes = "features"
    needs_means = False
    Parameters = NetworkParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "network_gradient": mean_gradient,
        "network_accuracy": accuracy_counts,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"target": "y", "hidden": [3], "rounds": 3, "bound": 0.3}, views=(("x", 4), ("y", 1))),
        Case(
            {"target": "kind", "hidden": [3, 2], "rounds": 2, "site_constants": True},
            views=(("kind", 3), ("x", 4)),
        ),
    )

    def remarks(self) -> tuple[str, ...]:
        """State whether the site is an input of the network."""
        if len(self.shape.units) < 2:
            return ()
        return (KNOWN_SITES,) if self.places else (UNKNOWN_SITES,)

    expect = expect
    withheld = why_withheld

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

    The best step of stochastic descent falls as the whole gradient's root mean square grows; with
    twice ν over the bound it is within a point of the best accuracy from ν = 0 to B.
    """
    noise = deviation * float(np.sqrt(count))
    return parameters.learning_rate / float(np.hypot(1.0, 2.0 * noise / parameters.bound))
