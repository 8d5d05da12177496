"""Algorithm 5.1 of the dissertation as it is printed: noise on D x D x D numbers, then whitening.

At a true ε of both releases, with the sensitivities that hold. The noise of κ = 1 cancels but for
the symmetric part; ``ratio`` is Δ/τ of a release, see `printed.published_ratio`.
"""

import math

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.tensor.kernels.tensor import orthogonal_components, transform_tensor


def published_mixture(
    table: Array, count: int, ratio: float, variance: float, bound: float, g: np.random.Generator
) -> Array:
    """Release the centres of a mixture of known σ², as in section 5.1.2, shape (D, K).

    √2 and 2 + 2σ² √(3D + 6), times 1/N, replace the printed sensitivities.
    """
    x = table / bound * np.minimum(1.0, bound / np.linalg.norm(table, axis=0))
    (features, persons), scaled = x.shape, variance / bound**2
    second = x @ x.T / persons - scaled * np.eye(features)
    third = np.zeros((features**2, features))
    for start in range(0, persons, 4096):
        part = x[:, start : start + 4096]
        third += (part[:, None] * part[None]).reshape(features**2, -1) @ part.T
    third = third.reshape((features,) * 3) / persons
    flat = np.einsum("i,jk->ijk", x.mean(axis=1), np.eye(features))
    third -= scaled * (flat + flat.transpose(1, 0, 2) + flat.transpose(1, 2, 0))
    shift = 2 + 2 * scaled * math.sqrt(3 * features + 6)
    second += math.sqrt(2.0) / persons / ratio * _symmetric(features, 2, g)
    third += shift / persons / ratio * _symmetric(features, 3, g)
    return bound * _centres(second, third, count, g)


def published_topics(table: Array, count: int, ratio: float, g: np.random.Generator) -> Array:
    """Release word frequencies of topics from participants' three one-hot words, shape (D, K).

    Both sensitivities are √2/N. The moments are made symmetric after the release, and frequencies
    below zero are cut off (section 5.4.2).
    """
    words = table.reshape(3, -1, table.shape[1]).argmax(axis=1)
    features, persons = len(table) // 3, table.shape[1]
    third = np.zeros((features,) * 3)
    np.add.at(third, tuple(words), 1.0 / persons)
    second = third.sum(axis=2)
    tau = math.sqrt(2.0) / persons / ratio
    second = (second + second.T) / 2 + tau * _symmetric(features, 2, g)
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    third = np.mean([third.transpose(order) for order in orders], axis=0)
    third += tau * _symmetric(features, 3, g)
    found = np.maximum(_centres(second, third, count, g), 0.0)
    return found / np.maximum(found.sum(axis=0), 1e-12)


def _centres(second: Array, third: Array, count: int, g: np.random.Generator) -> Array:
    """Whiten, split by the tensor power method, and undo the whitening."""
    values, vectors = np.linalg.eigh(second)
    lengths, vectors = np.maximum(values[-count:], 1e-6), vectors[:, -count:]
    forward = vectors / np.sqrt(lengths)
    small = transform_tensor(third, forward)
    found = orthogonal_components(small, restarts=30, iterations=50, generator=g)
    strengths = np.einsum("ijk,il,jl,kl->l", small, found, found, found, optimize=True)
    return (vectors * np.sqrt(lengths)) @ (found * np.maximum(strengths, 1.0))


def _symmetric(size: int, order: int, g: np.random.Generator) -> Array:
    """Return a symmetric array of independent standard normal entries, one per sorted index."""
    index = np.sort(np.indices((size,) * order), axis=0)
    return g.standard_normal((size,) * order)[tuple(index)]
