"""A released round as it is kept for everybody: integers of the ring, and what they answer."""

from dataclasses import dataclass

from consortium.algorithms.base import Array


@dataclass(frozen=True)
class Kept:
    """A round of the transcript.

    Parameters
    ----------
    number : int
        1, 2, ...
    survivors : tuple of int
        Sites in the sum, as indices.
    ring : array of a type of `RINGS`
        What was released.
    query : bytes
        Digest of the round's question.
    """

    number: int
    stage: str
    statistic: str
    survivors: tuple[int, ...]
    ring: Array
    query: bytes
