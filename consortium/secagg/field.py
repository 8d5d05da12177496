"""Arithmetic in the prime field of 2^255 - 19 elements, over plain integers.

The field is just wide enough for a 31-byte secret (2^248 < p), and a share is 32 bytes. Python's
own integers take about 0.2 µs for a product here, so that thousands of shares need no library.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod

PRIME = 2**255 - 19
ELEMENT_BYTES = 32
WIDE_BYTES = 48
"""Bytes reduced to one random element: 384 bits leave a bias below 2^-128."""


def draw_elements(stream: bytes) -> list[int]:
    """Turn random bytes into uniform field elements, one per `WIDE_BYTES` bytes."""
    return [
        int.from_bytes(stream[start : start + WIDE_BYTES], "little") % PRIME
        for start in range(0, len(stream), WIDE_BYTES)
    ]


def evaluate(coefficients: Sequence[int], point: int) -> int:
    """Evaluate the polynomial Σ coefficients[i] point^i by Horner's rule."""
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % PRIME
    return value


def weights_at_zero(points: Sequence[int]) -> list[int]:
    """Lagrange weights w with Σ w_i f(points_i) = f(0) for every f of degree < len(points).

    Parameters
    ----------
    points : sequence of int
        Distinct and not zero modulo `PRIME`.
    """
    whole = prod(points) % PRIME
    below = [point * prod(other - point for other in points if other != point) for point in points]
    return [whole * inverse % PRIME for inverse in inverses(below)]


def inverses(values: Sequence[int]) -> list[int]:
    """Invert many numbers, none of them zero modulo `PRIME`, at the price of one.

    P. L. Montgomery, Speeding the Pollard and elliptic curve methods of factorization, Mathematics
    of Computation 48 (1987).
    """
    before = list(accumulate(values, lambda one, two: one * two % PRIME, initial=1))
    inverse, found = pow(before.pop(), -1, PRIME), []
    for value, product in zip(reversed(values), reversed(before), strict=True):
        found.append(inverse * product % PRIME)
        inverse = inverse * value % PRIME
    return found[::-1]


def inner(weights: Iterable[int], values: Iterable[int]) -> int:
    """Σ weights_i values_i in the field."""
    return sum(w * v for w, v in zip(weights, values, strict=True)) % PRIME
