"""The integer grid on which everything secret travels, planned before any data is read.

A contribution is rounded to a fine grid of width ``step``, on which noise is drawn.
Rounding moves two neighbouring contributions apart by at most step·sqrt(entries),
which is added to the sensitivity. After the noise is added, the lowest ``dropped`` bits
of the noisy value, and of ê, are rounded away. As long as `FINENESS` cells of the coarse
grid fit into every site's own noise, a view on it is a function of the view on the fine
grid (docs/explanation/coarse-grid.md), so nothing is charged for it. The remaining bits
are summed modulo 2^bits. The ring is wide enough for the released sum (values and noise)
except with probability 2^-40. Masks and ê cancel, so they may wrap, since they wrap back.
Without noise, for the scheme ``none``, 64 bits represent every float64 value.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from consortium.base.array import Array
from consortium.errors import RangeError

_FAILURE = 2.0**-40
_SMALLEST = float(np.finfo(np.float64).tiny)
_MOST_ROUNDING = 1e-3  # relative to the sensitivity; a coarser 32-bit grid gives way to 64 bits
_FEWEST_BITS = 16  # what masks and sums are computed in; to pack fewer takes longer than to send 16
FINENESS = 8.0  # coarse cells in a standard deviation: rounding adds 1/768 of the variance


@dataclass(frozen=True)
class Lattice:
    """An integer grid and its ring, for the values of one release."""

    step: float
    """Width of the fine grid, a power of two, in the aggregator's units."""
    bits: int
    """1 to 64."""
    dropped: int = 0
    """The coarse grid, on which everything travels, is 2^dropped fine steps wide."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Unsigned integer type of the ring."""
        return np.dtype(f"u{self._bytes}")

    @property
    def _bytes(self) -> int:
        return next(width for width in (2, 4, 8) if self.bits <= 8 * width)

    @property
    def grid(self) -> float:
        """Width of the coarse grid, in the aggregator's units."""
        return math.ldexp(self.step, self.dropped)

    def encode(self, values: Array, bound: float) -> Array:
        """Round contributions to whole fine steps (int64).

        Raises RangeError if an entry is not finite or larger than ``bound``: the clipping was not
        done.
        """
        flat = np.asarray(values, dtype=np.float64).ravel()
        if not bool(np.all(np.abs(flat) <= bound * (1 + 1e-6))):
            raise RangeError(
                "A site's statistic is not a number or exceeds its clipping bound. "
                "Look for infinite or missing values in the site's images."
            )
        return np.rint(flat / self.step).astype(np.int64)

    def coarse(self, noisy: Array) -> Array:
        """Round fine steps, noise and all, to whole coarse ones (int64)."""
        if not self.dropped:
            return noisy
        rounded: Array = (noisy + (1 << (self.dropped - 1))) >> self.dropped
        return rounded

    def wrap(self, integers: Array) -> Array:
        """Map signed integers into the ring."""
        return self.reduce(integers.astype(np.uint64).astype(self.dtype))

    def reduce(self, ring: Array) -> Array:
        """Return sums of the ring's numbers, reduced to the ring."""
        reduced: Array = ring & self.dtype.type((1 << self.bits) - 1)
        return reduced

    def decode(self, ring: Array) -> Array:
        """Map a sum in the ring to real numbers: the inverse of `wrap`, times the coarse grid."""
        signed = np.dtype(f"i{self._bytes}")
        free = signed.type(8 * self._bytes - self.bits)
        # The ring's highest bit becomes the type's sign.
        numbers = (ring.astype(self.dtype) << free.astype(self.dtype)).view(signed) >> free
        real: Array = numbers.astype(np.float64) * self.grid
        return real

    def rounding(self, entries: int) -> float:
        """Return the increase of a vector's sensitivity by rounding to the fine grid."""
        return self.step * math.sqrt(entries)


def plan_lattice(
    *,
    entries: int,
    bound: float,
    sensitivity: float,
    aggregate: float,
    largest: float,
    sites: int,
    least: float = 0.0,
) -> Lattice:
    """Choose the integer grid for one release.

    Raises RangeError if even 64 bits are too few for the sum on a grid that is fine enough.

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
    least : float
        Standard deviation of the noise that hides every site's lower bits. It is that of the
        smallest local noise, or with correlated noise, that of the two noises given their sum.
    """
    tail = math.sqrt(2.0 * math.log(2.0 * entries / _FAILURE))
    reach = 1.01 * (bound + tail * aggregate)
    if not max(largest, aggregate):
        return Lattice(max(_power_of_two(reach / 2**62), _SMALLEST), 64)
    finest = _power_of_two(max(largest, aggregate, bound) / 2**42)
    dropped = math.floor(math.log2(least / FINENESS / finest)) if least > 0 else 0
    if dropped > 0 and finest * math.sqrt(entries) <= _MOST_ROUNDING * sensitivity:
        cells = math.ldexp(reach / finest, -dropped) + sites
        return Lattice(finest, max(1 + math.ceil(math.log2(cells)), _FEWEST_BITS), dropped)
    for bits in (32, 64):
        step = _power_of_two(reach / (2 ** (bits - 1) - sites))
        # Noise stays below the sampler's largest σ, with a margin.
        step = max(step, finest)
        if step * math.sqrt(entries) <= _MOST_ROUNDING * sensitivity:
            return Lattice(step, bits)
    raise RangeError(
        f"A release of {entries} numbers does not fit 64-bit sums at this privacy. "
        "Ask for fewer numbers or raise epsilon."
    )


def _power_of_two(least: float) -> float:
    return float(2.0 ** math.ceil(math.log2(least)))
