"""Second moments and the coordinates in which they are released."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

Array = NDArray[Any]


def add_second_moment(total: Array, block: Array, scale: float) -> Array:
    """Add ``scale * block @ block.T`` to the upper triangle of ``total``, in place.

    Parameters
    ----------
    total : array, D x D, float64, Fortran order
        Only the upper triangle is kept up to date: half the work of a full product.
    block : array, D x T
    scale : float
    """
    rows = np.asarray(block, dtype=np.float64, order="C")
    # The transpose of rows that lie one after the other is what BLAS takes without a copy.
    added: Array = dsyrk(scale, rows.T, trans=1, beta=1.0, c=total, overwrite_c=1)
    return added


def pack_symmetric(matrix: Array) -> Array:
    """Upper triangle row by row, off-diagonal entries times √2: keeps the Frobenius norm."""
    rows, columns = np.triu_indices(len(matrix))
    packed = matrix[rows, columns]
    packed[rows != columns] *= np.sqrt(2.0)
    return packed


def unpack_symmetric(packed: Array) -> Array:
    """Inverse of `pack_symmetric`."""
    size = int((np.sqrt(8 * len(packed) + 1) - 1) / 2)
    rows, columns = np.triu_indices(size)
    values = np.where(rows == columns, packed, packed / np.sqrt(2.0))
    matrix = np.empty((size, size))
    matrix[rows, columns] = values
    matrix[columns, rows] = values
    return matrix


def packed_size(features: int) -> int:
    """Entries of a packed symmetric D x D matrix."""
    return features * (features + 1) // 2
