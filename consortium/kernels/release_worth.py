"""Worth of a released mean to a hospital, in participants of its own.

A participant's number has variance v, and the release's noise t². The mean of v/t² participants has
the same variance as the noise: for a hospital that combines it with its own data, the release is
worth that number of participants (see `kernels.home_posterior`). Over n participants the sampling
variance is v/n, and t² falls as 1/n². So the released error is c times the pooled one at n = (n₀
t₀)²/(v (c² − 1)), for any planned n₀.
"""

import math
from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array

RATIO = 1.3
"""Released error divided by the pooled one, for a study that is large enough."""

BETWEEN = 0.65
"""Fraction of a participant's variance in leading directions that is not among these, measured on
real participants."""


@dataclass(frozen=True)
class Worth:
    """Worth of a released mean to a hospital, in its own participants."""

    persons: float
    """Number of a hospital's own participants whose mean has the variance of the noise; infinite
    without noise."""
    enough: float
    """Number of participants of all sites at which its error is at most `RATIO` times the pooled
    one."""


def worth_of(variance: float, noise: float, persons: int) -> Worth:
    """Return the worth of a mean over n participants.

    Parameters
    ----------
    variance : float
        v, variance of one participant's number.
    noise : float
        t², variance of the noise in the mean.
    persons : int
        n.
    """
    if noise <= 0.0:
        return Worth(math.inf, 1.0)
    if variance <= 0.0:
        return Worth(0.0, math.inf)
    return Worth(variance / noise, persons**2 * noise / (variance * (RATIO**2 - 1.0)))


def worth_of_projectors(strengths: Array, size: int, deviation: float, persons: int) -> Worth:
    """Return the worth of a mean of projectors, which is released with noise.

    Parameters
    ----------
    strengths : array, shape (K,)
        Eigenvalues λ of the mean without noise, from 0 to 1.
    size : int
        d, more than K.
    deviation : float
        Standard deviation of the noise in a released number.
    persons : int
        n.
    """
    return worth_of(variance_of_projectors(strengths, size), deviation**2 / 2.0, persons)


def variance_of_projectors(strengths: Array, size: int) -> float:
    """Return a projector's variance between the leading eigenvectors of the mean and the rest.

    For a projector P of mean M and M q = λ q, E‖(P − M) q‖² = λ − λ². A part of it is among the K
    leading eigenvectors themselves, which does not change their span.

    Parameters
    ----------
    strengths : array, shape (K,)
        λ, from 0 to 1.
    size : int
        d, more than K.
    """
    inside = np.clip(strengths, 0.0, 1.0)
    kept = len(strengths)
    return BETWEEN * float(np.sum(inside * (1.0 - inside))) / (kept * (size - kept))
