"""Algorithm 6.1 of the dissertation as it is printed, on whitened data, and with Laplace noise.

At a true ε: ``ratio`` is Δ/τ of each of the two releases of every round, see
`printed.published_ratio`. Replacing a volume moves them by 2 B_G / N and 2 B_h / N.
"""

import math
from collections.abc import Callable

import numpy as np

from consortium.algorithms.base import Array

ROUNDS = 100
BOUNDS = (10.0, 2.0)
"""B_G and B_h; the chapter prints none."""
RATE = 2.0
"""Learning rate for whitened data."""
_CHUNK = 8192


def published(data: Array, ratio: float, generator: np.random.Generator) -> Array:
    """Return the unmixing as printed: norms of 1 at most, no whitening, ρ = 0.015 / log R."""
    _, vectors = principal(data)
    scaled = vectors.T @ data / float(np.linalg.norm(data, axis=0).max())
    return climb(scaled, ratio, 0.015 / math.log(len(data)), generator) @ vectors.T


def whitened(data: Array, ratio: float, generator: np.random.Generator) -> Array:
    """Return the unmixing by the same updates of whitened data, at a suitable rate."""
    values, vectors = principal(data)
    whitening = (vectors / np.sqrt(values)).T
    return climb(whitening @ data, ratio, RATE, generator) @ whitening


def principal(data: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of the second moment: an exact PCA."""
    return np.linalg.eigh(data.astype(np.float64) @ data.T / data.shape[1])


def climb(data: Array, ratio: float, rate: float, generator: np.random.Generator) -> Array:
    """Run steps 3 to 19: ΔW and Δb of clipped gradients and noise."""
    size, count = data.shape
    data = data.astype(np.float32)
    unmixing, bias = np.eye(size), np.zeros(size)
    tau = [2 * bound / count / ratio for bound in BOUNDS]
    for _ in range(ROUNDS):
        slope, shift = gradients(unmixing, bias, data)
        slope += tau[0] * generator.standard_normal(slope.shape)
        shift += tau[1] * generator.standard_normal(size)
        unmixing, bias = unmixing + rate * slope, bias + rate * shift
    return unmixing


def laplace(
    data: Array, level: float, rounds: int, rate: float, generator: np.random.Generator
) -> Array:
    """Run DP-djICA, whose noise is on every volume's sources: rounds of pure ``level``-DP.

    Replacing a volume changes its R sources by at most 2 B ‖W‖ in Euclidean norm, where B bounds
    the whitened volumes, and so by √R times that in the sum of sizes.
    """
    values, vectors = principal(data)
    whitening = (vectors / np.sqrt(values)).T
    whitened_data = (whitening @ data).astype(np.float32)
    size = len(data)
    bound = float(np.linalg.norm(whitened_data, axis=0).max())
    unmixing, bias = np.eye(size), np.zeros(size)
    for _ in range(rounds):
        scale = 2 * bound * float(np.linalg.norm(unmixing, 2)) * math.sqrt(size) / level

        def noise(shape: tuple[int, ...], scale: float = scale) -> Array:
            drawn = generator.standard_exponential(shape, np.float32)
            drawn -= generator.standard_exponential(shape, np.float32)
            return scale * drawn

        slope, shift = gradients(unmixing, bias, whitened_data, noise)
        unmixing, bias = unmixing + rate * slope, bias + rate * shift
    return unmixing @ whitening


def gradients(
    unmixing: Array,
    bias: Array,
    data: Array,
    noise: Callable[[tuple[int, ...]], Array] | None = None,
) -> tuple[Array, Array]:
    """Return the means over volumes of (I + ŷ zᵀ) W and of ŷ, each clipped (steps 6 to 9).

    ``noise`` is added to z.

    ‖(I + ŷ zᵀ) W‖² = ‖W‖² + 2 ŷᵀ W Wᵀ z + ‖ŷ‖² ‖Wᵀ z‖², which avoids each volume's matrix.
    """
    size, count = data.shape
    matrix = unmixing.astype(np.float32)
    whole = float(np.square(matrix).sum())
    kept, product, shift = 0.0, np.zeros((size, size)), np.zeros(size)
    for start in range(0, count, _CHUNK):
        z = matrix @ data[:, start : start + _CHUNK] + bias[:, None].astype(np.float32)
        if noise:
            z += noise(z.shape)
        y = np.tanh(-0.5 * z)
        back = matrix.T @ z
        lengths = np.einsum("ij,ij->j", y, y)
        norms = whole + 2 * np.einsum("ij,ij->j", matrix.T @ y, back)
        norms += lengths * np.einsum("ij,ij->j", back, back)
        clip = BOUNDS[0] / np.maximum(np.sqrt(np.maximum(norms, 0.0)), BOUNDS[0])
        kept += float(clip.sum())
        product += (y * clip) @ z.T
        shift += y @ (BOUNDS[1] / np.maximum(np.sqrt(lengths), BOUNDS[1]))
    slope = (kept * np.eye(size) + product) @ unmixing / count
    return slope, shift / count
