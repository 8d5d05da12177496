"""Spatial independent component analysis: maps that are as far from Gaussian as they can be.

FastICA with symmetric decorrelation (Hyvärinen 1999) over voxels instead of time, from several
random starts. It sees released maps only, so that it costs no privacy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from consortium.base.array import Array

ITERATIONS = 300
TOLERANCE = 1e-5
"""Of the cosine between an axis and itself an iteration before."""
_FLAT = 0.25
"""Part of a map's mean square below which its variance makes it nearly constant."""
GAUSSIAN = 0.3745672075
"""E[log cosh x] of a standard Gaussian variable."""


@dataclass(frozen=True, eq=False)
class Separation:
    """Independent maps."""

    maps: Array
    """Shape (V, R'). Mean 0 and variance 1 over the voxels, in any order and sign."""
    unmixing: Array
    """Shape (R, R'). ``maps`` is the centred maps that came in, times ``unmixing``."""
    contrast: Array
    """Shape (R',). |E log cosh - Gaussian's| of each map: 0 for a Gaussian one."""


def whiten(maps: Array, keep: int | None = None) -> tuple[Array, Array]:
    """Centre maps (V x R) and make them white.

    Parameters
    ----------
    maps : array, shape (V, R)
    keep : int, optional
        R', dimensions to keep; by default all but those that are nearly the same everywhere, of
        which centring leaves next to nothing.

    Returns
    -------
    white : array, shape (V, R')
    whitening : array, shape (R, R')
        ``white`` is the centred maps times this.
    """
    mean, second = maps.mean(axis=0), maps.T @ maps / len(maps)
    second[np.diag_indices_from(second)] += 1e-12 * np.trace(second) + np.finfo(np.float64).tiny
    # Part of each direction's mean square that is variance: from 0 to 1.
    values, vectors = eigh(second - np.outer(mean, mean), second)
    many = int(np.count_nonzero(values > _FLAT)) if keep is None else keep
    kept = slice(len(values) - many, None)
    whitening = vectors[:, kept] / np.sqrt(np.maximum(values[kept], 1e-12))
    # All but one of the values are 1, so that rounding would choose their axes: turn to the maps'.
    whitening = whitening @ nearest_rotation(whitening.T[:, : whitening.shape[1]])
    return (maps - mean) @ whitening, whitening


def nearly_constant(maps: Array) -> NDArray[np.bool_]:
    """Whether each map (V x R) is nearly the same everywhere: a global signal's, no network's."""
    return np.asarray(maps.var(axis=0) <= _FLAT * np.mean(np.square(maps), axis=0))


def fast_ica(
    white: Array, start: Array, iterations: int = ITERATIONS, tolerance: float = TOLERANCE
) -> Array:
    """FastICA with log cosh from one start.

    Parameters
    ----------
    white : array, shape (V, R)
        White maps.
    start : array, shape (R, R)
        Any invertible matrix; its rows are the first axes.

    Returns
    -------
    array, shape (R, R)
        A rotation W: ``white @ W.T`` are the independent maps.
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
    """Independent maps from the best of several starts.

    Parameters
    ----------
    maps : array, shape (V, R)
        Maps that span the same space.
    generator : numpy.random.Generator
        Of the starts.
    keep : int, optional
        Number of components, at most R; by default as `whiten`.
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
    """How far from Gaussian each white map (V x R) is."""
    sizes = np.abs(maps)
    means = np.mean(sizes + np.log1p(np.exp(-2.0 * sizes)), axis=0)  # log cosh x + log 2
    return np.asarray(np.abs(means - np.log(2.0) - GAUSSIAN))


def one_sign(vectors: Array) -> Array:
    """Columns with a positive sum of cubes: which sign a library gives them is left to rounding."""
    return np.asarray(vectors * np.where(np.sum(vectors**3, axis=0) < 0, -1.0, 1.0))


def nearest_rotation(axes: Array) -> Array:
    """The nearest rotation, (W Wᵀ)^(-1/2) W."""
    left, _, right = np.linalg.svd(axes)
    return np.asarray(left @ right)
