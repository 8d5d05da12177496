"""What a release of a mean is worth to a hospital, in participants of its own.

A participant's number has variance v, and the release's noise t². The mean of v/t² participants is
as unsure as the noise: to a hospital that puts its own data beside it, the release is worth so many
(see `kernels.home_posterior`). Over n participants chance leaves v/n, and t² falls as 1/n², so that
the released error is c times the pooled one at n = (n₀ t₀)²/(v (c² − 1)), whatever n₀ was planned.
"""

import math
from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array

RATIO = 1.3
"""Released over pooled error, of a study that is large enough."""

BETWEEN = 0.65
"""Part of a person's variance in leading directions that is not among these: of real persons."""


@dataclass(frozen=True)
class Worth:
    """What a release is worth."""

    persons: float
    """Participants of a hospital's own who are as sure as its noise; infinite without noise."""
    enough: float
    """Participants of all sites with whom its error is `RATIO` times the pooled one or less."""


def worth_of(variance: float, noise: float, persons: int) -> Worth:
    """Worth of a mean over n participants.

    Parameters
    ----------
    variance : float
        v, of one participant's number.
    noise : float
        t², of the noise in the mean.
    persons : int
        n.
    """
    if noise <= 0.0:
        return Worth(math.inf, 1.0)
    if variance <= 0.0:
        return Worth(0.0, math.inf)
    return Worth(variance / noise, persons**2 * noise / (variance * (RATIO**2 - 1.0)))


def variance_of_projectors(strengths: Array, size: int) -> float:
    """Variance of one person's projector between the leading eigenvectors of the mean and the rest.

    For a projector P of mean M and M q = λ q, E‖(P − M) q‖² = λ − λ². Of this a part lies among the
    K leading eigenvectors themselves, which turns none of them out.

    Parameters
    ----------
    strengths : array, shape (K,)
        λ, from 0 to 1.
    size : int
        d, more than K.
    """
    inside, kept = np.clip(strengths, 0.0, 1.0), len(strengths)
    return BETWEEN * float(np.sum(inside * (1.0 - inside))) / (kept * (size - kept))
