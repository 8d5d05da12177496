"""Share of the participants who have each entry, estimated from noisy shares.

Coverage is the same over whole parts of an image, and noise is not. Where places are known, shares
are averaged over cubes that are halved again and again, and a cube's own mean is taken where it
differs from the mean of the cube around it by more than noise explains. Without places every share
is drawn to the mean of all by the factor of James and Stein. Both are done to released numbers and
change no sensitivity.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array

_MOST_LEVELS = 12
_LEAST_CLEAR = 3.0
"""Standard deviations of noise by which a cube differs at least, however few cubes there are."""
_SURE = 2.0
"""Standard deviations by which a share is below a half before its entry is withheld."""
_HALF = 0.5
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Shares:
    """Estimated shares of the participants, of every entry."""

    values: Array
    """Length D, between 0 and 1."""
    variances: Array
    """Length D. Variance of ``values`` by noise."""

    @property
    def withheld(self) -> Array:
        """Entries whose share is below a half by more than two standard deviations of its noise."""
        below = _HALF - self.values - _ROUNDING
        return np.asarray(below > _SURE * np.sqrt(self.variances))

    @property
    def divisors(self) -> Array:
        """Shares to divide sums by: no less than a half."""
        return np.asarray(np.clip(self.values, _HALF, 1.0))

    @property
    def unsure(self) -> Array:
        """Variance of the divisors by noise over their squares."""
        return np.asarray(self.variances / np.square(self.divisors))


def estimate_shares(
    shares: Array, noise: float, parts: Sequence[tuple[slice, Array | None]] = ()
) -> Shares:
    """Estimate shares part by part.

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
    return Shares(np.clip(values, 0.0, 1.0), variances)


def _drawn_together(shares: Array, noise: float) -> tuple[Array, Array]:
    """Shares drawn to their mean as far as they are noise, and their variance by noise."""
    mean, variance = float(shares.mean()), noise**2
    around = float(np.mean(np.square(shares - mean)))
    kept = max(0.0, 1 - variance / around) if around > 0 else 0.0
    left = variance * (kept + (1 - kept) / len(shares))
    return mean + kept * (shares - mean), np.full(len(shares), left)


def _by_cubes(shares: Array, noise: float, places: Array) -> tuple[Array, Array]:
    """Mean of the smallest cube around each entry that differs clearly, and its variance."""
    found = np.full(len(shares), shares.mean())
    variances = np.full(len(shares), noise**2 / len(shares))
    for cubes in _halved(places):
        sizes = np.bincount(cubes)
        deviations = noise / np.sqrt(sizes)
        means = np.bincount(cubes, shares) / sizes
        apart = np.abs(means - np.bincount(cubes, found) / sizes)
        clear = apart > max(_LEAST_CLEAR, math.sqrt(2 * math.log(len(sizes)))) * deviations
        chosen = clear[cubes]
        found = np.where(chosen, means[cubes], found)
        variances = np.where(chosen, np.square(deviations)[cubes], variances)
    return found, variances


def _halved(places: Array) -> Iterator[Array]:
    """Number of each place's cube, of cubes that are halved until each has one place."""
    start = places.min(axis=0)
    edge = float(np.ptp(places, axis=0).max()) * (1 + 1e-9)
    for _ in range(_MOST_LEVELS if edge > 0 else 0):
        edge /= 2
        corners = np.floor((places - start) / edge).astype(np.int64)
        _, cubes = np.unique(corners, axis=0, return_inverse=True)
        yield cubes.ravel()
        if cubes.max() + 1 == len(places):
            return
