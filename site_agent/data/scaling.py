"""Scaling of a feature vector as the last step of its loading, by one participant's own numbers."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.privacy.clipping import vector_norm

Vector = NDArray[np.float64]

_ROUNDING = 1e-12
"""Relative to the largest entry; a smaller norm results from rounding of equal values."""


def scale_vector(
    values: NDArray[Any],
    scale: float,
    center: bool,
    normalize: bool,
    where: Path,
    *,
    gaps: bool = False,
) -> Vector:
    """Scale, centre and normalize one participant's vector.

    Raises DataError if a value is not finite, or a vector of zeros is to be normalized.

    Parameters
    ----------
    values : array, shape (D_view,)
    scale : float
        Public value that becomes 1.
    center : bool
        Subtract the vector's own mean.
    normalize : bool
        Scale it to Euclidean norm 1.
    where : Path
        The participant's file, for the error.
    gaps : bool
        Accept NaN for entries that are missing, and return it. Mean and norm are then those of the
        other entries.
    """
    vector = np.asarray(values, dtype=np.float64) / scale
    known = ~np.isnan(vector) if gaps else np.full(vector.shape, True)
    if not np.isfinite(vector[known]).all():
        raise DataError(f"{where} leads to numbers that are not finite. Check its values.")
    scaled = np.full(vector.shape, np.nan)
    scaled[known] = _scaled(vector[known], center, normalize, where)
    return scaled


def _scaled(vector: Vector, center: bool, normalize: bool, where: Path) -> Vector:
    # Scaled near one by a power of two, which is exact: sums and squares stay in range.
    largest, exponent = np.frexp(np.abs(vector).max(initial=0.0))
    near = np.ldexp(vector, -exponent)
    if center:
        near = near - near.mean()
    if not normalize:
        return np.asarray(np.ldexp(near, exponent))
    norm = vector_norm(near)
    if not norm > _ROUNDING * largest:
        raise DataError(f"{where} has the same value everywhere. Check its values.")
    return np.asarray(near / norm)
