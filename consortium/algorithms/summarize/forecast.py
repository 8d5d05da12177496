"""How far apart sites must be to be seen to differ, from public numbers alone.

Assumed: entries vary as a normal law does, with standard deviation 0.4, in a view of more than six
entries with one over the root of their number; the sites are alike.
"""

import math

import numpy as np

from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import Array, Expectation
from consortium.algorithms.summarize.plan import SummarizePlan
from consortium.algorithms.summarize.result import compared_sites, noise_floors

WITHHELD = (
    "The mixture and the simulated participants are not forecast, since they depend on how the "
    "sites differ."
)


def expect(plan: SummarizePlan) -> tuple[Expectation, ...]:
    """Noise floor of a distance, from noise alone to all that chance can add."""
    low, usual, high = (float(_floors(plan, part).max()) for part in (0.0, own_variance(plan), 1.0))
    ranged = "from noise alone to all that chance can add"
    low, high = min(low, usual), max(high, usual)
    return (Expectation("least squared distance that is seen", usual, low, high, False, ranged),)


def own_variance(plan: SummarizePlan) -> float:
    """1 - ‖m‖², m persons' mean embedding; ‖m‖² = Π (1 + 2 s²/w²)^-½ over normal entries."""
    sizes = np.array([size for _, size in plan.shape.views])
    square = np.square([usual_spread(int(size)) for size in sizes])
    return 1.0 - math.exp(-0.5 * float(sizes @ np.log1p(2.0 * square / plan.width**2)))


def _floors(plan: SummarizePlan, variance: float) -> Array:
    """As a result has them, for persons of so much variance."""
    (planned,), names, target = plan.releases, plan.shape.sites, plan.parameters.target
    sizes = np.array(plan.shape.units, dtype=np.float64)
    _, contrasts = compared_sites(sizes, names.index(target) if target in names else None)
    deviations = round_deviation(planned, plan.shape) * sizes.min() / sizes
    return noise_floors(plan, contrasts, deviations, variance / sizes, sizes)
