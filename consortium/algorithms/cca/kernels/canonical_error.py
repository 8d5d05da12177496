"""Uncertainty of a canonical correlation: its null distribution, and an interval.

The whitening of each view is given. The noise of the blocks between views is independent of it, and
its distribution is known. So these blocks are drawn again, any number of times, to find the
distribution of a correlation without any link, and with a link of any strength. All of this is
after the release.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from scipy.special import betaincinv

from consortium.algorithms.cca.kernels.canonical import Spectrum, largest_correlation, view_pairs
from consortium.base.array import Array

Blocks = list[list[Array]]

_WORK = 40_000_000
"""Multiplications that decompositions of draws may take; large matrices vary little."""
_FEWEST = 40
_MOST = 300
_TINY = 1e-9
_UNEVEN = 1.1  # chance over that of one law, where scales differ twofold from site to site
_ROOM = 1.2  # for errors that draws with the given weights don't include: benchmarks.uneven
_STRENGTHS = 26  # candidates for a correlation, from 0 to 1


@dataclass(frozen=True, eq=False)
class CrossNoise:
    """Distribution of weighted blocks between views of which none is linked."""

    spectra: Sequence[Spectrum]
    means: Sequence[Array]
    """Each k_v x S. Subtracted means of each site, along the spectrum's directions."""
    parts: Array
    """Length S. Fractions of the participants; none if nothing was subtracted."""
    constant: float
    """c."""
    deviation: float
    """σ of the release."""
    persons: int
    """n."""

    def privacy(self, generator: np.random.Generator) -> Blocks:
        """Draw the part of the noise of privacy.

        Of a block that is centred within sites, C = M − Σ π m mᵀ, the means' noise is in it too.
        """
        half = self.deviation / np.sqrt(2.0)
        levels = half / (self.constant * self.parts) if len(self.parts) else np.zeros(0)
        moved = [levels * generator.standard_normal(each.shape) for each in self.means]
        found = self._empty()
        for u, v in view_pairs(len(self.spectra)):
            shape = len(self.spectra[u].variances), len(self.spectra[v].variances)
            block = half * generator.standard_normal(shape)
            left = self.parts * self.means[u]
            right = self.parts * moved[u]
            block -= left @ moved[v].T + right @ self.means[v].T + right @ moved[v].T
            found[u][v] = self._weighted(u, v, block)
        return found

    def chance(self, generator: np.random.Generator) -> Blocks:
        """Draw the sampling error.

        The variance along a direction is at most λ + e for any noise. Scanners of different scales,
        which no release reveals, make the sampling error larger than participants of one
        distribution do.
        """
        found = self._empty()
        for (u, v), spread in self._spreads.items():
            block = spread * generator.standard_normal(spread.shape)
            found[u][v] = self._weighted(u, v, _UNEVEN * block / np.sqrt(self.persons))
        return found

    def _weighted(self, u: int, v: int, block: Array) -> Array:
        return np.asarray(self._factors[u, v] * block)

    @cached_property
    def _factors(self) -> dict[tuple[int, int], Array]:
        """Weights of the block of each pair of views, k_u x k_v."""
        return self._products([each.factors for each in self.spectra])

    @cached_property
    def _spreads(self) -> dict[tuple[int, int], Array]:
        """Deviations of one participant in the block of each pair of views, k_u x k_v."""
        return self._products([np.sqrt(each.variances + each.edge) for each in self.spectra])

    def _products(self, each: Sequence[Array]) -> dict[tuple[int, int], Array]:
        return {(u, v): np.outer(each[u], each[v]) for u, v in view_pairs(len(each))}

    def _empty(self) -> Blocks:
        return [[np.zeros((len(s.variances), 0))] * len(self.spectra) for s in self.spectra]

    def draws(self) -> int:
        """Return the number of draws."""
        sizes = [len(each.variances) for each in self.spectra]
        cost = sum(sizes) ** 3 if len(sizes) > 2 else sizes[0] * sizes[1] * min(sizes)
        return int(np.clip(_WORK // max(cost, 1) // 10, _FEWEST, _MOST))

    def floor(self, generator: np.random.Generator, quantile: float = 0.95) -> float:
        """Return the quantile of the largest weighted correlation of views without any link.

        That of a later pair, under earlier pairs that are linked, is below the same floor: adding
        a matrix of rank k moves the (k + 1)-th singular value up by no more than the other's
        largest (Weyl).
        """
        sizes = [len(each.variances) for each in self.spectra]
        if min(sizes) == 0:
            return 1.0
        drawn = (
            _added(self.privacy(generator), self.chance(generator)) for _ in range(self.draws())
        )
        return float(np.quantile([largest_correlation(each, sizes) for each in drawn], quantile))


def captured_share(sizes: Sequence[int], kept: Sequence[int], tail: float = 0.05) -> float:
    """Return the smallest fraction of a canonical correlation along directions above the noise.

    A correlation is the same in any coordinates of a view. So the link need not be along directions
    of large variance. It is assumed to have any direction of the whitened view with equal
    probability: the fraction of its squared length in k directions of D then has the distribution
    Beta(k/2, (D - k)/2). The fraction of the correlation is the product of the views' lengths, each
    at its ``tail`` quantile.

    Parameters
    ----------
    sizes, kept : sequence of int
        D and k of each view.
    tail : float
        Probability of a smaller fraction of a view.
    """
    squares = [
        float(betaincinv(k / 2.0, (size - k) / 2.0, tail)) if 0 < k < size else float(k > 0)
        for size, k in zip(sizes, kept, strict=True)
    ]
    return float(np.sqrt(np.prod(squares)))


def correlation_interval(
    law: CrossNoise,
    solved: tuple[Array, Array, Array],
    scales: tuple[Array, Array],
    number: int,
    generator: np.random.Generator,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return an interval of the correlation of pair ``number`` of two views.

    Parameters
    ----------
    law : CrossNoise
        Of two views.
    solved : tuple of array
        Left vectors (k_1 x K), weighted correlations (K) and right vectors (k_2 x K).
    scales : tuple of array, each of length K
        Ratio of a weighted correlation to a correlation, and its standard deviation, over the
        correlation, by the noise in the variates' own variances.
    number : int
        Counted from 0; earlier pairs have their estimated strengths.
    level : float
        Between 0 and 1.

    Returns
    -------
    low, high : float
        The test is inverted over candidates from 0 to 1, between which its statistic is
        interpolated; (0, 1) if no candidate is accepted.
    """
    left, values, right = solved
    scale = scales[0][number]
    scale_error = scales[1][number]
    fixed = (left[:, :number] * values[:number]) @ right[:, :number].T
    own = np.outer(left[:, number], right[:, number])
    count = max(law.draws() // 5, _FEWEST)
    noises = np.stack([law.privacy(generator)[0][1] for _ in range(count)])
    chances = np.stack([law.chance(generator)[0][1] for _ in range(count)])
    along = np.einsum("ij,kij->k", own, chances)[:, None, None] * own
    errors = scale_error * generator.standard_normal(count)
    candidates = np.linspace(0.0, 1.0, _STRENGTHS)
    tail = (1.0 - level) / 2.0
    seen = values[number] / scale
    surprise = []
    for strength in candidates:
        left_over = np.sqrt(1.0 - strength**2)
        moved = left_over * (chances + (left_over - 1.0) * along)
        whole = fixed + scale * strength * own + noises + moved
        drawn = np.linalg.svd(whole, compute_uv=False)[:, number] / scale + strength * errors
        # A normal law through mean and spread: tails of few draws are too rough.
        surprise.append((seen - float(drawn.mean())) / max(float(drawn.std(ddof=1)), _TINY))
    return _ends(candidates, np.array(surprise), -_ROOM * NormalDist().inv_cdf(tail))


def _ends(candidates: Array, surprise: Array, most: float) -> tuple[float, float]:
    """Return the first and last strength under which the estimate is not extreme."""
    low = _crossing(candidates, surprise - most)
    high = 1.0 - _crossing(1.0 - candidates[::-1], -surprise[::-1] - most)
    return (low, high) if low < high else (0.0, 1.0)


def _crossing(places: Array, heights: Array) -> float:
    """Return where heights first reach zero, linearly between places."""
    down = np.flatnonzero(heights <= 0.0)
    if not len(down):
        return float(places[-1])
    if down[0] == 0:
        return float(places[0])
    before = down[0] - 1
    after = down[0]
    part = heights[before] / (heights[before] - heights[after])
    return float(places[before] + part * (places[after] - places[before]))


def _added(first: Blocks, second: Blocks) -> Blocks:
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(first, second, strict=True)]
