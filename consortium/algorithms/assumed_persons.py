"""Persons as planners assume them: classes that a rule tells apart as well as they say.

The classes of K are equally frequent and equally far apart; entries vary alike within a class, as a
normal law does. With class means d·(e_j - e_k) apart in K directions, the best rule names the
largest of K normal numbers of which one is raised by d; the share that it tells rightly is
∫ φ(z - d) Φ(z)^(K-1) dz.
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
"""Persons on whom a trained classifier is tried."""
DRAWS = 8
"""Studies of a classifier that are drawn."""
NO_EFFECT = (
    "No accuracy is forecast, since it depends on how well participants can be classified at all: "
    "say in 'analysis.detect' what share of them you assume that the best rule classifies "
    "correctly."
)
_MOST, _FEWEST, _WORK = 1600, 400, 5e8
"""Persons of a drawn study, at most and at least; products of numbers, persons and rounds."""
_FARTHEST = 12.0
_GRID = np.linspace(-9.0, _FARTHEST + 9.0, 4201)


@dataclass(frozen=True, eq=False)
class AssumedSite:
    """A site whose persons are the columns of a table."""

    columns: Array
    """D x M."""
    extent: Extent

    @property
    def unit(self) -> Unit:
        """Persons."""
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
        """One vector of each person."""
        return (1,) * self.units

    @property
    def units(self) -> int:
        """M."""
        return int(self.columns.shape[1])

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """One number per person."""
        return hashes_of_positions(self.units)

    def blocks(self, resolution: Resolution = "features") -> Iterator[Array]:
        """One column at a time."""
        del resolution
        yield from np.hsplit(self.columns, self.units)

    def table(self) -> Array:
        """All columns."""
        return self.columns

    def reduced(self, basis: Array) -> Array:
        """Columns on a basis."""
        reduced: Array = basis.T @ self.columns
        return reduced


def effect_at_accuracy(accuracy: float, classes: int) -> float:
    """d, at which the best rule tells this share of the persons rightly; 0 if guessing does.

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
    """Means of the classes in standard deviations, entries x classes, in a random direction each.

    Parameters
    ----------
    accuracy : float
        Of the best rule.
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
    """Persons of K classes, whom the best rule tells apart as well as is assumed."""

    means: Array
    """entries x K. In standard deviations."""
    spread: Array
    """Length entries. Standard deviation of each entry within a class."""

    def draw(self, persons: int, generator: np.random.Generator) -> tuple[Array, Array]:
        """Entries, entries x persons, and the persons' classes."""
        kinds = generator.integers(self.means.shape[1], size=persons)
        own = self.means[:, kinds] + generator.standard_normal((len(self.means), persons))
        return self.spread[:, None] * own, kinds


def sizes_drawn(shape: Shape, numbers: int, rounds: int) -> tuple[int, ...]:
    """Persons of each site, or as many as stand for them in proportion.

    Parameters
    ----------
    numbers, rounds : int
        Of the classifier: how many persons can be drawn follows from both.
    """
    most = max(_FEWEST, min(_MOST, int(_WORK / (numbers * rounds))))
    part = min(1.0, most / sum(shape.units))
    return tuple(max(1, round(part * units)) for units in shape.units)


def usual_spread(entries: int) -> float:
    """Assumed standard deviation of an entry of a view of so many: one of many has norm 1."""
    return min(SPREAD, 1.0 / math.sqrt(entries))


def expected_accuracy(right: Sequence[float]) -> Expectation:
    """Mean of the draws, and the middle half of them."""
    value, (low, high) = float(np.mean(right)), np.quantile(right, (0.25, 0.75)).tolist()
    ranged = "half of all studies"
    return Expectation("expected accuracy", value, min(low, value), max(high, value), ranged=ranged)
