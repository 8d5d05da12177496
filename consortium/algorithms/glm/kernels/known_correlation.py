"""Correlation matrix of outcomes that is known from an open cohort."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consortium.algorithms.glm.kernels.outcome_correlation import SummedCorrelation
from consortium.base.array import Array
from consortium.kernels.tiles import product_of_columns

_LEAST_EIGENVALUE = 0.02
PER_OUTCOME = 4
"""Minimum number of participants per outcome. With fewer, one correlation for all outcomes gave
errors that were as small."""
MOST_OUTCOMES = 1000
_LEAST_EVEN = 0.1
_MOST_EVEN = 0.5
"""Least and largest weight of the mean correlation in the matrix, against chance."""


@dataclass(frozen=True, eq=False)
class KnownCorrelation(SummedCorrelation):
    """Any correlation of outcomes, all of which are released.

    Powers of R are symmetric matrices, which do not depend on the order or sign of eigenvectors, so
    that all sites compute the same.

    Examples
    --------
    >>> known = KnownCorrelation(np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> outcomes = np.array([[1.0], [-2.0]])
    >>> np.allclose(known.decode(known.encode(outcomes)), outcomes)
    True
    """

    matrix: Array
    """V x V, positive definite with ones on its diagonal."""

    @property
    def entries(self) -> int:
        """V."""
        return len(self.matrix)

    @property
    def spectrum(self) -> Array:
        """Eigenvalues of R."""
        return self._parts[0]

    @property
    def kept(self) -> float:
        """1, as all outcomes are released."""
        return 1.0

    @cached_property
    def _parts(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(self.matrix)
        return np.maximum(values, _LEAST_EIGENVALUE), vectors

    def _power(self, power: float) -> Array:
        values, vectors = self._parts
        raised: Array = (vectors * values**power) @ vectors.T
        return raised

    @cached_property
    def _weights(self) -> Array:
        return self._power(-0.25)

    @cached_property
    def _decoder(self) -> Array:
        return self._power(0.25)

    @cached_property
    def roots(self) -> Array:
        """Diagonal of R^½, length V."""
        return np.asarray(np.square(self._decoder).sum(axis=1))

    @cached_property
    def common(self) -> float:
        """Mean of all entries of R^½."""
        return float(np.square(self._decoder.mean(axis=0)).sum())

    def add(self, sums: Array, outcomes: Array, rows: slice) -> None:
        """Store some rows of the outcomes in the sums."""
        sums[rows] += outcomes

    def weighed(self, sums: Array) -> Array:
        """Return R^-¼ u; no participant's depends on others."""
        return product_of_columns(self._weights, sums)

    def squares(self, sums: Array) -> Array:
        """Return ‖u‖², length n."""
        return np.asarray(np.square(sums).sum(axis=0))

    def left(self, sums: Array) -> Array:
        """Return u."""
        return sums

    def maps(self, left: Array, rows: slice = slice(None)) -> Array:
        """Return rows of u."""
        return left[rows]

    def decode(self, sums: Array) -> Array:
        """Return R^¼ of sums."""
        return np.asarray(self._decoder @ sums)


def mean_correlation(left: Array) -> float:
    """Return the mean correlation of two outcomes, at least 0, from their residuals (V x n)."""
    count = len(left)
    if count < 2:
        return 0.0
    scaled = left / np.linalg.norm(left, axis=1, keepdims=True)
    return max(0.0, float(np.square(scaled.sum(axis=0)).sum() - count) / (count * (count - 1)))


def known_correlation(left: Array) -> KnownCorrelation | None:
    """Return the correlation of residuals (V x n), or None if there are too few participants.

    It is mixed with the mean correlation, the more the fewer participants there are for each
    outcome.
    """
    count, persons = left.shape
    if not 2 < count <= MOST_OUTCOMES or persons < PER_OUTCOME * count:
        return None
    even = np.full((count, count), mean_correlation(left))
    scaled = left / np.linalg.norm(left, axis=1, keepdims=True)
    weight = min(max(count / persons, _LEAST_EVEN), _MOST_EVEN)
    matrix = (1 - weight) * scaled @ scaled.T + weight * even
    np.fill_diagonal(matrix, 1.0)
    return KnownCorrelation(matrix)
