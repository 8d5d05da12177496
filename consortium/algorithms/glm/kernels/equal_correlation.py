"""Powers of a correlation matrix R with the same correlation ρ of any two outcomes."""

import numpy as np

from consortium.base.array import Array


def correlation_power(
    columns: Array, correlation: float, power: float, whole: tuple[int, Array] | None = None
) -> Array:
    """Return a power of R times each column, for R with 1 on its diagonal and ρ elsewhere.

    Parameters
    ----------
    columns : array, V x N, or a vector of V
    correlation : float
        ρ, from 0 to below 1.
    whole : (int, array of length N), optional
        V, and the columns' means, if only some of the V rows are given and returned.
    """
    entries, mean = whole or (len(columns), columns.mean(axis=0))
    own = (1 - correlation) ** power
    shared = (1 + (entries - 1) * correlation) ** power
    raised: Array = own * columns
    raised += (shared - own) * mean
    return raised


def powered_norms(
    squares: Array, means: Array, entries: int, correlation: float, power: float
) -> Array:
    """Return the norms of `correlation_power`'s columns, from their sums of squares and means.

    Parameters
    ----------
    squares, means : array, length N
    entries : int
        V.
    """
    own = (1 - correlation) ** power
    shared = (1 + (entries - 1) * correlation) ** power
    together = entries * np.square(means)
    apart = np.maximum(squares - together, 0.0)
    norms: Array = np.sqrt(own**2 * apart + shared**2 * together)
    return norms


def root_diagonal(entries: int, correlation: float) -> float:
    """Return g, the diagonal entry of R^½, which is its trace divided by V."""
    own = np.sqrt(1 - correlation)
    shared = np.sqrt(1 + (entries - 1) * correlation)
    return float(own + (shared - own) / entries)


def shared_part(entries: int, correlation: float) -> float:
    """Return the fraction of the squared norm of R^-¼u in the mean of all outcomes, for u ~ R."""
    shared = np.sqrt(1 + (entries - 1) * correlation)
    return float(shared / (entries * root_diagonal(entries, correlation)))
