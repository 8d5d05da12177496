"""Exact discrete Gaussian noise from a cryptographic key stream, vectorised.

The law is P(x) ∝ exp(−x²/2σ²) over the integers, σ an integer. It is sampled by
rejection: x = ±(kσ + j) with k drawn with weights exp(−k²/2), j uniform below σ
and the pair kept with probability exp(−j(2kσ + j)/2σ²). Every comparison of a
uniform number with a real one is done in floating point only where 64 random
bits settle it beyond the rounding error. The few that they don't settle draw
further bits and are decided in decimal arithmetic of growing precision. So no
probability is rounded. Method: Karney (2016), section 6, made vectorised.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from consortium.errors import RangeError

SAMPLER = "discrete Gaussian, exact rejection, AES-256-CTR"
LARGEST_SIGMA = 1 << 44
_MARGIN = 2.0**-44  # more than the rounding error of the float path, see `_keep`
_CHUNK = 1 << 14
_LAST_K = 12  # exp(-k²/2) weights up to here in the table; beyond it the exact path decides

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]


class KeyStream:
    """Uniform 64-bit words from AES-256 in counter mode.

    Parameters
    ----------
    key : bytes
        32 secret bytes, used for nothing else.
    """

    def __init__(self, key: bytes) -> None:
        self._stream: CipherContext = Cipher(AES(key), CTR(bytes(16))).encryptor()

    def words(self, count: int) -> Words:
        """Return the next ``count`` uniform words."""
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype="<u8")


class GaussianSampler:
    """Draws of discrete Gaussian noise; the same key gives the same draws.

    Parameters
    ----------
    key : bytes
        32 secret bytes, used for nothing else.
    """

    def __init__(self, key: bytes) -> None:
        self._stream = KeyStream(key)

    def draw(self, sigma: int, size: int) -> Integers:
        """Return independent draws with parameter σ.

        Raises RangeError if σ is out of range.

        Parameters
        ----------
        sigma : int
            σ in steps of the grid, 0 to `LARGEST_SIGMA`; 0 gives zeros.
        """
        if not 0 <= sigma <= LARGEST_SIGMA:
            raise RangeError(
                f"Noise of {sigma} grid steps is out of range. Widen the step of the grid."
            )
        noise = np.zeros(size, dtype=np.int64)
        filled = 0 if sigma else size
        while filled < size:
            fresh = self._attempt(sigma, min(_CHUNK, int(1.45 * (size - filled)) + 32))
            taken = fresh[: size - filled]
            noise[filled : filled + len(taken)] = taken
            filled += len(taken)
        return noise

    def _attempt(self, sigma: int, count: int) -> Integers:
        """Run ``count`` rejection trials and return the draws that were kept."""
        first = self._stream.words(count)
        negative = (first & np.uint64(1)).astype(bool)
        k = self._table(first >> np.uint64(1))
        j = self._below(sigma, count)
        kept = self._keep(sigma, k, j, self._stream.words(count))
        kept &= ~(negative & (k == 0) & (j == 0))  # zero has one sign only
        value = k * sigma + j
        return np.where(negative, -value, value)[kept]

    def _table(self, words: Words) -> Integers:
        """Return k with P(k) ∝ exp(−k²/2), by inversion with 63 bits each."""
        k = np.searchsorted(_CELLS, words, side="left").astype(np.int64)
        unsure = np.flatnonzero(_CELLS[np.minimum(k, _LAST_K)] == words)
        for place in unsure:  # the word's cell contains the boundary: about one in 2^59
            k[place] = self._exact_k(int(words[place]), int(k[place]))
        return k

    def _exact_k(self, word: int, least: int) -> int:
        bits = 63
        value = word
        for k in range(least, 64):
            bits, value, below = self._is_below(bits, value, partial(_share, k))
            if below:
                return k
        return 64  # pragma: no cover - probability below 2^-2900

    def _below(self, sigma: int, count: int) -> Integers:
        """Return uniform integers below σ, without bias."""
        whole = (1 << 64) // sigma * sigma  # words from here on would favour small numbers
        words = self._stream.words(count)
        if whole < 1 << 64:
            high = np.flatnonzero(words >= np.uint64(whole))
            if len(high):
                words = words.copy()
            for place in high:
                while words[place] >= whole:
                    words[place] = self._stream.words(1)[0]
        divisor = np.uint64(sigma)
        return (words - words // divisor * divisor).astype(np.int64)

    def _keep(self, sigma: int, k: Integers, j: Integers, words: Words) -> NDArray[np.bool_]:
        """Return a draw of Bernoulli(exp(−j(2kσ + j)/2σ²)) for each pair.

        The exponent is at most 13 and is computed to 4 roundings, exp to 4 units in the
        last place and the word is cut to 53 bits: below 2^-46 in all, within `_MARGIN`.
        """
        ratio = j / float(sigma)
        chance = np.exp(-ratio * (k + 0.5 * ratio))
        uniform = (words >> np.uint64(11)) * 2.0**-53
        kept: NDArray[np.bool_] = uniform < chance
        for place in np.flatnonzero(np.abs(uniform - chance) < _MARGIN):
            a = int(j[place])
            b = int(k[place])
            weight = partial(_weight, a, b, sigma)
            _, _, kept[place] = self._is_below(64, int(words[place]), weight)
        return kept

    def _is_below(
        self, bits: int, value: int, real: Callable[[int], Decimal]
    ) -> tuple[int, int, bool]:
        """Compare a lazily extended uniform number, now value/2^bits, with a real one."""
        while True:
            digits = bits // 3 + 12
            with localcontext() as context:
                context.prec = digits + 10
                edge = real(digits) * (1 << bits)
                slack = Decimal(2) ** -8
                if value + 1 < edge - slack:
                    return bits, value, True
                if value > edge + slack:
                    return bits, value, False
            value = (value << 64) | int(self._stream.words(1)[0])
            bits += 64


def _weight(j: int, k: int, sigma: int, digits: int) -> Decimal:
    with localcontext() as context:
        context.prec = digits + 10
        return (Decimal(-j * (2 * k * sigma + j)) / Decimal(2 * sigma * sigma)).exp()


def _share(k: int, digits: int) -> Decimal:
    """Return P(K <= k), with the normalization truncated where it has no effect."""
    with localcontext() as context:
        context.prec = digits + 10
        weights: list[Decimal] = []
        index = 0
        while index <= k or weights[-1] > Decimal(10) ** -(digits + 5):
            weights.append((Decimal(-index * index) / 2).exp())
            index += 1
        return sum(weights[: k + 1], Decimal(0)) / sum(weights, Decimal(0))


def _cells() -> Words:
    """Return the 63-bit cells of the table's boundaries; the last one takes the remainder."""
    with localcontext() as context:
        context.prec = 80
        cells = [int(_share(k, 60) * (1 << 63)) for k in range(_LAST_K)]
    return np.array([*cells, (1 << 63) - 1], dtype=np.uint64)


_CELLS = _cells()
