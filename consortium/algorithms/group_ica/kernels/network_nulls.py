"""Null distributions of maps: simulated participants without networks.

White ones share only the bulk. Smooth ones also share a smooth covariance (see `smooth_null`). So a
map that exceeds these also exceeds white ones.
"""

from collections.abc import Sequence

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
"""Number of null draws: a map exceeds the largest of them by chance in one of 21 runs."""
_PART = 0.25
"""Least fraction of a network's strength that the nulls must not explain."""


def white_null(directions: NoisyDirections) -> SmoothNull:
    """Return participants who share only the bulk, with the release's noise and sampling error."""
    size = len(directions.vectors)
    law = directions.law
    return SmoothNull(np.eye(size), np.full(size, directions.bulk), np.zeros(size), law)


def contrast_of_chance(
    directions: NoisyDirections, paint: Paint, size: int, generator: np.random.Generator
) -> float:
    """Draw the largest contrast of ``size`` independent components without any network."""
    return max(
        float(
            separate(
                paint(directions.of_chance(generator)), 1, generator, size, _CHANCE_ITERATIONS
            ).contrast.max()
        )
        for _ in range(_CHANCE_DRAWS)
    )


def beyond_nulls(
    matrix: Array,
    nulls: Sequence[SmoothNull],
    weights: Array,
    way: SeparationMethod,
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return which maps are stronger than each of the nulls explains, shape (R,).

    Each map's strength beyond a null's mean is compared with the largest of any map in simulated
    releases of the null, unless the null is incomplete. However small the noise, it must also
    exceed a fraction of the map's strength.

    Parameters
    ----------
    matrix : array, shape (d, d)
    weights : array, shape (d, R)
    way : SeparationMethod
        How maps are made, of ``count`` directions.
    """
    beyond = np.ones(weights.shape[1], dtype=bool)
    for null in nulls:
        size = weights.shape[1]
        most = _most_by_chance(null, size, way, count, generator) if null.complete else 0.0
        own = strengths_of(matrix - null.mean, weights)
        whole = strengths_of(matrix, weights) - null.bulk
        beyond &= (own > most) & (own > _PART * whole)
    return beyond


def _most_by_chance(
    null: SmoothNull, size: int, way: SeparationMethod, count: int, generator: np.random.Generator
) -> float:
    """Return the largest strength beyond the null's mean of any map in simulated releases."""
    most = 0.0
    for _ in range(_NULL_DRAWS):
        drawn = null.draw(generator)
        vectors, excess = strongest_directions(drawn, count, null.bulk)
        _, again = way.again(vectors, excess, size, generator)
        most = max(most, float(strengths_of(drawn - null.mean, again).max(initial=0.0)))
    return most
