"""Participants of a study of `glm` by site and group, with the weight of each site."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consortium.base.array import Array

PLANNED_WITHIN = 0.8
"""Share of a covariate's variance within sites that a plan expects if the stated deviation is
right. Estimates from a release have another prior, `covariate_adjustment._PRIOR_WITHIN`, that is
lower: the stated deviation may also be too large."""
_LEAST_WITHIN = 0.3


def capped_weights(proportions: Array, reach: float | Array) -> Array:
    """Return a = min(1, W_c / max(q, 1 - q)), which bounds a |t̃| by W_c.

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
    """n_s, length S."""
    proportions: Array
    """q_s, fraction of the participants in the second group, length S: expected in the plan, from
    the noisy count in the run. Not used for a slope."""
    slope: bool = False
    """Whether the contrast is of a column with limits, which has no groups. Weights are then 1, and
    the column's variance within sites takes the role of q (1 - q)."""
    within: float = PLANNED_WITHIN
    """That variance: stated, remaining after declared means, or the usual one."""

    def knowing(self, means: Array) -> Groups:
        """Return a copy with the variance within sites that declared means of a slope leave.

        ``means`` are in public standard deviations.
        """
        middle = np.average(means, weights=self.persons)
        between = float(np.average(np.square(means - middle), weights=self.persons))
        return replace(self, within=min(max(1 - between, _LEAST_WITHIN), 1.0))

    @property
    def largest(self) -> Array:
        """m_s, larger share of the two groups."""
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
        """Return a_s = min(1, W_c/m_s), and 0 for sites of one group; N x S for N x 1 reaches."""
        if self.slope:
            return np.ones(len(self.persons))
        return np.where(self.spread > 0, capped_weights(self.proportions, reach), 0.0)

    def information(self, weights: Array) -> tuple[float, float]:
        """Return N_a = Σ a n q (1 - q) and N_u, the same with a²."""
        each = self.persons * self.spread
        return float(weights @ each), float(weights**2 @ each)
