"""Assumed participants: classes that the best rule separates with a stated accuracy.

The K classes are equally frequent and equally distant. Within a class entries are normal with equal
variances. If the class means differ by d·(e_j - e_k) in K directions, the best rule chooses the
largest of K normal numbers, one of which is raised by d. Its accuracy is ∫ φ(z - d) Φ(z)^(K-1) dz.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from consortium.algorithms.base import Array, Expectation, Extent, Resolution, Shape
from consortium.base.position_hashes import hashes_of_positions
from consortium.privacy.bounds import Unit

SPREAD = 0.4
"""Assumed standard deviation of an entry between -1 and 1, unless its view has many."""
NEW = 4000
"""Number of participants on whom a trained classifier is tested."""
DRAWS = 8
"""Studies of a classifier that are drawn."""
_MOST = 1600
_FEWEST = 400
_WORK = 5e8
"""Maximum and minimum participants of a drawn study; maximum of numbers x participants x rounds."""
_FARTHEST = 12.0
_GRID = np.linspace(-9.0, _FARTHEST + 9.0, 4201)


@dataclass(frozen=True, eq=False)
class AssumedSite:
    """A site whose participants are the columns of a table."""

    columns: Array
    """D x M."""
    extent: Extent

    @property
    def unit(self) -> Unit:
        """Unit of privacy: participants."""
        return "subject"

    @property
    def features(self) -> int:
        """D."""
        return len(self.columns)

    @property
    def voxels(self) -> int:
        """D."""
        return len(self.columns)

    @property
    def lengths(self) -> tuple[int, ...]:
        """One vector of each participant."""
        return (1,) * self.units

    @property
    def units(self) -> int:
        """M."""
        return int(self.columns.shape[1])

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """One number per participant."""
        return hashes_of_positions(self.units)

    def blocks(self, resolution: Resolution = "features") -> Iterator[Array]:
        """Yield one column at a time."""
        del resolution
        yield from np.hsplit(self.columns, self.units)

    def table(self) -> Array:
        """Return all columns."""
        return self.columns

    def reduced(self, basis: Array) -> Array:
        """Return the columns on a basis."""
        reduced: Array = basis.T @ self.columns
        return reduced


def effect_at_accuracy(accuracy: float, classes: int) -> float:
    """Return d, at which the best rule has this accuracy; 0 if guessing has it.

    Examples
    --------
    >>> round(separation(0.7602499, 2), 4)  # Φ(1/√2)
    1.0
    """
    if accuracy <= 1.0 / classes:
        return 0.0
    return float(brentq(lambda d: _share_classified(d, classes) - accuracy, 0.0, _FARTHEST))


def _share_classified(distance: float, classes: int) -> float:
    density = np.exp(-np.square(_GRID - distance) / 2.0) / np.sqrt(2.0 * np.pi)
    return float(np.trapezoid(density * ndtr(_GRID) ** (classes - 1), _GRID))


def class_means(
    accuracy: float, classes: int, entries: int, generator: np.random.Generator
) -> Array:
    """Return means of the assumed classes in standard deviations, in random directions.

    Parameters
    ----------
    accuracy : float
        Accuracy of the best rule.
    classes : int
        At most one more than entries.
    """
    corners = np.eye(classes) - 1.0 / classes
    turned = np.linalg.svd(corners)[0][:, : classes - 1].T @ corners  # (K - 1) x K
    basis = np.linalg.qr(generator.standard_normal((entries, classes - 1)))[0]
    means: Array = effect_at_accuracy(accuracy, classes) * basis @ turned
    return means


@dataclass(frozen=True)
class Classes:
    """Participants of K classes, which the best rule separates with the assumed accuracy."""

    means: Array
    """entries x K. In standard deviations."""
    spread: Array
    """Length entries. Standard deviation of each entry within a class."""

    def draw(self, persons: int, generator: np.random.Generator) -> tuple[Array, Array]:
        """Return entries, entries x participants, and the participants' classes."""
        kinds = generator.integers(self.means.shape[1], size=persons)
        own = self.means[:, kinds] + generator.standard_normal((len(self.means), persons))
        return self.spread[:, None] * own, kinds


def sizes_drawn(shape: Shape, numbers: int, rounds: int) -> tuple[int, ...]:
    """Return the number of assumed participants of each site, or fewer in proportion.

    Parameters
    ----------
    numbers, rounds : int
        Of the classifier. Both limit the number of participants that can be drawn.
    """
    most = max(_FEWEST, min(_MOST, int(_WORK / (numbers * rounds))))
    part = min(1.0, most / sum(shape.units))
    return tuple(max(1, round(part * units)) for units in shape.units)


def usual_spread(entries: int) -> float:
    """Return the assumed standard deviation of an entry of a view, whose vectors have norm 1."""
    return min(SPREAD, 1.0 / math.sqrt(entries))


def expected_accuracy(right: Sequence[float]) -> Expectation:
    """Return the mean of the draws, and their middle half as a range."""
    value = float(np.mean(right))
    low, high = np.quantile(right, (0.25, 0.75)).tolist()
    ranged = "half of all studies"
    return Expectation("expected accuracy", value, min(low, value), max(high, value), ranged=ranged)
