"""Persons of a study of `glm` by site and group, and what each site weighs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms.base import Array

SLOPE_WITHIN = 0.8
"""Part of a covariate's variance that is usual within sites."""
_LEAST_WITHIN = 0.3


def capped_weights(proportions: Array, reach: float | Array) -> Array:
    """Return a = min(1, W_c / max(q, 1 - q)), so that a |t̃| is never above W_c.

    Parameters
    ----------
    proportions : array
        q, from 0 to 1.
    reach : float, or array that the proportions are broadcast with
        W_c.
    """
    return np.asarray(np.minimum(1.0, reach / np.maximum(proportions, 1 - proportions)))


@dataclass(frozen=True, eq=False)
class Groups:
    """Participants by site and group, as the study expects them, or as they were counted."""

    persons: Array
    """Length S. n_s."""
    proportions: Array
    """Length S. q_s, fraction of them in the second group: in the plan what is expected, in the run
    what the noisy count says. Not used for a slope."""
    slope: bool = False
    """Whether the contrast is of a column with limits, which knows no groups: weights are 1, and
    what q (1 - q) is to groups is the column's variance within sites."""
    within: float = SLOPE_WITHIN
    """That variance: the stated one, what declared means leave, or the usual one."""

    def knowing(self, means: Array) -> Groups:
        """The same with what a slope's declared means, in public deviations, leave within sites."""
        middle = np.average(means, weights=self.persons)
        between = float(np.average(np.square(means - middle), weights=self.persons))
        return replace(self, within=min(max(1 - between, _LEAST_WITHIN), 1.0))

    @property
    def largest(self) -> Array:
        """m_s, the larger of the two groups' parts."""
        if self.slope:
            return np.ones(len(self.persons))
        return np.asarray(np.maximum(self.proportions, 1 - self.proportions))

    @property
    def spread(self) -> Array:
        """q_s (1 - q_s)."""
        if self.slope:
            return np.full(len(self.persons), self.within)
        return np.asarray(self.proportions * (1 - self.proportions))

    def weights(self, reach: float | Array) -> Array:
        """a_s = min(1, W_c/m_s), and 0 for sites of one group; of N x 1 reaches a row each."""
        if self.slope:
            return np.ones(len(self.persons))
        return np.where(self.spread > 0, capped_weights(self.proportions, reach), 0.0)

    def information(self, weights: Array) -> tuple[float, float]:
        """N_a and N_u: Σ a n q (1 - q), and the same with a²."""
        each = self.persons * self.spread
        return float(weights @ each), float(weights**2 @ each)
