"""Where the bulk of a released second moment's eigenvalues ends: what is beyond is structure.

The bulk has three causes: the data's own white part, which every direction has; chance, as samples
are few; and the noise of privacy. Of the last the law is known. The first is read from the bulk's
middle, and chance from how far the lower half spreads, which structure, being at the top, leaves
as it is. Replays of all three tell what the largest of the bulk reaches by chance. An interval of
what is told allows for its being told only because it came out large.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from consortium.base.array import Array
from consortium.kernels.noise_law import SymmetricNoise

_LARGEST = 120  # rows of a replayed matrix: smaller ones spread more, which errs on the safe side
_REPLAYS, _TRIES = 200, 4
_LOW = 0.1
_LEVEL = 0.97
_MOST_RATIO = 4.0
_TAIL = 0.025
_REACH = 50.0  # deviations; an end further away is as good as none


@dataclass(frozen=True)
class Bulk:
    """The bulk of a spectrum."""

    middle: float
    """Median of the eigenvalues."""
    edge: float
    """What the largest of the bulk exceeds in one release of 33."""


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
    """Mean of what lies no further above the median than the least eigenvalue lies below it."""
    top = 2.0 * float(np.median(values)) - float(values.min())
    return max(float(values[values <= top].mean()), 0.0)


def _drawn(
    level: float, ratio: float, law: SymmetricNoise, generator: np.random.Generator
) -> Array:
    """Eigenvalues of a moment without structure: chance of rows/ratio samples, and noise."""
    columns = max(round(law.size / ratio), 1)
    half = _wishart_root(law.size, columns, generator)
    return np.linalg.eigvalsh(level / columns * (half @ half.T) + law.draw(generator))


def _wishart_root(rows: int, columns: int, generator: np.random.Generator) -> Array:
    """A root of G Gᵀ for Gaussian G, rows x columns: Bartlett's triangle, where G is wide."""
    if columns < rows:
        return generator.standard_normal((rows, columns))
    root = np.tril(generator.standard_normal((rows, rows)), -1)
    root[np.diag_indices(rows)] = np.sqrt(generator.chisquare(columns - np.arange(rows)))
    return root


def freed_variances(values: Array, leading: int, deviation: float) -> tuple[Array, Array, float]:
    """Variance that data really have along the leading eigenvectors of a noisy moment.

    An eigenvector turns to where noise is large: λ holds, beside vᵀ A v, vᵀ N v, which is expected
    to be σ² Σ 1/(λ − λ_j) over all other eigenvalues (Dyson's formula; N has variance σ² along
    every direction).

    Parameters
    ----------
    values : array, length D
        All eigenvalues, the largest first.
    leading : int
        k, of which it is asked; they stand out of the bulk.
    deviation : float
        σ.

    Returns
    -------
    variances : array, length k
    doubts : array, length k
        How unsure each is of what the others push it by: those of the bulk, since that sum
        varies with the noise by as much as each of its terms, and its neighbours, whose push is
        unsure where they have nearly one variance.
    doubt : float
        The same of the sum of all k, which the bulk alone pushes.
    """
    gaps = values[:leading, None] - values[None, :]
    sizes = np.maximum(np.abs(gaps), np.finfo(np.float64).tiny)
    # Two directions of one variance are pushed apart by noise, and no further than to one value.
    pushed = np.sign(gaps) * np.minimum(deviation**2 / sizes, sizes / 2.0)
    squares = np.square(pushed)
    together = float(np.sqrt(squares[:, leading:].sum()))
    return values[:leading] - pushed.sum(axis=1), np.sqrt(squares.sum(axis=1)), together


def selective_interval(value: float, deviation: float, threshold: float) -> tuple[float, float]:
    """95 % interval for the mean of a normal number that is told if it passes a threshold.

    Far beyond the threshold this is the usual one. Near it a number is there because chance was
    kind, and the lower end lies far below: of those told, 95 % hold the truth.

    Parameters
    ----------
    value : float
        Beyond the threshold.

    Returns
    -------
    low, high : float
        Minus infinity for a low end that is out of sight.

    Notes
    -----
    For Z ~ N(θ, s²) given Z > t the chance of Z >= z, Φ((θ - z)/s) / Φ((θ - t)/s), grows with θ;
    the ends are where it is .025 and .975 (Lee, Sun, Sun & Taylor 2016, with one cut).
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
