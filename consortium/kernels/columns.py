"""Persons as columns: contributions that are finite, bounded and averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from consortium.kernels.clipping import squared_norms
from consortium.kernels.moments import pack_symmetric

Array = NDArray[Any]


def bounded_columns(matrix: Array, norm: float) -> Array:
    """Scale each column of a D x N matrix to Euclidean norm at most ``norm``, in float64.

    A column that is not finite, or whose norm overflows, becomes zero: an error would tell
    whoever chose the query how large the data are.
    """
    wide = np.asarray(matrix, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.sqrt(squared_norms(wide))
    finite = np.isfinite(sizes)
    scales = norm / np.maximum(np.where(finite, sizes, 1.0), norm)
    kept: Array = wide if finite.all() else np.where(finite, wide, 0.0)
    return kept * scales


def mean_packed_square(columns: Array, norm: float) -> Array:
    """Mean over columns of z zᵀ, each clipped to Frobenius norm ``norm``, packed.

    ‖z zᵀ‖ = ‖z‖², so that clipping the column is clipping its square.

    Parameters
    ----------
    columns : array, D x N
    norm : float

    Returns
    -------
    array, D (D + 1) / 2, as `moments.pack_symmetric`
    """
    clipped = bounded_columns(columns, float(np.sqrt(norm)))
    total: Array = dsyrk(1.0, np.asfortranarray(clipped))
    mean: Array = pack_symmetric(total) / columns.shape[1]
    return mean
