"""Shamir's secret sharing of 31-byte secrets, and recovery in the presence of wrong shares.

A. Shamir, How to share a secret, Communications of the ACM 22 (1979).

Arithmetic is in the prime field of 2^255 - 19 elements, over plain integers. It is just wide enough
for a 31-byte secret (2^248 < p), and a share is 32 bytes. Python's own integers take about 0.2 µs
for a product here, so thousands of shares need no library.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, islice
from math import prod

PRIME = 2**255 - 19
ELEMENT_BYTES = 32
WIDE_BYTES = 48
"""Bytes reduced to one random element: 384 bits leave a bias below 2^-128."""
SECRET_BYTES = 31
SHARE_BYTES = ELEMENT_BYTES
SUBSETS = 4096
"""Subsets that `recover` tries: any two wrong shares up to threshold 87, any three up to 26."""

Weights = Callable[[tuple[int, ...]], Sequence[int]]


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
    """Return Lagrange weights w with Σ w_i f(points_i) = f(0) for f of degree < len(points).

    Parameters
    ----------
    points : sequence of int
        Distinct and not zero modulo `PRIME`.
    """
    whole = prod(points) % PRIME
    below = [point * prod(other - point for other in points if other != point) for point in points]
    return [whole * inverse % PRIME for inverse in inverses(below)]


def inverses(values: Sequence[int]) -> list[int]:
    """Invert many numbers, none of them zero modulo `PRIME`, with one inversion.

    P. L. Montgomery, Speeding the Pollard and elliptic curve methods of factorization, Mathematics
    of Computation 48 (1987).
    """
    before = list(accumulate(values, lambda one, two: one * two % PRIME, initial=1))
    inverse = pow(before.pop(), -1, PRIME)
    found = []
    for value, product in zip(reversed(values), reversed(before), strict=True):
        found.append(inverse * product % PRIME)
        inverse = inverse * value % PRIME
    return found[::-1]


def inner(weights: Iterable[int], values: Iterable[int]) -> int:
    """Return Σ weights_i values_i in the field."""
    return sum(w * v for w, v in zip(weights, values, strict=True)) % PRIME


@dataclass(frozen=True)
class Recovered:
    """A secret that was found genuine, and the points whose shares were wrong."""

    secret: bytes
    wrong: tuple[int, ...]


def noise_bytes(threshold: int) -> int:
    """Return the number of random bytes that `split` needs."""
    return (threshold - 1) * WIDE_BYTES


def split(secret: bytes, threshold: int, points: Iterable[int], noise: bytes) -> list[bytes]:
    """Share a secret: any ``threshold`` shares recover it, and fewer reveal nothing.

    Parameters
    ----------
    secret : bytes
        31 bytes.
    threshold : int
        At least 1.
    points : iterable of int
        Distinct and positive, at least ``threshold``.
    noise : bytes
        `noise_bytes(threshold)` uniform bytes, never used for another secret.

    Returns
    -------
    list of bytes
        32-byte shares, one for each point.
    """
    if len(secret) != SECRET_BYTES or len(noise) != noise_bytes(threshold):
        raise ValueError("a secret has 31 bytes and its polynomial 48 a coefficient")
    coefficients = [int.from_bytes(secret, "little"), *draw_elements(noise)]
    return [evaluate(coefficients, point).to_bytes(SHARE_BYTES, "little") for point in points]


def join(shares: Mapping[int, bytes], weights: Weights = weights_at_zero) -> bytes | None:
    """Return the secret that these shares (by point) define together, or None if there is none."""
    values = (int.from_bytes(share, "little") for share in shares.values())
    value = inner(weights(tuple(shares)), values)
    return value.to_bytes(SECRET_BYTES, "little") if value < 1 << 8 * SECRET_BYTES else None


def recover(
    shares: Mapping[int, bytes],
    threshold: int,
    genuine: Callable[[bytes], bool],
    weights: Weights = weights_at_zero,
) -> Recovered | None:
    """Find the genuine secret among shares of which some may be wrong.

    The first ``threshold`` shares are tried as they are, then with one share left out and
    replaced by the next, then two, up to `SUBSETS` trials. Every share left out by the smallest
    exclusion that succeeds is wrong: were it right, a smaller one would have succeeded. (Holders
    who work together can choose wrong shares whose errors cancel in one subset, and so cast the
    blame on another. The secret is the genuine one even then.)

    Parameters
    ----------
    shares : mapping of int to bytes
        By point; put the least trusted last.
    genuine : callable
        Whether a secret is the one that its owner committed to.
    weights : callable
        `field.weights_at_zero`, perhaps with a cache around it.

    Returns
    -------
    Recovered or None
        None if no subset within the limit gives a genuine secret.
    """
    points = list(shares)
    exclusions = (
        set(excluded)
        for size in range(len(points) - threshold + 1)
        for excluded in combinations(points[: threshold + size], size)
    )
    for excluded in islice(exclusions, SUBSETS):
        kept = [point for point in points if point not in excluded][:threshold]
        secret = join({point: shares[point] for point in kept}, weights)
        if secret is not None and genuine(secret):
            return Recovered(secret, tuple(sorted(excluded)))
    return None
