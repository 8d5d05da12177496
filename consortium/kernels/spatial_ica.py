"""Spatial independent component analysis: maps that are as far from Gaussian as possible.

The method is FastICA with symmetric decorrelation (Hyvärinen 1999) over voxels instead of time,
from several random starts. It uses released maps only, so it costs no privacy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from consortium.base.array import Array

ITERATIONS = 300
TOLERANCE = 1e-5
"""Tolerance of 1 minus the cosine between an axis and itself an iteration before."""
_FLAT = 0.25
"""A map is nearly constant if its variance is below this fraction of its mean square."""
GAUSSIAN = 0.3745672075
"""E[log cosh x] of a standard Gaussian variable."""


@dataclass(frozen=True, eq=False)
class Separation:
    """Independent maps with their unmixing."""

    maps: Array
    """Mean 0 and variance 1 over the voxels, in any order and sign. Shape (V, R')."""
    unmixing: Array
    """Matrix that turns the centred input into ``maps``, shape (R, R')."""
    contrast: Array
    """|E log cosh - Gaussian's| of each map, 0 for a Gaussian one. Shape (R',)."""


def whiten(maps: Array, keep: int | None = None) -> tuple[Array, Array]:
    """Centre maps (V x R) and make them white.

    Parameters
    ----------
    maps : array, shape (V, R)
    keep : int, optional
        R', dimensions to keep (default: all except nearly constant ones, which centring removes
        almost completely).

    Returns
    -------
    white : array, shape (V, R')
    whitening : array, shape (R, R')
        Matrix that turns the centred maps into ``white``.
    """
    mean = maps.mean(axis=0)
    second = maps.T @ maps / len(maps)
    second[np.diag_indices_from(second)] += 1e-12 * np.trace(second) + np.finfo(np.float64).tiny
    # Fraction of each direction's mean square that is variance: from 0 to 1.
    values, vectors = eigh(second - np.outer(mean, mean), second)
    many = int(np.count_nonzero(values > _FLAT)) if keep is None else keep
    kept = slice(len(values) - many, None)
    whitening = vectors[:, kept] / np.sqrt(np.maximum(values[kept], 1e-12))
    # All except one of the values are 1, so rounding would choose their axes. Rotate to the maps'.
    whitening = whitening @ nearest_rotation(whitening.T[:, : whitening.shape[1]])
    return (maps - mean) @ whitening, whitening


def nearly_constant(maps: Array) -> NDArray[np.bool_]:
    """Return whether each map (V x R) is nearly constant, as for a global signal."""
    return np.asarray(maps.var(axis=0) <= _FLAT * np.mean(np.square(maps), axis=0))


def fast_ica(
    white: Array, start: Array, iterations: int = ITERATIONS, tolerance: float = TOLERANCE
) -> Array:
    """Run FastICA with log cosh from one start, for spatial maps.

    Parameters
    ----------
    white : array, shape (V, R)
        White maps.
    start : array, shape (R, R)
        Any invertible matrix; its rows are the first axes.

    Returns
    -------
    array, shape (R, R)
        Rotation W: ``white @ W.T`` are the independent maps.
    """
    rotation = nearest_rotation(start)
    for _ in range(iterations):
        scores = np.tanh(white @ rotation.T)
        slopes = 1.0 - np.mean(np.square(scores), axis=0)
        turned = nearest_rotation(scores.T @ white / len(white) - slopes[:, None] * rotation)
        change = np.abs(np.abs(np.einsum("ij,ij->i", turned, rotation)) - 1.0).max()
        rotation = turned
        if change < tolerance:
            break
    return rotation


def separate(
    maps: Array,
    starts: int,
    generator: np.random.Generator,
    keep: int | None = None,
    iterations: int = ITERATIONS,
) -> Separation:
    """Return independent maps from the best of several starts.

    Parameters
    ----------
    maps : array, shape (V, R)
        Maps that span the same space.
    generator : numpy.random.Generator
        Random generator of the starts.
    keep : int, optional
        Number of components, at most R (default: as in `whiten`).
    """
    white, whitening = whiten(maps, keep)
    size = white.shape[1]
    if not size:
        return Separation(white, whitening, np.zeros(0))
    best: tuple[float, Array, Array] | None = None
    for _ in range(starts):
        rotation = fast_ica(white, generator.standard_normal((size, size)), iterations)
        contrast = non_gaussianity(white @ rotation.T)
        total = float(np.square(contrast).sum())
        if best is None or total > best[0]:
            best = total, rotation, contrast
    assert best is not None  # noqa: S101 - at least one start
    _, rotation, contrast = best
    return Separation(white @ rotation.T, whitening @ rotation.T, contrast)


def non_gaussianity(maps: Array) -> Array:
    """Return the deviation of each white map (V x R) from a Gaussian."""
    sizes = np.abs(maps)
    means = np.mean(sizes + np.log1p(np.exp(-2.0 * sizes)), axis=0)  # log cosh x + log 2
    return np.asarray(np.abs(means - np.log(2.0) - GAUSSIAN))


def one_sign(vectors: Array) -> Array:
    """Return columns with a positive sum of cubes; a library's sign depends on rounding."""
    return np.asarray(vectors * np.where(np.sum(vectors**3, axis=0) < 0, -1.0, 1.0))


def nearest_rotation(axes: Array) -> Array:
    """Return the nearest rotation, (W Wᵀ)^(-1/2) W."""
    left, _, right = np.linalg.svd(axes)
    return np.asarray(left @ right)
