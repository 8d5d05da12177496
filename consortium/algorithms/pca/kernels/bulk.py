"""The edge of the bulk of a released second moment's eigenvalues: larger ones are structure.

The bulk has three causes: the data's own white part, which every direction has; sampling error,
since samples are few; and the privacy noise, whose distribution is known. The white part is
estimated from the middle of the bulk, and the sampling error from the spread of its lower half,
which structure at the top does not affect. Replays of all three give the distribution of the bulk's
largest eigenvalue. An interval of a reported value accounts for its selection.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from consortium.base.array import Array
from consortium.kernels.noise_law import SymmetricNoise

_LARGEST = 120  # rows of a replayed matrix: smaller ones spread more, which errs on the safe side
_REPLAYS = 200
_TRIES = 4
_LOW = 0.1
_LEVEL = 0.97
_MOST_RATIO = 4.0
_TAIL = 0.025
_REACH = 50.0  # deviations; an end further away is as good as none


@dataclass(frozen=True)
class Bulk:
    """The bulk of a released spectrum: eigenvalues that noise and chance explain."""

    middle: float
    """Median of the eigenvalues."""
    edge: float
    """Quantile of the bulk's largest eigenvalue, exceeded in one release of 33."""


def find_bulk(
    values: Array, deviation: float, samples: int, generator: np.random.Generator
) -> Bulk:
    """Find the bulk of a released moment's spectrum.

    Parameters
    ----------
    values : array, length D
        All eigenvalues.
    deviation : float
        Of the noise in a packed entry.
    samples : int
        Of which the moment is the mean; fewer count if their scales differ or they are alike.
    """
    middle = float(np.median(values))
    level = _white_part(values)
    rows = min(len(values), _LARGEST)
    # So that the semicircle of noise has the same radius.
    law = SymmetricNoise(rows, deviation * float(np.sqrt(len(values) / rows)))
    spread = middle - float(np.quantile(values, _LOW))
    ratio = len(values) / max(samples, 1)
    while ratio < _MOST_RATIO:
        made = [_drawn(level, ratio, law, generator) for _ in range(_TRIES)]
        if np.mean([np.median(x) - np.quantile(x, _LOW) for x in made]) >= spread:
            break
        ratio *= 1.3
    tops = [
        np.ptp(np.quantile(_drawn(level, ratio, law, generator), (0.5, 1.0)))
        for _ in range(_REPLAYS)
    ]
    return Bulk(middle, middle + float(np.quantile(tops, _LEVEL)))


def _white_part(values: Array) -> float:
    """Return the mean of eigenvalues within the smallest one's distance of the median."""
    top = 2.0 * float(np.median(values)) - float(values.min())
    return max(float(values[values <= top].mean()), 0.0)


def _drawn(
    level: float, ratio: float, law: SymmetricNoise, generator: np.random.Generator
) -> Array:
    """Draw eigenvalues of a moment without structure, from rows/ratio samples, with noise."""
    columns = max(round(law.size / ratio), 1)
    half = _wishart_root(law.size, columns, generator)
    return np.linalg.eigvalsh(level / columns * (half @ half.T) + law.draw(generator))


def _wishart_root(rows: int, columns: int, generator: np.random.Generator) -> Array:
    """Draw a root of G Gᵀ for Gaussian G, rows x columns: Bartlett's triangle if G is wide."""
    if columns < rows:
        return generator.standard_normal((rows, columns))
    root = np.tril(generator.standard_normal((rows, rows)), -1)
    root[np.diag_indices(rows)] = np.sqrt(generator.chisquare(columns - np.arange(rows)))
    return root


def freed_variances(values: Array, leading: int, deviation: float) -> tuple[Array, Array, float]:
    """Estimate the data's variance along the leading eigenvectors of a noisy moment.

    An eigenvector rotates towards large noise: λ is the sum of vᵀ A v and vᵀ N v, whose expectation
    is σ² Σ 1/(λ − λ_j) over all other eigenvalues (Dyson's formula; N has variance σ² along every
    direction).

    Parameters
    ----------
    values : array, length D
        All eigenvalues, the largest first.
    leading : int
        k, number of requested ones, which exceed the bulk.
    deviation : float
        σ.

    Returns
    -------
    variances : array, length k
    errors : array, length k
        Standard error of each correction: by the bulk, since that sum varies with the noise by as
        much as each of its terms, and by neighbours, whose terms are uncertain if they have nearly
        equal variances.
    total_error : float
        The same for the sum of all k, which only the bulk affects.
    """
    gaps = values[:leading, None] - values[None, :]
    sizes = np.maximum(np.abs(gaps), np.finfo(np.float64).tiny)
    # Two directions of one variance are pushed apart by noise, and no further than to one value.
    pushed = np.sign(gaps) * np.minimum(deviation**2 / sizes, sizes / 2.0)
    squares = np.square(pushed)
    together = float(np.sqrt(squares[:, leading:].sum()))
    return values[:leading] - pushed.sum(axis=1), np.sqrt(squares.sum(axis=1)), together


def selective_interval(value: float, deviation: float, threshold: float) -> tuple[float, float]:
    """Return a 95 % interval for the mean of a normal number that is reported above a threshold.

    Far above the threshold this is the usual one. Near it, a number was selected by its sampling
    error, and the lower end is far below: 95 % of the reported intervals contain the truth.

    Parameters
    ----------
    value : float
        Above the threshold.

    Returns
    -------
    low, high : float
        Minus infinity for an unbounded lower end.

    Notes
    -----
    For Z ~ N(θ, s²) given Z > t the chance of Z >= z, Φ((θ - z)/s) / Φ((θ - t)/s), grows with θ.
    The ends are where it is .025 and .975 (Lee, Sun, Sun & Taylor 2016, with one cut).
    """
    if deviation == 0.0:
        return value, value
    beyond = max(value - threshold, 0.0) / deviation

    def excess(theta: float, tail: float) -> float:
        return float(log_ndtr(theta) - log_ndtr(theta + beyond)) - math.log(tail)

    def end(tail: float) -> float:
        if excess(-_REACH, tail) >= 0.0:
            return -math.inf
        return value + deviation * float(brentq(excess, -_REACH, _REACH, args=(tail,)))

    if beyond == 0.0:
        return -math.inf, -math.inf
    return end(_TAIL), end(1.0 - _TAIL)
