"""Shamir's secret sharing of 31-byte secrets, and recovery in the presence of wrong shares.

A. Shamir, How to share a secret, Communications of the ACM 22 (1979).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from consortium.secagg import field

SECRET_BYTES = 31
SHARE_BYTES = field.ELEMENT_BYTES
SUBSETS = 4096
"""Subsets that `recover` tries: any two wrong shares up to threshold 87, any three up to 26."""

Weights = Callable[[tuple[int, ...]], Sequence[int]]


@dataclass(frozen=True)
class Recovered:
    """A secret that was found genuine, and the points whose shares were wrong."""

    secret: bytes
    wrong: tuple[int, ...]


def noise_bytes(threshold: int) -> int:
    """Random bytes that `split` needs."""
    return (threshold - 1) * field.WIDE_BYTES


def split(secret: bytes, threshold: int, points: Iterable[int], noise: bytes) -> list[bytes]:
    """Share a secret so that any ``threshold`` of the shares give it, and fewer nothing.

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
    coefficients = [int.from_bytes(secret, "little"), *field.draw_elements(noise)]
    return [field.evaluate(coefficients, point).to_bytes(SHARE_BYTES, "little") for point in points]


def join(shares: Mapping[int, bytes], weights: Weights = field.weights_at_zero) -> bytes | None:
    """Return the secret that these shares (by point) define together, or None if there is none."""
    values = (int.from_bytes(share, "little") for share in shares.values())
    value = field.inner(weights(tuple(shares)), values)
    return value.to_bytes(SECRET_BYTES, "little") if value < 1 << 8 * SECRET_BYTES else None


def recover(
    shares: Mapping[int, bytes],
    threshold: int,
    genuine: Callable[[bytes], bool],
    weights: Weights = field.weights_at_zero,
) -> Recovered | None:
    """Find the genuine secret among shares of which some may be wrong.

    The first ``threshold`` shares are tried as they are, then with one share left out and
    replaced by the next, then two, up to `SUBSETS` trials. Every share left out by the smallest
    exclusion that succeeds is wrong: were it right, a smaller one would have succeeded. (Holders
    who work together can choose wrong shares whose errors cancel in one subset, and so cast the
    blame on another; the secret is the genuine one even then.)

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
