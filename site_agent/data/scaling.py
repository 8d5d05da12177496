"""The last step to a feature vector; it knows one person's numbers only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError

Vector = NDArray[np.float64]


def finish(
    values: NDArray[Any], scale: float, center: bool, normalize: bool, where: Path
) -> Vector:
    """Scale, centre and normalize one person's vector.

    Parameters
    ----------
    values : array, shape (D_view,)
    scale : float
        What becomes 1; public.
    center : bool
        Take the vector's own mean away.
    normalize : bool
        Bring it to Euclidean norm 1.
    where : Path
        The person's file, for the error.

    Raises
    ------
    DataError
        If a value is not finite, or a vector of zeros is to be normalized.
    """
    vector = np.asarray(values, dtype=np.float64) / scale
    if not np.isfinite(vector).all():
        raise DataError(f"{where} leads to numbers that are not finite; check its values.")
    size = float(np.abs(vector).max(initial=0.0))
    if center:
        vector = vector - vector.mean()
    norm = float(np.linalg.norm(vector))
    if not normalize:
        return vector
    if norm <= 1e-12 * size or not norm:  # what is left is rounding
        raise DataError(f"{where} has the same value everywhere; check its values.")
    return np.asarray(vector / norm)
