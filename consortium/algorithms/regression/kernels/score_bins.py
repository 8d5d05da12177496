"""Bins of a predicted score, from its distribution by a moment.

The score is taken as Gaussian within groups: sites, and in each of them the values of the columns
of two levels that matter most. Positives and negatives have the distributions that the predicted
probabilities give. Bins divide the mean of the two, so several
of them contain the rarer class.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from consortium.base.array import Array

_NODES = 64
"""Points of each group, equally likely."""
_NARROWEST = 0.02
"""Least standard deviation within a group, as a fraction of that of all scores."""


@dataclass(frozen=True)
class ScoreGroups:
    """Groups of participants, within each of which the score is Gaussian with one variance."""

    parts: Array
    """Fractions of the participants, length G."""
    centres: Array
    """Means of the score, length G."""
    deviation: float
    """Standard deviation of the score within a group."""

    def split(self, shift: float, ones: Array) -> "ScoreGroups":
        """Return the groups divided by a column with values of -1 and 1.

        Parameters
        ----------
        shift : float
            Coefficient of the column.
        ones : array, length G
            Fraction of each group with the value 1.
        """
        parts = np.concatenate([self.parts * (1.0 - ones), self.parts * ones])
        means = 2.0 * ones - 1.0
        centres = [self.centres + shift * (value - means) for value in (-1.0, 1.0)]
        taken = shift**2 * float(self.parts @ (1.0 - np.square(means)))
        left = np.sqrt(max(self.deviation**2 - taken, 0.0))
        return ScoreGroups(parts, np.concatenate(centres), float(left))


def score_bins(groups: ScoreGroups, bins: int) -> tuple[Array, Array]:
    """Return the edges between bins, and the mean score in each bin.

    Returns
    -------
    edges : array, length K - 1
        In ascending order.
    means : array, length K
    """
    middle = float(groups.parts @ groups.centres)
    whole = np.hypot(groups.deviation, np.sqrt(groups.parts @ np.square(groups.centres - middle)))
    wide = max(groups.deviation, _NARROWEST * float(whole), np.finfo(np.float64).tiny)
    steps = ndtri((np.arange(_NODES) + 0.5) / _NODES)
    points = (groups.centres[:, None] + wide * steps).ravel()
    likely = np.repeat(groups.parts / _NODES, _NODES)
    order = np.argsort(points, kind="stable")
    points = points[order]
    likely = likely[order]
    ones = expit(points)
    both = sum(part / max(part.sum(), 1e-300) for part in (likely * ones, likely * (1.0 - ones)))
    summed = np.cumsum(both)
    summed = (summed - both / 2.0) / summed[-1]
    edges = np.interp(np.arange(1, bins) / bins, summed, points)
    places = (points[:, None] >= edges).sum(axis=1)
    weights = np.bincount(places, weights=likely, minlength=bins)
    sums = np.bincount(places, weights=likely * points, minlength=bins)
    ends = np.concatenate([points[:1], edges, points[-1:]])
    empty = weights <= 0
    means = np.where(empty, (ends[:-1] + ends[1:]) / 2.0, sums / np.where(empty, 1.0, weights))
    return edges, means
