"""Logistic coefficients where a column of two levels makes groups.

`logistic_from_moments` assumes that s = b + wᵀx is Gaussian within every site. A column of -1 and 1
with a large coefficient makes s a mixture of two distributions instead. Within each of its values s
may still be Gaussian. So these values are groups, whose means follow from the moment.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from consortium.algorithms.regression.kernels.logistic_from_moments import (
    MOST_MEAN,
    centres_of,
    logistic_factor,
)
from consortium.base.array import Array
from consortium.kernels.noisy_least_squares import Fit

TWO_LEVELS = 0.8
"""Mean square from which a column between -1 and 1 counts as one of two levels."""
_MOST_VARIANCE = 0.999  # largest variance of the predictors of labels of -1 and +1
_MOST_UNGROUPED = 0.3
"""Largest variance of s that columns of levels may cause without making groups. The Gaussian
formula is then off by 3 %."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Explanatory entries of a participant in the moment of a regression."""

    slopes: Array
    """Length P. Of least squares."""
    squares: Array
    """Length P. Mean squares of the entries."""
    centres: Array
    """P x S. Means of the entries in each site."""
    means: Array
    """Length S. Means of y in each site."""
    parts: Array
    """Length S. Fractions of the participants in each site, or none without a constant."""

    @cached_property
    def explained(self) -> Array:
        """Variance of the least-squares value that each entry causes within sites."""
        within = self.squares - np.square(self.centres) @ self.parts
        return np.asarray(np.square(self.slopes) * np.maximum(within, 0.0))

    def pooled(self) -> "Entries":
        """Return the same with all sites as one."""
        centres = self.centres @ self.parts
        means = np.array([self.means @ self.parts])
        return replace(self, centres=centres[:, None], means=means, parts=np.ones(1))

    def groups(self, first: int | None) -> tuple[list[float], list[float]]:
        """Return means of y and parts of the sites, or of both values of an entry in each site."""
        if first is None:
            return self.means.tolist(), self.parts.tolist()
        slope = self.slopes[first]
        centre = np.clip(self.centres[first], -1.0, 1.0)
        means = [self.means - slope * (1.0 + centre), self.means + slope * (1.0 - centre)]
        parts = [self.parts * (1.0 - centre) / 2.0, self.parts * (1.0 + centre) / 2.0]
        return np.concatenate(means).tolist(), np.concatenate(parts).tolist()

    def level_coefficient(self, first: int, variance: float, slope: float) -> float:
        """Return the coefficient of a column of two levels, for a slope of least squares.

        Parameters
        ----------
        first : int
            Place of the column.
        variance : float
            Variance that the other entries explain by least squares.

        Returns
        -------
        float
            Infinite if nearly all labels of a level are equal.
        """
        moved = replace(self, slopes=np.full(len(self.slopes), slope))
        means, parts = moved.groups(first)
        low, high = np.split(np.array(means), 2)
        if max(abs(float(low @ self.parts)), abs(float(high @ self.parts))) >= MOST_MEAN:
            return float(np.copysign(np.inf, slope))
        spread = logistic_factor(variance, means, parts) * float(np.sqrt(variance))
        return float((centres_of(spread, high) - centres_of(spread, low)) @ self.parts / 2.0)


@dataclass(frozen=True)
class LogisticFactors:
    """What turns least-squares slopes into logistic coefficients."""

    factor: float
    least: float
    most: float
    """Factor of every slope but those in ``own``, and its range."""
    own: dict[int, list[Callable[[float], float]]]
    """Functions of the slope of an entry: what its coefficient is, and all that it may be."""
    fails: bool
    """Whether s is far from Gaussian within groups."""


def logistic_factors(
    fit: Fit, several: Array, variances: tuple[float, float, float]
) -> LogisticFactors:
    """Turn least squares into logistic coefficients, with all that these may be.

    The column of two levels that explains most makes groups, if the model has a constant. Groups
    have the means of sites or the pooled mean: means of small sites are mostly noise, and the
    pooled mean is not. The truth is between the two.

    Parameters
    ----------
    fit : Fit
        Of labels -1 and 1.
    several : array of bool, one for each entry
        Entries that are levels of columns of three or more.
    variances : tuple of float
        Variance that is explained by least squares: likely, least and largest.
    """
    entries = entries_of(fit)
    kinds = [entries] if len(entries.parts) < 2 else [entries, entries.pooled()]
    two = (entries.squares >= TWO_LEVELS) & ~several
    first = int(np.argmax(np.where(two, entries.explained, -1.0)))
    grouped = bool(two[first]) and len(entries.parts) > 0
    taken = float(entries.explained[first]) if grouped else 0.0
    rest = [min(max(each - taken, 0.0), _MOST_VARIANCE) for each in variances]
    groups = [kind.groups(first if grouped else None) for kind in kinds]
    factors = [logistic_factor(each, *group) for each in rest for group in groups]
    others = several | two
    others[first] &= not grouped
    ungrouped = factors[0] ** 2 * float(entries.explained[others].sum())
    functions: list[Callable[[float], float]] = [
        partial(k.level_coefficient, first, each) for each in rest for k in kinds
    ]
    own = {first: functions} if grouped else {}
    least = min(factors)
    most = max(factors)
    return LogisticFactors(factors[0], least, most, own, ungrouped > _MOST_UNGROUPED)


def entries_of(fit: Fit) -> Entries:
    """Read the entries' mean squares and the means in each site off a moment."""
    moment = fit.moment
    count = len(fit.moment.lift.T)
    constants = moment.weights[moment.constants]
    own = moment.lift * moment.weights[:count] / np.square(moment.weights[:count])
    squares = np.einsum("ij,jk,ik->i", own, moment.matrix[:count, :count], own)
    parts = np.where(moment.parts > 0, moment.parts, 1.0)
    scaled = moment.matrix[:, moment.constants] / (parts * constants)
    means = scaled[-1] / moment.weights[-1]
    slopes = fit.coefficients[: moment.entries]
    return Entries(slopes, squares, own @ scaled[:count], means, moment.parts)
