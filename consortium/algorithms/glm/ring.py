"""Pairs of participants, from which variances within a site follow: neighbours on a ring.

A site orders its participants by their keyed hashes and closes the order to a ring. Each
participant is paired with the next one, and every pair has half a weight, so that n participants
have the weight of n/2 separate pairs. Who else takes part changes nobody's hash. One who comes
between a and c replaces the pair (a, c) by the pairs (a, x) and (x, c). One who is replaced leaves
one place of the ring, and the other one comes at any other place.

Let T be half the sum over the ring of a function z of pairs that does not depend on the order of
the two. With x the sum is larger than without by

    D = (z(a, x) + z(x, c) - z(a, c)) / 2

if the others are two or more. It is z(a, x) where a is the only other one, and 0 where x is alone.
Replacing x at one place by y at another one moves T by the difference of two such D.

Logarithms of distances. z is the logarithm of a squared distance, cut to -m and m, or 0 where one
of the two is left out. If a, x and c count, one of the distances from x is at least half of that
between a and c, so one of the logarithms is at least z(a, c) - ln 4, the other one at least -m:

    -(m + ln 4)/2 <= D <= 3 m/2.

Where one of the three is left out, D lies between the same limits, and z(a, x) between -m and m.
So adding moves T by 3 m/2 at the most, and replacing by 2 m + ln 2.

Squared differences. z = u - v with entries u, v >= 0, which are clipped to the norms B and θB. D is
a difference of two vectors without negative entries: (u(a, x) + u(x, c) + v(a, c))/2, of norm
(1 + θ/2) B at the most, and (v(a, x) + v(x, c) + u(a, c))/2, of norm (½ + θ) B. Two vectors without
negative entries are no further apart than the root of the sum of their squared norms:

    ‖D‖ <= √((1 + θ/2)² + (½ + θ)²) B.

Two such D with different x differ by a difference of vectors without negative entries, whose norms
are (1 + θ/2 + ½ + θ) B = 1.5 (1 + θ) B at the most, so that replacing moves T by 1.5 √2 (1 + θ) B.
"""

import math

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array
from consortium.privacy.block_bounds import Block

Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]

NEGATIVE = 0.05
"""θ, norm of what is negative in a pair's squared differences over the norm of the rest."""
_LOG_ADDED = 1.5
_ADDED = math.hypot(1 + NEGATIVE / 2, 0.5 + NEGATIVE)
_REPLACED = 1.5 * math.sqrt(2) * (1 + NEGATIVE)


def ring_of(hashes: NDArray[np.uint64]) -> Pairs:
    """Return the places of every participant and of the next one; none of a single participant."""
    order = np.argsort(hashes, kind="stable")
    if len(order) < 2:
        return order[:0], order[:0]
    return order, np.roll(order, -1)


def pair_weight(persons: Array) -> float:
    """Return the weight of all sites' pairs together, at least 1."""
    return max(float(np.where(persons > 1, persons, 0.0).sum()) / 2, 1.0)


def log_block(name: str, most: float, share: float) -> Block:
    """Return the block of logarithms of pairs that are cut to -m and m."""
    return Block(name, 1, _LOG_ADDED * most, 2 * most + math.log(2), share)


def most_log_in(block: Block) -> float:
    """Return m of such a block."""
    return block.norm / _LOG_ADDED


def squares_block(name: str, entries: int, norm: float, share: float) -> Block:
    """Return the block of squared differences of pairs that are clipped to B."""
    return Block(name, entries, _ADDED * norm, _REPLACED * norm, share)


def clips_in(block: Block) -> tuple[float, float]:
    """Return B and θB of such a block."""
    norm = block.norm / _ADDED
    return norm, NEGATIVE * norm
