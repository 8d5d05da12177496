"""What maps are held against before they count as networks: persons without any.

White ones have nothing in common but the bulk; smooth ones share a smooth covariance on top of it
(see `smooth_null`), so that what is beyond these is beyond white ones, too.
"""

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.group_ica.kernels.smooth_null import SmoothNull, strengths_of
from consortium.base.array import Array
from consortium.kernels.component_bootstrap import NoisyDirections, strongest_directions
from consortium.kernels.separations import Paint, SeparationMethod
from consortium.kernels.spatial_ica import separate

_CHANCE_DRAWS = 10
_CHANCE_ITERATIONS = 60
_NULL_DRAWS = 20
"""One map beyond the largest of so many is chance in one of 21 runs."""
_PART = 1.0 / 3.0
"""Of a network's strength, that smooth persons must not explain, however small the noise."""


def white_null(directions: NoisyDirections) -> SmoothNull:
    """Persons who share nothing but the bulk, in the release's noise and chance of persons."""
    size, law = len(directions.vectors), directions.law
    return SmoothNull(np.eye(size), np.full(size, directions.bulk), np.zeros(size), law)


def contrast_of_chance(
    directions: NoisyDirections, paint: Paint, size: int, generator: np.random.Generator
) -> float:
    """Largest contrast of ``size`` independent components of directions without any network."""
    return max(
        float(
            separate(
                paint(directions.of_chance(generator)), 1, generator, size, _CHANCE_ITERATIONS
            ).contrast.max()
        )
        for _ in range(_CHANCE_DRAWS)
    )


def beyond_null(
    matrix: Array,
    null: SmoothNull,
    weights: Array,
    way: SeparationMethod,
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which maps are stronger than persons without networks explain, shape (R,).

    Each map's strength beyond the null's mean is held against the most that any map has in
    draws of such persons with the same noise; and however small the noise, a third of its
    strength must be beyond.

    Parameters
    ----------
    matrix : array, shape (d, d)
    weights : array, shape (d, R)
    way : Way
        How maps are made, of ``count`` directions.
    """
    size, most = weights.shape[1], 0.0
    for _ in range(_NULL_DRAWS):
        drawn = null.draw(generator)
        vectors, excess = strongest_directions(drawn, count, null.bulk)
        _, again = way.again(vectors, excess, size, generator)
        most = max(most, float(strengths_of(drawn - null.mean, again).max(initial=0.0)))
    own = strengths_of(matrix - null.mean, weights)
    whole = strengths_of(matrix, weights) - null.bulk
    return np.asarray((own > most) & (own > _PART * whole))
