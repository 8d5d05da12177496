"""One release of several blocks, each clipped by itself and with its own part of the loss.

Blocks of sensitivity Δ_j that have parts r_j of μ² (adding up to one) need noise of Δ_j/(μ √r_j)
each. Multiplied by √r_j/Δ_j they need the same noise, 1/μ, and as one vector they have the
sensitivity √(Σ r_j) = 1: one message costs exactly what releases of their own would.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from consortium.base.array import Array
from consortium.errors import PrivacyError, RangeError
from consortium.privacy.bounds import Bound


@dataclass(frozen=True)
class Block:
    """One block of a release, which is clipped by itself."""

    name: str
    entries: int
    norm: float
    """B, what adding or removing a unit moves the sum by: the Euclidean norm that a unit's
    contribution to the block is clipped to, or more where units are paired."""
    spread: float
    """Δ, what replacing a unit moves the sum by: 2 B for contributions of norm B, √2 B in a
    cone."""
    share: float
    """r, part of the release's μ². The shares of a release add up to one."""

    @property
    def factor(self) -> float:
        """Factor of the block in the release: √r/Δ."""
        return math.sqrt(self.share) / self.spread


@dataclass(frozen=True)
class BlocksBound(Bound):
    """A clipping bound that holds for every block of the vector by itself.

    ``norm`` and ``influence`` are the largest norm of the scaled blocks together, and their
    sensitivity.
    """

    blocks: tuple[Block, ...] = ()
    """In the order of the vector."""

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Self:
        """Return the bound of blocks, whose shares are scaled to add up to one."""
        whole = math.fsum(block.share for block in blocks)
        scaled = tuple(Block(b.name, b.entries, b.norm, b.spread, b.share / whole) for b in blocks)
        norm = math.sqrt(math.fsum((b.factor * b.norm) ** 2 for b in scaled))
        return cls(norm, influence=1.0, blocks=scaled)

    @property
    def entries(self) -> int:
        """Numbers in a release."""
        return sum(block.entries for block in self.blocks)

    def block(self, name: str) -> Block:
        """Look a block up by name; raises PrivacyError if the release has none of that name."""
        for block in self.blocks:
            if block.name == name:
                return block
        raise PrivacyError(f"The release has no block '{name}', and unplanned numbers are refused.")

    def join(self, parts: Mapping[str, Array]) -> Array:
        """Scale the blocks' means and put them one behind the other.

        Raises RangeError if a block has another number of entries than planned.
        """
        rows = []
        for block in self.blocks:
            values = np.asarray(parts[block.name], dtype=np.float64).ravel()
            if len(values) != block.entries:
                raise RangeError(
                    f"Block '{block.name}' must have {block.entries} numbers, got {len(values)}. "
                    "Check the shapes of the query's arguments."
                )
            rows.append(block.factor * values)
        return np.concatenate(rows)

    def split(self, values: Array) -> dict[str, Array]:
        """Invert `join`."""
        stops = np.cumsum([block.entries for block in self.blocks])[:-1]
        parts = np.split(np.asarray(values, dtype=np.float64), stops)
        return {b.name: part / b.factor for b, part in zip(self.blocks, parts, strict=True)}

    def deviations(self, deviation: float) -> dict[str, float]:
        """Return the noise in an entry of each block after `split`, from that of the release."""
        return {block.name: deviation / block.factor for block in self.blocks}
