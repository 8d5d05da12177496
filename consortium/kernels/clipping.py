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
    sizes = np.sqrt(np.square(matrix, dtype=np.float64).sum(axis=0))
    scales: Array = norm / np.maximum(sizes, norm)
    return scales
