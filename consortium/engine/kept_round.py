"""A released round as it is stored for all parties: integers of the ring, and their query."""

from dataclasses import dataclass

from consortium.algorithms.base import Array


@dataclass(frozen=True)
class Kept:
    """A released round as the transcript stores it."""

    number: int
    """1, 2, ..."""
    stage: str
    statistic: str
    survivors: tuple[int, ...]
    """Sites in the sum, as indices."""
    ring: Array
    """The released vector, of a type of `RINGS`."""
    query: bytes
    """Digest of the round's question."""
