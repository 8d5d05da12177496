"""What a site reads out of a query, which a hostile centre may have made."""

import math

import numpy as np

from consortium.algorithms.base import Array, Query
from consortium.errors import ProtocolError


def array_argument(query: Query, name: str, dimensions: int) -> Array:
    """Look up an array of the query.

    Raises ProtocolError if it is missing, or has another number of axes.
    """
    value = query.arguments.get(name)
    if not isinstance(value, np.ndarray) or value.ndim != dimensions:
        raise ProtocolError(f"The query's '{name}' is missing or misshapen; discard it.")
    return value


def feature_argument(query: Query, name: str, features: int, dimensions: int = 2) -> Array:
    """Look up a matrix (or a vector) with one row for each feature.

    Raises ProtocolError as `array_argument`, or if it has another number of rows.
    """
    value = array_argument(query, name, dimensions)
    if len(value) != features:
        raise ProtocolError(
            f"The query's '{name}' has shape {value.shape}, which does not fit {features} "
            "features; discard it."
        )
    return value


def index_argument(query: Query, name: str, limit: int) -> int:
    """Look up a whole number from 0 to below ``limit``.

    Raises ProtocolError if it is missing or out of range.
    """
    value = query.arguments.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise ProtocolError(f"The query's '{name}' is no number below {limit}; discard it.")
    return value


def word_argument(query: Query, name: str, *words: str) -> str:
    """Look up one of some words; raises ProtocolError if it is missing, or another."""
    value = query.arguments.get(name)
    if not isinstance(value, str) or value not in words:
        raise ProtocolError(f"The query's '{name}' is none of {', '.join(words)}; discard it.")
    return value


def number_argument(query: Query, name: str) -> float:
    """Look up a finite number that is not negative.

    Raises ProtocolError if it is missing, negative or not finite.
    """
    value = query.arguments.get(name)
    if not isinstance(value, float) or not math.isfinite(value) or value < 0:
        raise ProtocolError(f"The query's '{name}' is no number of 0 or more; discard it.")
    return value
