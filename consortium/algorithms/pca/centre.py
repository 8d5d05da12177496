"""capePCA: the principal subspace of all sites' data.

Source: dissertation Algorithm 4.1, corrected. Three solvers: ``moment`` releases one private second
moment; ``power`` releases its products with a few columns, and is for more features than a matrix
of all their pairs can have; ``subspace`` releases the directions that participants share, and a
small moment within them. Most of the noise in a whole moment does not affect a brain's maps: it is
in directions that are not smooth. The number of products balances their noise. The moment is
released in coordinates that preserve its norm (half the matrix). So noise is drawn only on free
coordinates, and replacing one unit moves it by √2·B/n, not B/n. Volumes or subjects are clipped to
a public bound, not scaled by the data's own maximum.
"""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from consortium.algorithms.base import (
    MOST_ENTRIES,
    MOST_MOMENT_FEATURES,
    AnalysisPlan,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Run,
    Shape,
    Table,
)
from consortium.algorithms.pca.kernels.power_plan import expected_energies, expected_strengths
from consortium.algorithms.pca.parameters import PcaParameters, Solver
from consortium.algorithms.pca.result import (
    axes_within,
    power_subspace,
    shared_directions,
    subspace,
)
from consortium.algorithms.pca.site import power_product, second_moment, variances_within
from consortium.algorithms.subspace import Directions, ProjectorPlan, mean_projector
from consortium.algorithms.subspace_forecast import expect as expect_directions
from consortium.algorithms.subspace_forecast import sentences
from consortium.algorithms.worth import would_be_enough
from consortium.base.array import Array
from consortium.base.formatting import count
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.power import eigenpairs, orthonormal, start_basis
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

_LITTLE = 0.5
"""Fraction of the energy below which more than half of the result is noise."""
_NAME = "part of the leading directions' energy"


class Pca(AnalysisPlan[PcaParameters]):
    """Plan of `pca`: one release of D(D+1)/2 numbers, a few of D K, or d(d+1)/2 and a small one.

    Attributes
    ----------
    solver : {'moment', 'power', 'subspace'}
        The study's, or the default for the number of features.
    """

    name = "pca"
    title = "capePCA"
    takes = "any"
    needs_means = False
    Parameters = PcaParameters
    statistics = {
        "second_moment": second_moment,
        "power": power_product,
        "projectors": mean_projector,
        "variances": variances_within,
    }
    cases = (
        Case({"components": 2}),
        Case({"components": 6, "bound": 0.7}, "timepoint"),
        Case({"components": 2, "solver": "power"}),
        Case({"components": 6, "solver": "power", "iterations": 2, "bound": 0.4}, "timepoint"),
        Case({"components": 2, "solver": "subspace"}),
        Case({"components": 2, "solver": "subspace"}, mesh=True),
        Case({"components": 2, "solver": "subspace"}, voxels=True),
    )

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
                "field 'analysis.components': must be at most the number of features, "
                f"{features}, got {size}. Lower it, or use a finer resolution."
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
                f"field 'analysis.components': a round must have at most {MOST_ENTRIES:,} "
                f"numbers, got {size} components of {features} features. Lower it, or use a "
                "coarser resolution."
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
                "field 'analysis.components': the solver subspace requires at most "
                f"{_MOST_DIRECTIONS}, the number of a participant's directions, got {size}. Lower "
                "it, or choose the solver moment."
            )
        bound = Bound(self.norm, cone=True)
        share = 1.0 - DIRECTIONS_SHARE
        what = ("variances", "variances", packed_size(size), bound, 1, share)
        return (
            replace(self.projectors.release, stage="pca", share=DIRECTIONS_SHARE),
            PlannedRelease(*what, {"basis": (self.shape.features, size)}),
        )

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the energy of released over leading directions, for a brain's spectrum.

        For a second moment, the agreement of each direction with the truth follows from the planned
        noise and the strength of its eigenvector. Solver subspace has the forecast of group ICA.
        """
        if self.solver == "subspace":
            return expect_directions(self.projectors)
        (planned,) = self.releases
        shape = self.shape
        size = self.parameters.components
        deviation = planned.round_deviation(shape)
        noise = Expectation("noise in a released number", deviation, rises=False)
        if self.solver == "power":
            once = replace(planned, rounds=1).round_deviation(shape)
            energy = expected_energies(shape.features, size, once, self.iterations)[-1]
            return Expectation(_NAME, energy), noise
        strengths = expected_strengths(shape.features, size)
        overlaps = np.nan_to_num(SymmetricNoise(shape.features, deviation).overlaps(strengths))
        share = float(overlaps @ strengths / strengths.sum())
        return Expectation(_NAME, max(share, size / shape.features)), noise

    def foretell(self) -> Table:
        """Return the forecast of the leading directions."""
        rows = tuple((line,) for line in self._sentences())
        return Table("What this study will see", ("forecast",), rows)

    def _sentences(self) -> tuple[str, ...]:
        if self.solver == "subspace":
            return sentences(self.projectors)
        energy = self.expect()[0].value
        shown = []
        shown.append(
            f"If variances fall as in usual resting data (as 1 over their number), the "
            f"{count(self.parameters.components, 'component')} have about {energy:.2f} of the "
            "energy of the true ones."
        )
        if energy < _LITTLE:
            enough = would_be_enough(
                self.shape,
                lambda less: type(self)(self.parameters, less).expect()[0].value >= _LITTLE,
            )
            shown.append(
                f"Warning: most of the result would be noise. {enough}. Fewer components or "
                "features would also help."
            )
        if self.solver == "power":
            shown.append(_of_products(self.iterations))
        return tuple(shown)

    def run(self) -> Run:
        """Ask for the second moment or its products, and return the leading eigenpairs."""
        if self.solver == "subspace":
            return (yield from self._directions_first())
        if self.solver == "power":
            return (yield from self._iterated())
        release = yield Query("pca", "second_moment")
        samples = sum(self.estimated_shape(release).samples)
        return subspace(release, self.parameters.components, samples)

    def _iterated(self) -> Run:
        """Iterate from a public random basis; the last product gives the eigenpairs.

        The first product's random columns estimate the total variance: E tr(Qᵀ A Q) = K/D tr A.
        """
        features = self.shape.features
        components = self.parameters.components
        total = math.nan
        before = None
        basis = start_basis(features, components, self.parameters.seed)
        for left in reversed(range(self.iterations)):
            release = yield Query("pca", "power", {"basis": basis})
            product = release.values.reshape(features, components)
            if math.isnan(total):
                total = features / components * float(np.sum(basis * product))
            if left:
                before = eigenpairs(product, release.deviation)[0]
                basis = orthonormal(product)
        samples = sum(self.estimated_shape(release).samples)
        return power_subspace(product, release, before, total, samples)

    def _directions_first(self) -> Run:
        """Ask for the directions, and for the variances along the leading ones."""
        size = self.parameters.components
        waves = self.projectors.waves
        release = yield Query("pca", "projectors")
        persons = sum(self.estimated_shape(release).units)
        weights, seen, limit = shared_directions(release, size, persons)
        basis = weights if waves is None else waves.times(weights)
        released = yield Query("variances", "variances", {"basis": basis})
        return axes_within(basis, released, seen, limit)


def _fewest(energies: tuple[float, ...]) -> int:
    return 1 + next(i for i, each in enumerate(energies) if each >= (1.0 - NEAR) * max(energies))


def _of_products(rounds: int) -> str:
    if rounds == 1:
        return (
            "With one product no single component can be found, because its stability is unknown."
        )
    return f"The budget is shared by {rounds} products, each with columns that the last one led to."
