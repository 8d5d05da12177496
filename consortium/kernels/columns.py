"""Persons as columns: contributions that are finite, bounded and averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from consortium.kernels.moments import pack_symmetric
from consortium.privacy.clipping import clip_columns

Array = NDArray[Any]


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
    clipped = clip_columns(columns, float(np.sqrt(norm)))
    total: Array = dsyrk(1.0, np.asfortranarray(clipped))
    mean: Array = pack_symmetric(total) / columns.shape[1]
    return mean
