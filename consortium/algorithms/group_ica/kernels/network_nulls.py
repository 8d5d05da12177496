"""Null distributions of maps: simulated participants without networks.

White ones share only the bulk. Smooth ones also share a smooth covariance (see `smooth_null`). So a
map that exceeds these also exceeds white ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.group_ica.kernels.smooth_null import (
    SmoothNull,
    SmoothRelease,
    orthogonal_to,
    strengths_of,
)
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
_LEADING = 0.5
"""Least strength beyond the null over the largest one, of maps that count as networks at once."""
_OWN = 0.3
"""Least fraction of a map's squares that maps of stronger networks do not contain."""


def white_null(directions: NoisyDirections) -> SmoothNull:
    """Return participants who share only the bulk, with the release's noise and sampling error."""
    size = len(directions.vectors)
    law = directions.law
    return SmoothNull(np.eye(size), np.full(size, directions.bulk), np.zeros(size), law)


def contrast_of_chance(
    directions: NoisyDirections, paint: Paint, size: int, generator: np.random.Generator
) -> float:
    """Draw the largest contrast of ``size`` independent maps without any network."""
    return max(
        float(
            separate(
                paint(directions.of_chance(generator)), 1, generator, size, _CHANCE_ITERATIONS
            ).contrast.max()
        )
        for _ in range(_CHANCE_DRAWS)
    )


@dataclass(frozen=True, eq=False)
class NullDraws:
    """Maps of simulated releases of a null, made as those of the release were."""

    way: SeparationMethod
    count: int
    """Number of directions that are separated."""
    generator: np.random.Generator

    def most(self, null: SmoothNull, size: int) -> float:
        """Return the largest strength beyond the null's mean of any of ``size`` maps each."""
        most = 0.0
        for _ in range(_NULL_DRAWS):
            drawn = null.draw(self.generator)
            vectors, excess = strongest_directions(drawn, self.count, null.bulk)
            _, again = self.way.again(vectors, excess, size, self.generator)
            most = max(most, float(strengths_of(drawn - null.mean, again).max(initial=0.0)))
        return most


def beyond_null(
    matrix: Array,
    null: SmoothNull,
    weights: Array,
    draws: NullDraws,
) -> NDArray[np.bool_]:
    """Return which maps are stronger than a null explains, shape (R,).

    Each map's strength beyond the null's mean is compared with the largest of any map in simulated
    releases of the null, unless the null is incomplete. However small the noise, it must also
    exceed a fraction of the map's strength.

    Parameters
    ----------
    matrix : array, shape (d, d)
    weights : array, shape (d, R)
    """
    most = draws.most(null, weights.shape[1]) if null.complete else 0.0
    own = strengths_of(matrix - null.mean, weights)
    whole = strengths_of(matrix, weights) - null.bulk
    return np.asarray((own > most) & (own > _PART * whole))


def beyond_smooth(
    release: SmoothRelease,
    weights: Array,
    reliable: NDArray[np.bool_],
    draws: NullDraws,
) -> NDArray[np.bool_]:
    """Return which reliable maps are stronger than smooth noise explains, shape (R,).

    Each must be beyond the even null, and beyond the local null of the release without the maps of
    stronger networks. Networks raise the strength, width and symmetry of the release at their
    places, so that a local null of the whole release explains neither them nor the noise.

    Parameters
    ----------
    weights : array, shape (d, R)
    reliable : array of bool, shape (R,)
    """
    left = reliable & beyond_null(release.matrix, release.even, weights, draws)
    networks = np.zeros(len(left), dtype=bool)
    while left.any():
        null = release.uneven(weights[:, networks]) if networks.any() else release.local
        if null is None:
            return networks | left
        others = orthogonal_to(weights[:, networks])
        matrix = others @ release.matrix @ others
        maps = others @ weights
        left = left & (np.square(maps).sum(axis=0) > _OWN * np.square(weights).sum(axis=0))
        left &= beyond_null(matrix, null, maps, draws)
        own = strengths_of(matrix - null.mean, maps)
        new = left & (own >= _LEADING * own[left].max(initial=0.0))
        networks |= new
        left &= ~new
    return networks
