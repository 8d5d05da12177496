"""Canonical correlations from a covariance matrix that carries the noise of a private release.

Source: Hotelling (1936) for two views; for more, MAXVAR (Kettenring 1971): the largest eigenvalues
of the matrix whose views are whitened. The noise is a symmetric Gaussian matrix with variance σ² on
the diagonal and σ²/2 beside it. Around a covariance of low rank it moves an eigenvalue θ to
λ = θ + e²/(4θ) with e = σ √(2D), and leaves cos² = 1 − e²/(4θ²) of its eigenvector (Benaych-Georges
and Nadakuditi 2011, section 3.1). So the data's own variance along the eigenvector that is seen is
θ cos² = √(λ² − e²), which is what a direction is whitened with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Directions of one view that stand out of the noise.

    Parameters
    ----------
    vectors : array, D x k
        Orthonormal columns.
    variances : array, length k
        The data's variance along them, descending and positive.
    """

    vectors: Array
    variances: Array

    @property
    def whitening(self) -> Array:
        """D x k, turns the view into k uncorrelated numbers of variance 1."""
        return np.asarray(self.vectors / np.sqrt(self.variances))

    @property
    def patterns(self) -> Array:
        """D x k, covariances of the view with these numbers."""
        return np.asarray(self.vectors * np.sqrt(self.variances))


@dataclass(frozen=True, eq=False)
class Canonical:
    """Canonical variates in the whitened coordinates of each view.

    Parameters
    ----------
    correlations : array, length K
        Descending; with more than two views the mean over the pairs of views.
    coordinates : tuple of array, each k_v x K
        Columns of norm 1, or 0 where the views have no further variate.
    """

    correlations: Array
    coordinates: tuple[Array, ...]


def symmetric_edge(size: int, deviation: float) -> float:
    """Spectral norm e of the noise alone: σ √(2D)."""
    return deviation * float(np.sqrt(2.0 * size))


def clean_spectrum(covariance: Array, deviation: float, least: float) -> Spectrum:
    """Eigenpairs of a view's noisy covariance, freed of the noise as far as it is known.

    Parameters
    ----------
    covariance : array, D x D
    deviation : float
        σ of the noise.
    least : float
        Directions with less variance than this many e are left out: whitening would blow up
        the noise along them. Without noise, all that rounding leaves are kept.
    """
    values, vectors = np.linalg.eigh(covariance)
    edge = symmetric_edge(len(covariance), deviation)
    cleaned = np.sqrt(np.maximum(values, 0.0) ** 2 - np.minimum(edge, np.maximum(values, 0.0)) ** 2)
    rounding = len(values) * np.finfo(np.float64).eps * float(np.abs(values).max())
    kept = np.flatnonzero(cleaned > max(least * edge, rounding))[::-1]
    return Spectrum(vectors[:, kept], cleaned[kept])


def canonical(correlations: Sequence[Sequence[Array]], pairs: int) -> Canonical:
    """Solve for the leading canonical variates of whitened views.

    Parameters
    ----------
    correlations : nested sequence of array
        Entry [u][v], u < v, is the k_u x k_v matrix of correlations of view u's whitened
        coordinates with view v's; others are not looked at.
    pairs : int
        K; where the views hold fewer, the rest is zero.
    """
    sizes = [len(correlations[0][0]), *(each.shape[1] for each in correlations[0][1:])]
    if min(sizes) == 0:
        found, parts = np.zeros(0), [np.zeros((size, 0)) for size in sizes]
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
    stops = np.cumsum(sizes)
    whole = np.eye(stops[-1])
    for u, v in pairs_of(len(sizes)):
        rows = slice(stops[u] - sizes[u], stops[u])
        columns = slice(stops[v] - sizes[v], stops[v])
        whole[rows, columns] = correlations[u][v]
        whole[columns, rows] = correlations[u][v].T
    count = min(sizes)
    values, vectors = np.linalg.eigh(whole)
    parts = np.split(vectors[:, ::-1][:, :count], stops[:-1])
    norms = [np.linalg.norm(part, axis=0) for part in parts]
    units = [part / np.where(norm > 0, norm, 1.0) for part, norm in zip(parts, norms, strict=True)]
    return (values[::-1][:count] - 1.0) / (len(sizes) - 1), units


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Every pair of views once."""
    return [(u, v) for u in range(count) for v in range(u + 1, count)]


def _padded(part: Array, pairs: int) -> Array:
    return np.pad(part, ((0, 0), (0, pairs - part.shape[1])))
