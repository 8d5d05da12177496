"""Scaling contributions down to a bound.

Norms are taken in float64: summed in float32 over many voxels they come out too small, and
what was clipped would be larger than its bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def clip_vector(vector: Array, norm: float) -> Array:
    """Scale an array of any shape so that its Euclidean norm is at most ``norm``."""
    double = np.asarray(vector, dtype=np.float64)
    size = float(np.sqrt(np.vdot(double, double)))
    return vector if size <= norm else vector * (norm / size)


def clip_columns(matrix: Array, norm: float) -> Array:
    """Scale each column of a D x N matrix so that its Euclidean norm is at most ``norm``."""
    return matrix * column_scales(matrix, norm)


def column_scales(matrix: Array, norm: float) -> Array:
    """Factors (length N, at most 1) that bring each column's norm down to ``norm``."""
    sizes = np.sqrt(squared_norms(np.asarray(matrix, dtype=np.float64)))
    scales: Array = norm / np.maximum(sizes, norm)
    return scales


def sum_clipped_products(left: Array, right: Array, bound: float) -> Array:
    """Sum over columns of left rightᵀ, each scaled down to ‖left‖‖right‖ <= ``bound``.

    In float64: the rounding of a float32 sum depends on every column in it, by more than the
    sensitivity allows for. A column that overflowed counts as zero, since an error would tell
    whoever chose the query how large the data are.

    Parameters
    ----------
    left : array, A x N, float64
    right : array, B x N, float64
    bound : float

    Returns
    -------
    array, A x B
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.sqrt(squared_norms(left) * squared_norms(right))
    finite = np.isfinite(sizes)
    if not finite.all():
        left, right, sizes = left[:, finite], right[:, finite], sizes[finite]
    scales = bound / np.maximum(sizes, bound)
    if len(left) < len(right):
        total: Array = (left * scales) @ right.T
    else:
        total = left @ (right * scales).T
    return total


def squared_norms(columns: Array) -> Array:
    """Squared norm of each column."""
    squares: Array = np.einsum("ij,ij->j", columns, columns)
    return squares
