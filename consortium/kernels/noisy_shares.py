"""Share of the participants who have each entry, estimated from noisy shares.

Coverage is nearly the same at neighbouring places, and noise is not. Where places are known, every
other entry belongs to one of two halves, and the shares of the other half are averaged around each
entry. The reach of the average is the one that predicts the entry best. Averages blur an edge of
the coverage. The noisy shares of a half are therefore averaged again over entries of similar local
averages, as a function that rises with these (isotonic regression). An entry's own share counts in
proportion to the variance of such entries beyond noise. Both steps are unbiased by noise, because
the noise of a half is independent of averages over the other. Without places every share is shrunk
to the mean of all by the factor of James and Stein. Only released numbers are used, so sensitivity
does not change.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import isotonic_regression

from consortium.base.array import Array

_STEP = math.sqrt(2.0)
"""Ratio of successive edges of cubes."""
_FEWEST = 100
"""Least number of entries in a group of similar local averages."""
_MOST_GROUPS = 40
_CLEAR = 3.0
"""Standard deviations by which a mean square exceeds that of noise before shares differ."""
_SURE = 2.0
"""Standard deviations by which a share is below a half before its entry is withheld."""
_HALF = 0.5
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class EstimatedShares:
    """Estimated shares of the participants, of every entry."""

    values: Array
    """Between 0 and 1, length D."""
    variances: Array
    """Variance of ``values`` by noise, length D."""

    @property
    def withheld(self) -> Array:
        """Entries whose share is below a half by more than two standard deviations of its noise."""
        below = _HALF - self.values - _ROUNDING
        return np.asarray(below > _SURE * np.sqrt(self.variances))

    @property
    def divisors(self) -> Array:
        """Shares to divide sums by, at least a half."""
        return np.asarray(np.clip(self.values, _HALF, 1.0))

    @property
    def relative_variance(self) -> Array:
        """Noise variance of the divisors divided by their squares."""
        return np.asarray(self.variances / np.square(self.divisors))


def estimate_shares(
    shares: Array, noise: float, parts: Sequence[tuple[slice, Array | None]] = ()
) -> EstimatedShares:
    """Estimate the shares of participants who have each entry, part by part.

    Parameters
    ----------
    shares : array, length D
        Released shares, each with independent noise.
    noise : float
        Standard deviation of the noise.
    parts : sequence of (slice, array of shape (n, 3) or None)
        Entries that are estimated together and, if known, their places in mm. By default all
        entries are one part without places.

    Examples
    --------
    >>> noisy = np.array([1.0, 1.0, 0.5, 0.5])
    >>> estimate_shares(noisy, 0.0).values.tolist()
    [1.0, 1.0, 0.5, 0.5]
    >>> estimate_shares(noisy, 10.0).values.tolist()
    [0.75, 0.75, 0.75, 0.75]
    """
    values, variances = np.zeros((2, len(shares)))
    for entries, places in parts or ((slice(0, len(shares)), None),):
        own = shares[entries]
        found = _drawn_together(own, noise) if places is None else _by_cubes(own, noise, places)
        values[entries], variances[entries] = found
    return EstimatedShares(np.clip(values, 0.0, 1.0), variances)


def _drawn_together(shares: Array, noise: float) -> tuple[Array, Array]:
    """Return shares shrunk to their mean in proportion to their noise, and their noise variance."""
    mean = float(shares.mean())
    variance = noise**2
    around = float(np.mean(np.square(shares - mean)))
    kept = max(0.0, 1 - variance / around) if around > 0 else 0.0
    left = variance * (kept + (1 - kept) / len(shares))
    return mean + kept * (shares - mean), np.full(len(shares), left)


def _by_cubes(shares: Array, noise: float, places: Array) -> tuple[Array, Array]:
    """Return shares estimated from the places around them, and their noise variance."""
    if not noise:
        return shares, np.zeros(len(shares))
    even = np.arange(len(shares)) % 2 == 0
    best = np.full(len(shares), shares.mean())
    least = float(shares.var())
    for edge in _edges(places):
        averages = _averages_around(shares, places, edge, even)
        error = float(np.mean(np.square(shares - averages)))
        if error < least:
            least = error
            best = averages
    variances = np.full(len(shares), noise**2 / len(shares))
    if np.ptp(best):
        for half in (even, ~even):
            best[half], variances[half] = _calibrated(shares[half], best[half], noise**2)
    return best, variances


def _edges(places: Array) -> Iterator[float]:
    """Yield edges of cubes, from the whole extent to the distance of neighbours."""
    extent = np.ptp(places, axis=0)
    edge = float(extent.max())
    spacing = float(np.prod(np.maximum(extent, edge / len(places))) / len(places)) ** (1 / 3)
    while edge > spacing > 0:
        yield edge
        edge /= _STEP


def _averages_around(shares: Array, places: Array, edge: float, even: Array) -> Array:
    """Return the mean share of the other half in each entry's cubes, shifted by half an edge.

    An average thus contains no share of its own half, so errors of the half are independent of it.
    """
    sums, counts = np.zeros((2, len(shares)))
    for shift in product((0.0, 0.5), repeat=3):
        corners = np.floor((places - places.min(axis=0)) / edge + shift).astype(np.int64)
        own = np.ravel_multi_index(tuple(corners.T), tuple(corners.max(axis=0) + 1))
        for half in (even, ~even):
            sums[~half] += np.bincount(own, shares * half)[own[~half]]
            counts[~half] += np.bincount(own, half)[own[~half]]
    return np.where(counts > 0, sums / np.maximum(counts, 1), shares.mean())


def _calibrated(shares: Array, averages: Array, variance: float) -> tuple[Array, Array]:
    """Return shares as a rising function of local averages, and their variance."""
    groups = np.array_split(
        np.argsort(averages, kind="stable"), np.clip(len(shares) // _FEWEST, 1, _MOST_GROUPS)
    )
    sizes = np.array([float(len(group)) for group in groups])
    means = np.array([shares[group].mean() for group in groups])
    at = np.array([averages[group].mean() for group in groups])
    found = np.interp(averages, at, isotonic_regression(means, weights=sizes).x)
    left = np.zeros(len(shares))
    for group, size in zip(groups, sizes, strict=True):
        apart = shares[group] - found[group]
        surplus = float(np.mean(np.square(apart))) - variance * (1 + _CLEAR * math.sqrt(2 / size))
        kept = max(surplus, 0.0) / (max(surplus, 0.0) + variance)
        found[group] += kept * apart
        left[group] = variance * (kept + (1 - kept) / size)
    return found, left
