"""Pairs of participants, for variances within a site: neighbours on a ring.

A site orders its participants by their keyed hashes and closes the order to a ring. Each
participant is paired with the next one, and every pair has half a weight, so n participants have
the weight of n/2 separate pairs. Other participants do not change a participant's hash. A new
participant x between a and c replaces the pair (a, c) by the pairs (a, x) and (x, c). Replacing a
participant removes one position of the ring and adds another one anywhere.

Let T be half the sum over the ring of a function z of pairs that does not depend on the order of
the two. With x the sum is larger than without by

    D = (z(a, x) + z(x, c) - z(a, c)) / 2

if there are two or more others. It is z(a, x) if a is the only other one, and 0 if there is no
other. Replacing x at one position by y at another moves T by the difference of two such D.

Logarithms of distances. z is the logarithm of a squared distance, clipped to -m and m, or 0 if one
of the two is excluded. If a, x and c count, at least one distance from x is half of that between a
and c or more, so one of the logarithms is at least z(a, c) - ln 4, and the other one at least -m:

    -(m + ln 4)/2 <= D <= 3 m/2.

If one of the three is excluded, D is between the same limits, and z(a, x) between -m and m. So
adding moves T by at most 3 m/2, and replacing by at most 2 m + ln 2.

Squared differences. z = u - v with entries u, v >= 0, which are clipped to the norms B and θB. D is
a difference of two vectors without negative entries: (u(a, x) + u(x, c) + v(a, c))/2, of norm at
most (1 + θ/2) B, and (v(a, x) + v(x, c) + u(a, c))/2, of norm at most (½ + θ) B. The distance of
two vectors without negative entries is at most the root of the sum of their squared norms:

    ‖D‖ <= √((1 + θ/2)² + (½ + θ)²) B.

Two such D with different x differ by a difference of vectors without negative entries, each of norm
at most (1 + θ/2 + ½ + θ) B = 1.5 (1 + θ) B, so replacing moves T by at most 1.5 √2 (1 + θ) B.
"""

import math

import numpy as np
from numpy.typing import NDArray

from consortium.base.array import Array
from consortium.privacy.block_bounds import Block

Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]

NEGATIVE = 0.05
"""θ, norm of the negative part of a pair's squared differences relative to that of the rest."""
_LOG_ADDED = 1.5
_ADDED = math.hypot(1 + NEGATIVE / 2, 0.5 + NEGATIVE)
_REPLACED = 1.5 * math.sqrt(2) * (1 + NEGATIVE)


def ring_of(hashes: NDArray[np.uint64]) -> Pairs:
    """Return the indices of every participant and of the next one; empty for fewer than two."""
    order = np.argsort(hashes, kind="stable")
    if len(order) < 2:
        return order[:0], order[:0]
    return order, np.roll(order, -1)


def pair_weight(persons: Array) -> float:
    """Return the weight of all sites' pairs together, at least 1."""
    return max(float(np.where(persons > 1, persons, 0.0).sum()) / 2, 1.0)


def log_block(name: str, most: float, share: float) -> Block:
    """Return the block of logarithms of pairs that are clipped to -m and m."""
    return Block(name, 1, _LOG_ADDED * most, 2 * most + math.log(2), share)


def most_log_in(block: Block) -> float:
    """Return the limit m of a block's logarithms of squared differences of pairs."""
    return block.norm / _LOG_ADDED


def squares_block(name: str, entries: int, norm: float, share: float) -> Block:
    """Return the block of squared differences of pairs that are clipped to B."""
    return Block(name, entries, _ADDED * norm, _REPLACED * norm, share)


def clips_in(block: Block) -> tuple[float, float]:
    """Return the bounds B and θB of a block of squared differences of pairs."""
    norm = block.norm / _ADDED
    return norm, NEGATIVE * norm
