"""Effects of the hospitals and of an open cohort combined, in proportion to their errors."""

from typing import NamedTuple

import numpy as np

from consortium.base.array import Array

_LEAST_BETWEEN = 0.05**2
"""Least variance between populations, in squared standard deviations of an outcome. A choice."""
_ADDED_ERRORS = 0.5  # standard errors of an estimated variance that are added to it
_CLEARLY = 2.0  # standard errors
_HALF = 0.5


class ShrunkEffects(NamedTuple):
    """Effects of both together, which are not only the hospitals'."""

    values: Array
    errors: Array
    """Effects and their standard errors, length V."""


def shrink_to_open(
    effects: Array, errors: Array, opened: Array, error: float, between: float, freedom: float
) -> ShrunkEffects:
    """Shrink effects towards those of an open cohort, in proportion to the noise of the difference.

    The difference of both populations is assumed to be normal, with the same variance for every
    outcome. It is estimated from all outcomes with half a standard error added, and is at least
    that between the open cohort's own sites.

    Parameters
    ----------
    effects, errors : array, length V
        Of the hospitals.
    opened : array, length V
        Effects in the open cohort, in the same unit.
    error, between : float
        Their standard error, and their variance between sites.
    freedom : float
        Degrees of freedom of the mean square of all differences.

    Examples
    --------
    >>> found = shrink_to_open(np.zeros(2), np.ones(2), np.ones(2), 0.0, 1.0, 1.0)
    >>> bool((0 < found.values).all() and (found.values < 1).all() and (found.errors < 1).all())
    True
    """
    squares = np.square(errors)
    chance = float(squares.mean()) + error**2
    found = max(float(np.square(effects - opened).mean()) - chance, 0.0)
    error_of_variance = float(np.sqrt(2 / freedom)) * chance
    apart = max(found + _ADDED_ERRORS * error_of_variance, between, _LEAST_BETWEEN)
    own = share_of_release(squares, error, apart)
    return ShrunkEffects(opened + own * (effects - opened), np.sqrt(own * squares))


def share_of_release(squares: Array | float, error: float, between: float) -> Array:
    """Return the weight of effects with these squared errors, next to an open cohort's."""
    width = error**2 + between
    return np.asarray(width / (width + squares))


def slopes_contradicted(effects: Array, errors: Array, opened: Array, shared: float) -> bool:
    """Return whether the slope of effects on an open cohort's is clearly below one half.

    Subtracting the open effects then leaves larger effects than before, so the study would be
    better without an open cohort.

    Parameters
    ----------
    effects, errors, opened : array, length V
        Effects with their standard errors, and the open cohort's effects.
    shared : float
        oᵀRo/oᵀo, with o the open cohort's effects and R the correlation of errors.
    """
    size = float(np.square(opened).sum())
    if size <= 0:
        return False
    slope = float(effects @ opened) / size
    slope_error = float(np.sqrt(np.mean(np.square(errors)) * shared / size))
    return slope + _CLEARLY * slope_error < _HALF
