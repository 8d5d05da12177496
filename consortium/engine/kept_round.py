"""A released round as it is kept for everybody: integers of the ring, and what they answer."""

from dataclasses import dataclass

from consortium.algorithms.base import Array


@dataclass(frozen=True)
class Kept:
    """A round of the transcript."""

    number: int
    """1, 2, ..."""
    stage: str
    statistic: str
    survivors: tuple[int, ...]
    """Sites in the sum, as indices."""
    ring: Array
    """Of a type of `RINGS`. What was released."""
    query: bytes
    """Digest of the round's question."""
