"""How far apart sites must be to be seen to differ, from public numbers alone.

Assumed: entries vary as a normal law does, with standard deviation 0.4, in a view of more than six
entries with one over the root of their number; the sites are alike.
"""

import math

import numpy as np

from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import Array, Expectation, Shape
from consortium.algorithms.summarize.kernels.mean_embedding import null_floors
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.algorithms.summarize.plan import kernel_width, plan_releases
from consortium.algorithms.summarize.result import compared

WITHHELD = (
    "The mixture and the simulated participants are not forecast, since they depend on how the "
    "sites differ."
)


def expect(parameters: SummarizeParameters, shape: Shape) -> tuple[Expectation, ...]:
    """Noise floor of a distance, from noise alone to all that chance can add."""
    low, usual, high = (
        float(_floors(parameters, shape, part).max())
        for part in (0.0, own_variance(parameters, shape), 1.0)
    )
    ranged = "from noise alone to all that chance can add"
    low, high = min(low, usual), max(high, usual)
    return (Expectation("least squared distance that is seen", usual, low, high, False, ranged),)


def own_variance(parameters: SummarizeParameters, shape: Shape) -> float:
    """1 - ‖m‖², m persons' mean embedding; ‖m‖² = Π (1 + 2 s²/w²)^-½ over normal entries."""
    sizes = np.array([size for _, size in shape.views])
    square = np.square([usual_spread(int(size)) for size in sizes])
    ratio = 2.0 * square / kernel_width(parameters, shape) ** 2
    return 1.0 - math.exp(-0.5 * float(sizes @ np.log1p(ratio)))


def _floors(parameters: SummarizeParameters, shape: Shape, variance: float) -> Array:
    """As a result has them, for persons of so much variance."""
    (planned,), sizes = plan_releases(parameters, shape), np.array(shape.units, dtype=np.float64)
    named = parameters.target is not None and parameters.target in shape.sites
    _, contrasts = compared(sizes, shape.sites.index(str(parameters.target)) if named else None)
    deviations = round_deviation(planned, shape) * sizes.min() / sizes
    return null_floors(
        contrasts,
        deviations,
        variance / sizes,
        sizes,
        planned.entries,
        1.0 - parameters.confidence,
        np.random.default_rng(parameters.seed),
    )
