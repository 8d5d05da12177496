"""Projector on a participant's leading directions; a group's networks are in the mean of these.

U contains the K leading left singular vectors of a participant's series C (d x T), and P = U Uᵀ is
the projector on them. Its norm is √K for any scale, gain and length of the series, so no clipping
is needed. Two projectors are positive semidefinite, so ‖P − P'‖² = 2K − 2 tr(P P') ≤ 2K.
"""

from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError, eigh, qr

from consortium.base.array import Array

GlobalSignal = Literal["keep", "remove"]

_LEAST = 1e-7
"""Directions below this fraction of the first are rounding errors: a product's eigenvalues are its
squares."""


def reduce_series(block: Array, basis: Array | None, global_signal: GlobalSignal) -> Array:
    """Return Φᵀ X in float64, of norm near one, or zeros for a participant without finite numbers.

    Parameters
    ----------
    block : array, shape (D, T)
        Series of any scale, which is divided by a power of two.
    basis : array, shape (D, d), optional
        Φ in the block's type (default: the identity).
    global_signal : {'keep', 'remove'}
        Whether the mean over the D rows is regressed out of each row.

    Returns
    -------
    array, shape (d, T)
    """
    size = len(block) if basis is None else basis.shape[1]
    largest = float(np.maximum(block.max(initial=0.0), -block.min(initial=0.0)))
    if not (np.isfinite(largest) and largest > 0):  # a NaN is passed on by the maximum
        return np.zeros((size, block.shape[1]))
    near = np.ldexp(block, -int(np.frexp(largest)[1]))
    reduced = np.asarray(near if basis is None else basis.T @ near, dtype=np.float64)
    if basis is None and global_signal == "keep":
        return reduced  # near one as it is
    if global_signal == "remove":
        course = near.mean(axis=0, dtype=np.float64)
        square = float(course @ course)
        if square > 0:
            reduced = reduced - np.outer(reduced @ course / square, course)
    return _near_one(reduced)


def leading_directions(series: Array, count: int) -> Array:
    """Return orthonormal leading left singular vectors of a d x T series, at most ``count``.

    There are fewer if the series has fewer dimensions, and none if it is zero.
    """
    wide = series.shape[0] <= series.shape[1]
    gram = series @ series.T if wide else series.T @ series
    size = len(gram)
    kept = min(count, size)
    if kept < 1:
        return np.zeros((series.shape[0], 0))
    try:
        values, vectors = eigh(gram, subset_by_index=(size - kept, size - 1))
    except LinAlgError:  # whether a site answers must not depend on one participant
        return np.zeros((series.shape[0], 0))
    vectors = vectors[:, values > _LEAST**2 * values[-1]][:, ::-1]
    # Householder's: orthonormal to rounding, for any input.
    directions, _ = qr(vectors if wide else series @ vectors, mode="economic")
    return np.asarray(directions)


def _near_one(values: Array) -> Array:
    largest = float(np.abs(values).max(initial=0.0))
    if not (np.isfinite(largest) and largest > 0):
        return np.zeros_like(values)
    return np.asarray(np.ldexp(values, -int(np.frexp(largest)[1])))
