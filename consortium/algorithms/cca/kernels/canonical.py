"""Canonical correlations from a covariance matrix that carries the noise of a private release.

Source: Hotelling (1936) for two views; for more, MAXVAR (Kettenring 1971), which takes the largest
eigenvalues after whitening each view. The noise is a symmetric Gaussian matrix with variance σ² on
the diagonal and σ²/2 outside it. It raises large eigenvalues, lowers small ones and rotates all
eigenvectors, by amounts that are known on average. An eigenvector is weighted by the data's
remaining variance λ along it, by √λ/(λ + e) with e = σ √(2D), the noise's spectral norm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consortium.base.array import Array

_ROUNDING = 1e-9
"""Smallest variance of a view over its largest: above the rounding of single precision."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Directions of one view that stand out of the noise."""

    vectors: Array
    """D x k. Orthonormal columns."""
    variances: Array
    """Length k. λ, the data's variance along them, descending and positive."""
    edge: float = 0.0
    """e, spectral norm of the noise."""

    @cached_property
    def factors(self) -> Array:
        """√λ/(λ + e), which whitens without noise, and never amplifies noise: length k."""
        return np.asarray(np.sqrt(self.variances) / (self.variances + self.edge))

    @property
    def weighting(self) -> Array:
        """D x k, transforms the view into k uncorrelated numbers with variances of at most 1."""
        return np.asarray(self.vectors * self.factors)

    @property
    def patterns(self) -> Array:
        """D x k, covariances of the view with these numbers."""
        return np.asarray(self.vectors * (self.factors * self.variances))

    def sizes(self, coordinates: Array) -> Array:
        """Return standard deviations of combinations (k x K) of these numbers: length K."""
        known = np.square(self.factors) * self.variances
        return np.asarray(np.sqrt(known @ np.square(coordinates)))


@dataclass(frozen=True, eq=False)
class Canonical:
    """Canonical variates in the whitened coordinates of each view."""

    correlations: Array
    """Length K. Descending; with more than two views the mean over the pairs of views."""
    coordinates: tuple[Array, ...]
    """Each k_v x K. Columns of norm 1, or 0 where the views have no further variate."""


def symmetric_edge(size: int, deviation: float) -> float:
    """Return the spectral norm e of the noise: σ √(2D)."""
    return deviation * float(np.sqrt(2.0 * size))


def clean_spectrum(covariance: Array, deviation: float, least: float) -> Spectrum:
    """Return eigenpairs of a view's noisy covariance, corrected for the noise's expectation.

    Parameters
    ----------
    covariance : array, D x D
    deviation : float
        σ of the noise.
    least : float
        Directions with less variance than this number of e are excluded: whitening would amplify
        the noise along them. Without noise, only directions of rounding size are excluded, as when
        entries have a constant sum.
    """
    values, vectors = np.linalg.eigh(covariance)
    edge = symmetric_edge(len(covariance), deviation)
    cleaned = _cleaned(values, deviation, edge)
    rounding = _ROUNDING * float(np.abs(values).max())
    kept = np.flatnonzero(cleaned > max(least * edge, rounding))
    kept = kept[np.argsort(-cleaned[kept], kind="stable")]
    return Spectrum(vectors[:, kept], cleaned[kept], edge)


def _cleaned(values: Array, deviation: float, edge: float) -> Array:
    """Return the expected variance of the data along each noisy eigenvector: length D.

    λ_i − σ² Σ_j 1/(λ_i − λ_j), with the poles smoothed over e/√D (Bun, Allez, Bouchaud and Potters
    2016, rotationally invariant estimators). For one direction above noise it is λ − e²/(2λ), and
    for equal variances their mean.
    """
    if deviation == 0:
        return np.asarray(np.maximum(values, 0.0))
    gaps = values[:, None] - values
    pushed = gaps / (np.square(gaps) + edge**2 / len(values))
    return np.asarray(np.maximum(values - deviation**2 * pushed.sum(axis=1), 0.0))


def solve_canonical(correlations: Sequence[Sequence[Array]], pairs: int) -> Canonical:
    """Solve for the leading canonical variates of whitened views.

    Parameters
    ----------
    correlations : nested sequence of array
        Entry [u][v], u < v, is the k_u x k_v matrix of correlations of view u's whitened
        coordinates with view v's. Others are not looked at.
    pairs : int
        K; if the views have fewer, the rest is zero.
    """
    sizes = [len(correlations[0][0]), *(each.shape[1] for each in correlations[0][1:])]
    if min(sizes) == 0:
        found = np.zeros(0)
        parts = [np.zeros((size, 0)) for size in sizes]
    elif len(sizes) == 2:
        left, found, right = np.linalg.svd(correlations[0][1], full_matrices=False)
        parts = [left, right.T]
    else:
        found, parts = _maxvar(correlations, sizes)
    count = min(pairs, len(found))
    values = np.zeros(pairs)
    values[:count] = np.clip(found[:count], 0.0, 1.0)
    return Canonical(values, tuple(_padded(part[:, :count], pairs) for part in parts))


def _maxvar(
    correlations: Sequence[Sequence[Array]], sizes: Sequence[int]
) -> tuple[Array, list[Array]]:
    values, vectors = np.linalg.eigh(_whitened(correlations, sizes))
    count = min(sizes)
    parts = np.split(vectors[:, ::-1][:, :count], np.cumsum(sizes)[:-1])
    norms = [np.linalg.norm(part, axis=0) for part in parts]
    units = [part / np.where(norm > 0, norm, 1.0) for part, norm in zip(parts, norms, strict=True)]
    return (values[::-1][:count] - 1.0) / (len(sizes) - 1), units


def _whitened(correlations: Sequence[Sequence[Array]], sizes: Sequence[int]) -> Array:
    """Return correlations of all whitened coordinates; those of one view are uncorrelated."""
    stops = np.cumsum(sizes)
    whole = np.eye(stops[-1])
    for u, v in view_pairs(len(sizes)):
        rows = slice(stops[u] - sizes[u], stops[u])
        columns = slice(stops[v] - sizes[v], stops[v])
        whole[rows, columns] = correlations[u][v]
        whole[columns, rows] = correlations[u][v].T
    return whole


def largest_correlation(correlations: Sequence[Sequence[Array]], sizes: Sequence[int]) -> float:
    """Return the first canonical correlation as `solve_canonical` does, without its variates."""
    if len(sizes) == 2:
        found = np.linalg.svd(correlations[0][1], compute_uv=False)[0]
    else:
        top = np.linalg.eigvalsh(_whitened(correlations, sizes))[-1]
        found = (top - 1.0) / (len(sizes) - 1)
    return float(np.clip(found, 0.0, 1.0))


def view_pairs(count: int) -> list[tuple[int, int]]:
    """Return every pair of views once, for canonical correlations."""
    return [(u, v) for u in range(count) for v in range(u + 1, count)]


def _padded(part: Array, pairs: int) -> Array:
    return np.pad(part, ((0, 0), (0, pairs - part.shape[1])))
