"""Eigenpairs of what a PCA released."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from consortium.algorithms.base import Array, Captions, Release, Result
from consortium.kernels.moments import unpack_symmetric


def subspace(release: Release, components: int) -> Result:
    """Leading eigenpairs of a released second moment.

    Returns
    -------
    Result
        ``basis`` (D x K, orthonormal columns), ``eigenvalues`` (K, descending); ``noise_edge``
        is the spectral norm that noise alone would have: smaller eigenvalues mean nothing.
    """
    matrix = unpack_symmetric(release.values)
    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(size - components, size - 1))
    arrays: dict[str, Array] = {"basis": vectors[:, ::-1], "eigenvalues": values[::-1]}
    numbers: dict[str, Any] = {
        "noise_edge": release.deviation * float(np.sqrt(2.0 * size)),
        "captured": float(values.sum()),
        "total": float(np.trace(matrix)),
    }
    return Result(arrays, numbers, maps="basis", captions=Captions(sign=True))
