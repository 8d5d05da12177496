"""The releases of a PCA.

One second moment; or a number of products that balances their noise; or the directions that
participants share, and a small moment within them. Most of the noise in a whole moment does not
affect a brain's maps: it is in directions that are not smooth.
"""

import math
from dataclasses import replace
from functools import cached_property

from consortium.algorithms.base import (
    MOST_ENTRIES,
    MOST_MOMENT_FEATURES,
    AnalysisPlan,
    Array,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.pca.kernels.power_plan import expected_energies
from consortium.algorithms.pca.parameters import PcaParameters, Solver
from consortium.algorithms.subspace import Directions, ProjectorPlan
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound, Unit

MOST_ITERATIONS = 8
NEAR = 0.005
"""More products are not asked for if they are expected to add less than this part of the energy."""
DEFAULT_BOUND: dict[Unit, float] = {"subject": 0.3, "timepoint": 1.0}
"""Bound of a participant's variances in few directions: with trace 1 their norm is about 0.3."""
_MOMENT_BOUND: dict[Unit, float] = {"subject": 0.5, "timepoint": 2.0}
DIRECTIONS_SHARE = 0.9
"""Solver subspace: d(d+1)/2 numbers for the directions, and K(K+1)/2 for variances in them."""
_MOST_DIRECTIONS = 100


class PcaPlan(AnalysisPlan[PcaParameters]):
    """Public quantities of every site and the centre before the first round.

    Attributes
    ----------
    solver : {'moment', 'power', 'subspace'}
        The study's, or the default for the number of features.
    """

    def __init__(self, parameters: PcaParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        usual: Solver = "moment" if shape.features <= MOST_MOMENT_FEATURES else "power"
        self.solver = parameters.solver or usual

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """One release with the whole budget, or one for each iteration.

        Raises StudyError if the data have fewer components, or the solver is not for them.
        """
        size = self.parameters.components
        features = self.shape.features
        if size > features:
            raise StudyError(
                f"field 'analysis.components': {size} components can't be had "
                f"from {features} features; ask for fewer or refine the resolution."
            )
        if self.solver == "subspace":
            return self._directions()
        if self.solver == "power":
            return (self._products(),)
        if features > MOST_MOMENT_FEATURES:
            raise StudyError(
                f"The solver moment requires at most {MOST_MOMENT_FEATURES} features, got "
                f"{features}. Choose the solver power, or a coarser resolution."
            )
        bound = Bound(self.norm, cone=True)
        return (
            PlannedRelease(
                stage="pca",
                statistic="second_moment",
                entries=packed_size(features),
                bound=bound,
                rounds=1,
                share=1.0,
            ),
        )

    @property
    def norm(self) -> float:
        """Clipping bound of a unit's moment, or of its products or variances in few directions."""
        usual = _MOMENT_BOUND if self.solver == "moment" else DEFAULT_BOUND
        return self.parameters.bound or usual[self.shape.unit]

    @cached_property
    def iterations(self) -> int:
        """Number of products of the solver power, planned unless the study states it.

        More products rotate the basis further towards the leading directions, but each is noisier,
        since they share one budget. The result is forecast for a brain's spectrum (see
        `kernels.power_plan`). The smallest number that is nearly the best is used.
        """
        if self.parameters.iterations:
            return self.parameters.iterations
        features = self.shape.features
        size = self.parameters.components
        deviation = self.shape.noise * Bound(self.norm).spread / sum(self.shape.units)
        # Never more than without noise: keys of rounds are made before sizes are known.
        return min(
            _fewest(expected_energies(features, size, each, MOST_ITERATIONS))
            for each in (deviation, 0.0)
        )

    @cached_property
    def projectors(self) -> ProjectorPlan:
        """What solver subspace begins with, of the data with the noise that this release has."""
        noise = self.shape.noise / math.sqrt(DIRECTIONS_SHARE)
        asked = Directions(self.parameters.components, "analysis.components")
        return ProjectorPlan(asked, replace(self.shape, noise=noise))

    @property
    def computed(self) -> dict[str, Array | float]:
        """Of solver subspace, the cut-off."""
        return self.projectors.computed if self.solver == "subspace" else {}

    def _products(self) -> PlannedRelease:
        features = self.shape.features
        size = self.parameters.components
        if features * size > MOST_ENTRIES:
            raise StudyError(
                f"field 'analysis.components': {size} components of {features} features are more "
                f"than {MOST_ENTRIES:,} numbers a round; ask for fewer or a coarser resolution."
            )
        what = ("pca", "power", features * size, Bound(self.norm), self.iterations, 1.0)
        return PlannedRelease(*what, {"basis": (features, size)})

    def _directions(self) -> tuple[PlannedRelease, PlannedRelease]:
        """Return the release of directions, and that of variances along them."""
        size = self.parameters.components
        if self.shape.unit != "subject":
            raise StudyError(
                "field 'privacy.unit': the solver subspace requires unit subject, got "
                f"{self.shape.unit}. Set unit: subject, or choose the solver moment."
            )
        if size > _MOST_DIRECTIONS:
            raise StudyError(
                f"field 'analysis.components': {size} are more than the {_MOST_DIRECTIONS} "
                "directions of a participant that solver subspace takes; ask for fewer, or choose "
                "moment."
            )
        bound = Bound(self.norm, cone=True)
        share = 1.0 - DIRECTIONS_SHARE
        what = ("variances", "variances", packed_size(size), bound, 1, share)
        return (
            replace(self.projectors.release, stage="pca", share=DIRECTIONS_SHARE),
            PlannedRelease(*what, {"basis": (self.shape.features, size)}),
        )


def _fewest(energies: tuple[float, ...]) -> int:
    return 1 + next(i for i, each in enumerate(energies) if each >= (1.0 - NEAR) * max(energies))
