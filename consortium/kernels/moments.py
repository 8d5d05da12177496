"""Second moments and the coordinates in which they are released."""

import math

import numpy as np
from scipy.linalg.blas import daxpy, dsyrk

from consortium.base.array import Array
from consortium.privacy.clipping import clip_columns, clip_in_place, clip_moment

_VOLUMES = 256


def add_second_moment(total: Array, block: Array, scale: float) -> Array:
    """Add ``scale * block @ block.T`` to the upper triangle of ``total``, in place.

    Parameters
    ----------
    total : array, D x D, float64, Fortran order
        Only the upper triangle is kept up to date: half the work of a full product.
    block : array, D x T
    """
    rows = np.asarray(block, dtype=np.float64, order="F")  # BLAS takes it without a copy
    added: Array = dsyrk(scale, rows, beta=1.0, c=total, overwrite_c=1)
    return added


def add_person_moment(total: Array, block: Array, bound: float) -> Array:
    """Add X Xᵀ / T of one participant, clipped to norm ``bound``; see `add_second_moment`."""
    rows, scale, product = clip_moment(block, bound)
    if product is None or not total.flags.f_contiguous:
        return add_second_moment(total, rows, scale)
    daxpy(product.ravel("F"), total.ravel("F"), a=scale)  # in place: both are in Fortran order
    return total


def add_volume_moments(total: Array, block: Array, bound: float) -> Array:
    """Add x xᵀ of every volume, each clipped to norm ``bound``; see `add_second_moment`.

    ‖x xᵀ‖ = ‖x‖², so clipping the volume clips its moment. Volumes are converted to float64 and
    clipped in one small buffer, which stays in the processor's cache.
    """
    reach = math.sqrt(bound)
    features, volumes = block.shape
    room = np.empty((features, min(_VOLUMES, volumes)), order="F")
    for start in range(0, volumes, _VOLUMES):
        wide = room[:, : min(_VOLUMES, volumes - start)]
        np.copyto(wide, block[:, start : start + _VOLUMES])
        clip_in_place(wide, reach)
        total = add_second_moment(total, wide, 1.0)
    return total


def pack_symmetric(matrix: Array) -> Array:
    """Return the upper triangle by row, off-diagonal entries times √2: keeps the Frobenius norm."""
    rows, columns = np.triu_indices(len(matrix))
    packed = matrix[rows, columns]
    packed[rows != columns] *= np.sqrt(2.0)
    return packed


def unpack_symmetric(packed: Array) -> Array:
    """Return the symmetric matrix that `pack_symmetric` packed."""
    size = int((np.sqrt(8 * len(packed) + 1) - 1) / 2)
    rows, columns = np.triu_indices(size)
    values = np.where(rows == columns, packed, packed / np.sqrt(2.0))
    matrix = np.empty((size, size))
    matrix[rows, columns] = values
    matrix[columns, rows] = values
    return matrix


def mean_packed_square(columns: Array, norm: float) -> Array:
    """Return the mean over columns of z zᵀ, each clipped to Frobenius norm ``norm``, packed.

    ‖z zᵀ‖ = ‖z‖², so clipping the column clips its square.

    Parameters
    ----------
    columns : array, D x N

    Returns
    -------
    array, D (D + 1) / 2, as `pack_symmetric`
    """
    clipped = clip_columns(columns, float(np.sqrt(norm)))
    total: Array = dsyrk(1.0, np.asfortranarray(clipped))
    mean: Array = pack_symmetric(total) / columns.shape[1]
    return mean


def packed_size(features: int) -> int:
    """Return the number of entries of a packed symmetric D x D matrix."""
    return features * (features + 1) // 2
