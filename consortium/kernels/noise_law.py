"""Exact distribution of a release's noise, with draws from it.

It is known from the release only: privacy noise is Gaussian and independent, with one known
standard deviation in the released coordinates. So an analysis can be repeated with new noise any
number of times without privacy loss, which shows the reliability of its results. The integer grid
on which noise is drawn is far finer than the noise, and is ignored.
"""

from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array


@dataclass(frozen=True)
class SymmetricNoise:
    """Noise of a symmetric matrix that was released in packed form (see `kernels.moments`)."""

    size: int
    """d, rows."""
    deviation: float
    """τ, standard deviation of every packed entry: of diagonal entries, and √2 times that of every
    other entry of the matrix."""

    @property
    def edge(self) -> float:
        """τ√(2d), the largest eigenvalue of only noise for large d."""
        return float(self.deviation * np.sqrt(2.0 * self.size))

    def draw(self, generator: np.random.Generator) -> Array:
        """Draw new noise, d x d."""
        half = generator.standard_normal((self.size, self.size))
        # (A + Aᵀ)/2 has variance 1 on the diagonal and 1/2 elsewhere, as unpacked noise has.
        return np.asarray(self.deviation * (half + half.T) / 2.0)

    def freed(self, values: Array) -> Array:
        """Correct eigenvalues for noise, which makes each of them look larger.

        θ = (λ + √(λ² − edge²))/2 for λ beyond the edge. Values within it become half the edge, the
        smallest strength of a detectable direction (Benaych-Georges and Nadakuditi 2011).
        """
        beyond = np.maximum(np.square(values) - self.edge**2, 0.0)
        return np.asarray((np.maximum(values, self.edge) + np.sqrt(beyond)) / 2.0)

    def overlaps(self, strengths: Array) -> Array:
        """Return cos² between a direction of true strength θ and the released one: 1 − edge²/(4θ²).

        It is 0 for a direction that noise hides.
        """
        least = np.maximum(np.abs(strengths), np.finfo(np.float64).tiny)
        return np.asarray(1.0 - np.square(np.minimum(self.edge / 2.0 / least, 1.0)))
