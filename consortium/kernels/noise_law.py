"""The exact law of a release's noise, and draws of it.

Whoever knows only the release knows this law: the noise of privacy is Gaussian, independent and of
one known deviation in the coordinates that are released. So an analysis may be done again with
fresh noise as often as one likes, which costs no privacy and tells how far to trust what came of
it. The grid of integers on which noise is drawn is far finer than the noise, and is left out.
"""

from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array


@dataclass(frozen=True)
class SymmetricNoise:
    """Noise of a symmetric matrix that was released packed (see `kernels.moments`)."""

    size: int
    """d, rows."""
    deviation: float
    """τ, standard deviation of every packed entry: of the diagonal, and √2 times that of every
    other entry of the matrix."""

    @property
    def edge(self) -> float:
        """τ√(2d): where the eigenvalues of noise alone end, as d grows."""
        return float(self.deviation * np.sqrt(2.0 * self.size))

    def draw(self, generator: np.random.Generator) -> Array:
        """Fresh noise, d x d."""
        half = generator.standard_normal((self.size, self.size))
        # (A + Aᵀ)/2 has variance 1 on the diagonal and 1/2 beside it, as unpacked noise has.
        return np.asarray(self.deviation * (half + half.T) / 2.0)

    def freed(self, values: Array) -> Array:
        """Eigenvalues without the noise's part, which makes each of them look larger.

        θ = (λ + √(λ² − edge²))/2 for λ beyond the edge; what lies within it becomes half the
        edge, from where on a direction can be told (Benaych-Georges and Nadakuditi 2011).
        """
        beyond = np.maximum(np.square(values) - self.edge**2, 0.0)
        return np.asarray((np.maximum(values, self.edge) + np.sqrt(beyond)) / 2.0)

    def overlaps(self, strengths: Array) -> Array:
        """cos² between a direction of true strength θ and the released one: 1 − edge²/(4θ²).

        Zero for one that noise hides.
        """
        least = np.maximum(np.abs(strengths), np.finfo(np.float64).tiny)
        return np.asarray(1.0 - np.square(np.minimum(self.edge / 2.0 / least, 1.0)))
