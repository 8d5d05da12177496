"""Forecast of a release from a plan's public numbers and assumptions about participants.

An analysis without a formula for its error is repeated by its own code, on moments of assumed
participants, with new noise of the planned size and new sampling error.
"""

import numpy as np

from consortium.algorithms.base import Array, PlannedRelease, Release, Shape

_NORMAL = 0.6744897501960817  # the median of |x| for a standard normal x


def draw_release(
    planned: PlannedRelease, shape: Shape, values: Array, generator: np.random.Generator
) -> Release:
    """Return a release of these values with fresh noise, of all sites."""
    level = planned.round_deviation(shape)
    noisy = values + level * generator.standard_normal(len(values))
    return Release(noisy, level, tuple(range(len(shape.units))))


def robust_deviation(errors: Array) -> float:
    """Return a robust standard deviation of errors, from the median of their sizes."""
    return float(np.median(np.abs(errors))) / _NORMAL
