"""The integer grid on which everything secret travels, planned before any data is read.

A contribution is rounded to a grid of width ``step`` and summed modulo 2^bits.
The ring is wide enough for the released sum (values and noise) except with
probability 2^-40; what cancels (masks and ê) may wrap, since it wraps back.
Rounding moves two neighbouring contributions apart by at most step·sqrt(entries),
which is added to the sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from consortium.errors import RangeError

Array = NDArray[Any]
Bits = Literal[32, 64]

_FAILURE = 2.0**-40
_MOST_ROUNDING = 1e-3  # of the sensitivity; a coarser 32-bit grid gives way to 64 bits


@dataclass(frozen=True)
class Lattice:
    """A grid and its ring.

    Parameters
    ----------
    step : float
        Width of the grid, a power of two, in the aggregator's units.
    bits : {32, 64}
    """

    step: float
    bits: Bits

    @property
    def dtype(self) -> np.dtype[Any]:
        """Unsigned integers of the ring."""
        return np.dtype(np.uint32 if self.bits == 32 else np.uint64)

    def encode(self, values: Array, bound: float) -> Array:
        """Round contributions to whole steps (int64).

        Raises
        ------
        RangeError
            If an entry is not finite or larger than ``bound``: the clipping was not done.
        """
        flat = np.asarray(values, dtype=np.float64).ravel()
        if not bool(np.all(np.abs(flat) <= bound * (1 + 1e-6))):
            raise RangeError(
                "A site's statistic is not a number or exceeds its clipping bound; "
                "look for infinite or missing values in the site's images."
            )
        return np.rint(flat / self.step).astype(np.int64)

    def wrap(self, integers: Array) -> Array:
        """Map signed integers into the ring."""
        return integers.astype(np.uint64).astype(self.dtype)

    def decode(self, ring: Array) -> Array:
        """Map a sum in the ring to real numbers: the inverse of `wrap`, times the step."""
        signed = np.int32 if self.bits == 32 else np.int64
        numbers: Array = ring.astype(self.dtype).view(signed).astype(np.float64)
        return numbers * self.step

    def rounding(self, entries: int) -> float:
        """What rounding adds to the sensitivity of a vector."""
        return self.step * math.sqrt(entries)


def plan_lattice(
    *, entries: int, bound: float, sensitivity: float, aggregate: float, largest: float, sites: int
) -> Lattice:
    """Choose the grid for one release.

    Parameters
    ----------
    entries : int
        Length of the released vector.
    bound : float
        Largest norm of the true sum, hence of each entry.
    sensitivity : float
        Smallest sensitivity of a site's contribution.
    aggregate, largest : float
        Standard deviations of the noise in the release, and of any one site's draw.
    sites : int

    Raises
    ------
    RangeError
        If even 64 bits can't hold the sum on a grid fine enough.
    """
    tail = math.sqrt(2.0 * math.log(2.0 * entries / _FAILURE))
    reach = 1.01 * (bound + tail * aggregate)
    for bits in (32, 64):
        step = _power_of_two(reach / (2 ** (bits - 1) - sites))
        # Noise stays below the sampler's largest σ, with a margin.
        step = max(step, _power_of_two(max(largest, aggregate, bound) / 2**42))
        if step * math.sqrt(entries) <= _MOST_ROUNDING * sensitivity:
            return Lattice(step, 32 if bits == 32 else 64)
    raise RangeError(
        f"A release of {entries} numbers does not fit 64-bit sums at this privacy; "
        "ask for fewer numbers or raise epsilon."
    )


def _power_of_two(least: float) -> float:
    return float(2.0 ** math.ceil(math.log2(least)))
