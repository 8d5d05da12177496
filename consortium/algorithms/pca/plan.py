"""What a PCA will release.

One second moment; or as many products as are worth their noise; or the directions that persons
share, and a small moment within them. Of most of the noise in a whole moment a brain's maps know
nothing: it lies in directions that are not smooth.
"""

import math
from dataclasses import replace

from consortium.algorithms.base import MOST_ENTRIES, MOST_MOMENT_FEATURES, PlannedRelease, Shape
from consortium.algorithms.pca.kernels.power_plan import expected_energies
from consortium.algorithms.pca.parameters import PcaParameters, Solver
from consortium.algorithms.subspace import Directions
from consortium.algorithms.subspace import plan_projectors as plan_projectors
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound, Unit

MOST_ITERATIONS = 8
NEAR = 0.005
"""More products are not asked for if they are expected to add less than this part of the energy."""
DEFAULT_BOUND: dict[Unit, float] = {"subject": 0.3, "timepoint": 1.0}
"""Of a unit's variances in few directions: a person's moment has trace 1, its norm is about 0.3."""
_MOMENT_BOUND = {"subject": 0.5, "timepoint": 2.0}
DIRECTIONS_SHARE = 0.9
"""Solver subspace: d(d+1)/2 numbers tell the directions, and K(K+1)/2 the variances in them."""
_MOST_DIRECTIONS = 100


def plan_releases(parameters: PcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
    """One release with the whole budget, or as many as there are iterations."""
    size, features = parameters.components, shape.features
    if size > features:
        raise StudyError(
            f"field 'analysis.components': {size} components can't be had "
            f"from {features} features; ask for fewer or refine the resolution."
        )
    solver = chosen_solver(parameters, shape)
    if solver == "subspace":
        return plan_subspace(parameters, shape)
    if solver == "power":
        norm = parameters.bound or DEFAULT_BOUND[shape.unit]
        return (plan_power(features, size, norm, planned_iterations(parameters, shape)),)
    if features > MOST_MOMENT_FEATURES:
        raise StudyError(
            f"field 'analysis.solver': the data have {features} features, and a second "
            f"moment is for {MOST_MOMENT_FEATURES} at most; choose power, or a coarser resolution."
        )
    bound = Bound(parameters.bound or _MOMENT_BOUND[shape.unit], cone=True)
    return (PlannedRelease("pca", "second_moment", packed_size(features), bound, 1, 1.0),)


def planned_iterations(parameters: PcaParameters, shape: Shape) -> int:
    """Products of the solver power."""
    bound = parameters.bound or DEFAULT_BOUND[shape.unit]
    return parameters.iterations or choose_iterations(shape, parameters.components, bound)


def chosen_solver(parameters: PcaParameters, shape: Shape) -> Solver:
    """The study's, or what fits the number of features."""
    return parameters.solver or ("moment" if shape.features <= MOST_MOMENT_FEATURES else "power")


def choose_iterations(shape: Shape, components: int, bound: float) -> int:
    """Number of products, planned against the budget.

    More products turn the basis further towards the leading directions, and each is noisier, as
    they share one budget. What comes of it is foretold for a spectrum like a brain's (see
    `kernels.power_plan`); the fewest products are taken that come near the best.

    Parameters
    ----------
    bound : float
        Of a product's norm.
    """
    deviation = shape.noise * Bound(bound).spread / sum(shape.units)
    energies = expected_energies(shape.features, components, deviation, MOST_ITERATIONS)
    quiet = expected_energies(shape.features, components, 0.0, MOST_ITERATIONS)
    # Never more than without noise: keys for so many rounds are made before sizes are known.
    return min(_fewest(energies), _fewest(quiet))


def _fewest(energies: tuple[float, ...]) -> int:
    return 1 + next(i for i, each in enumerate(energies) if each >= (1.0 - NEAR) * max(energies))


def plan_power(features: int, components: int, bound: float, iterations: int) -> PlannedRelease:
    """Equal releases with the whole budget, one for each iteration.

    Raises
    ------
    StudyError
        If a message would be too large.
    """
    entries = features * components
    if entries > MOST_ENTRIES:
        raise StudyError(
            f"field 'analysis.components': {components} components of {features} features are "
            f"more than {MOST_ENTRIES:,} numbers a round; ask for fewer or a coarser resolution."
        )
    forms = {"basis": (features, components)}
    return PlannedRelease("pca", "power", entries, Bound(bound), iterations, 1.0, forms)


def plan_subspace(parameters: PcaParameters, shape: Shape) -> tuple[PlannedRelease, ...]:
    """The release of directions, and that of variances along them.

    Raises
    ------
    StudyError
        If the unit is not a person, or there are too many directions.
    """
    size = parameters.components
    if shape.unit != "subject":
        raise StudyError(
            "field 'analysis.solver': subspace takes each participant's directions as a whole; "
            "set privacy.unit: subject, or choose moment."
        )
    if size > _MOST_DIRECTIONS:
        raise StudyError(
            f"field 'analysis.components': {size} are more than the {_MOST_DIRECTIONS} directions "
            "of a participant that solver subspace takes; ask for fewer, or choose moment."
        )
    directions = plan_projectors(wanted_directions(parameters), left_for_directions(shape))
    return (
        replace(directions, stage="pca", share=DIRECTIONS_SHARE),
        PlannedRelease(
            "variances",
            "variances",
            packed_size(size),
            Bound(parameters.bound or DEFAULT_BOUND["subject"], cone=True),
            1,
            1.0 - DIRECTIONS_SHARE,
            {"basis": (shape.features, size)},
        ),
    )


def wanted_directions(parameters: PcaParameters) -> Directions:
    """Those that solver subspace begins with."""
    return Directions(parameters.components)


def left_for_directions(shape: Shape) -> Shape:
    """The data with the noise that the release of directions has."""
    return replace(shape, noise=shape.noise / math.sqrt(DIRECTIONS_SHARE))
