"""A whitening of noisy second moments, with eigenvalues corrected for the noise."""

from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array


@dataclass(frozen=True)
class Whitening:
    """Whitening of noisy second moments: W = U d^(-1/2), U (D x K), d their eigenvalues."""

    vectors: Array
    values: Array

    @property
    def forward(self) -> Array:
        """W, D x K: Wᵀ M W is the identity."""
        scaled: Array = self.vectors / np.sqrt(self.values)
        return scaled

    @property
    def backward(self) -> Array:
        """U d^(1/2), D x K: takes whitened vectors back."""
        scaled: Array = self.vectors * np.sqrt(self.values)
        return scaled


def shrink_eigenvalues(values: Array, edge: float) -> Array:
    """Estimate eigenvalues of a low-rank matrix from its sum with symmetric Gaussian noise.

    An eigenvalue d above half the edge e of the noise's spectrum appears at d + e²/(4d)
    (Capitaine, Donati-Martin and Féral 2009). A smaller one appears at the edge. The estimate is
    never less than e/2.
    """
    above = np.maximum(values, edge)
    estimate: Array = (above + np.sqrt((above - edge) * (above + edge))) / 2
    return estimate


def moment_whitening(moment: Array, components: int, edge: float) -> Whitening:
    """Return the whitening of the leading eigenvectors of a noisy D x D moment of rank K."""
    values, vectors = np.linalg.eigh(moment)
    leading = slice(len(values) - components, None)
    least = 1e-9 * max(float(np.abs(values).max()), 1e-300)
    estimates = np.maximum(shrink_eigenvalues(values[leading], edge), least)
    return Whitening(vectors[:, leading][:, ::-1], estimates[::-1])


def flat_variance(moment: Array, mean: Array, components: int) -> float:
    """Return σ² of a noisy moment Σ w a aᵀ + σ² I: the mean of its D - K smallest eigenvalues.

    It is at least 0. For K = D it is the smallest eigenvalue of the covariance (Hsu and Kakade
    2013, theorem 1).
    """
    features = len(moment)
    if components < features:
        return max(float(np.linalg.eigvalsh(moment)[: features - components].mean()), 0.0)
    return max(float(np.linalg.eigvalsh(moment - np.outer(mean, mean))[0]), 0.0)
