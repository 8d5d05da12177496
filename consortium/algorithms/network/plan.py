"""The releases of a network's training: rounds of gradients, and an accuracy."""

import math

from consortium.algorithms.base import (
    MOST_ENTRIES_A_ROUND,
    AnalysisPlan,
    Array,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.network.kernels.classifier import (
    initial_parameters,
    layers,
    parameter_count,
)
from consortium.algorithms.network.parameters import NetworkParameters
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound

_MOST_NOISE = 0.5
"""Norm of a round's noise over the clipping bound, with inputs for sites: beyond, there are none.

At a third the networks were as good with them as without, at 1.1 worse by four points."""


class NetworkPlan(AnalysisPlan[NetworkParameters]):
    """Quantities that follow from parameters and public sizes.

    Raises StudyError if target or units don't fit the study.
    """

    def __init__(self, parameters: NetworkParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if self.classes >= self.shape.features:
            raise StudyError(
                "field 'features': no entry is left to predict the target; add a view."
            )
        if any(units < 1 for units in self.parameters.hidden):
            raise StudyError(
                "field 'analysis.hidden': a layer needs at least one unit; correct it."
            )
        if self.count > MOST_ENTRIES_A_ROUND:
            raise StudyError(
                f"field 'analysis.hidden': the network has {self.count:,} parameters, more than "
                f"{MOST_ENTRIES_A_ROUND:,}; use fewer units."
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
