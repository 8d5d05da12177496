"""Numbers of units at the sites, estimated from the noisy counts in the releases of a run."""

import math
from collections.abc import Sequence

import numpy as np

from consortium.base.array import Array
from consortium.kernels.simplex import project_above

COUNTS = "counts.json"
"""Note of a running centre with the estimated numbers so far."""
_CLEARLY = 3.0
"""Standard deviations of a count."""
_LEAST_UNITS = 1.0
_LEAST_DEVIATION = 1e-9  # of counts without noise


def is_far_below(units: float, deviation: float, nominal: float) -> bool:
    """Return whether a site's estimated units are clearly below half of the nominal number."""
    return units + _CLEARLY * deviation < nominal / 2


class UnitCounts:
    """Mean of each site's counts, weighted by their precisions.

    Estimates are not drawn to the nominal numbers: where these are wrong, that would bias every
    mean.

    Parameters
    ----------
    nominal : sequence of float
        Nominal number of each site of the study, used for a site that has not answered.

    Examples
    --------
    >>> counts = UnitCounts([20.0, 40.0])
    >>> counts.add([0, 1], [18.0, 44.0], 2.0)
    >>> counts.add([0, 1], [20.0, 40.0], 2.0)
    >>> [round(float(each), 6) for each in counts.estimate]
    [19.0, 42.0]
    >>> round(counts.deviation, 4)
    1.4142
    """

    def __init__(self, nominal: Sequence[float]) -> None:
        self._nominal = np.array(nominal, dtype=np.float64)
        self._precisions = np.zeros(len(self._nominal))
        self._sums = np.zeros(len(self._nominal))

    def add(self, sites: Sequence[int], counts: Sequence[float] | Array, deviation: float) -> None:
        """Take the counts of one release.

        Parameters
        ----------
        sites : sequence of int
            Indices of the sites that are counted.
        counts : sequence of float
            Released numbers of units of these sites.
        deviation : float
            Standard deviation of the noise in each of them.
        """
        precision = max(deviation, _LEAST_DEVIATION) ** -2
        self._precisions[list(sites)] += precision
        self._sums[list(sites)] += precision * np.asarray(counts, dtype=np.float64)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in an estimate, at the site that answered least often."""
        if not self._counted.any():
            return 0.0
        least = math.sqrt(1.0 / float(self._precisions[self._counted].min()))
        return least if least > _LEAST_DEVIATION else 0.0

    @property
    def _counted(self) -> Array:
        counted: Array = self._precisions > 0
        return counted

    @property
    def estimate(self) -> Array:
        """Estimated number of units of each site: at least 1, with the sum of the counts.

        Nearest to the counts among all such numbers.
        """
        counted = self._counted
        found = self._nominal.copy()
        if not counted.any():
            return found
        found[counted] = project_above(
            self._sums[counted] / self._precisions[counted], _LEAST_UNITS
        )
        return found
