"""Symmetric tensors of order three: moments, coordinates that keep their norm, decomposition.

Source of the power method: Anandkumar, Ge, Hsu, Kakade and Telgarsky (2014), algorithm 1.
"""

from itertools import permutations

import numpy as np

from consortium.base.array import Array
from consortium.privacy.clipping import clip_columns, clip_products, squared_norms

_CHUNK = 2048  # participants whose pairwise products are in memory at a time
_POLISH = 50


def cubic_size(size: int) -> int:
    """Return the number of entries of a packed symmetric K x K x K tensor."""
    return size * (size + 1) * (size + 2) // 6


def pack_cubic(tensor: Array) -> Array:
    """Pack entries i <= j <= k, times the root of their number, which keeps the Frobenius norm."""
    index, weights = _corner(len(tensor))
    packed: Array = tensor[index] * weights
    return packed


def unpack_cubic(packed: Array, size: int) -> Array:
    """Invert `pack_cubic` for a K x K x K tensor."""
    (first, second, third), weights = _corner(size)
    tensor = np.empty((size, size, size))
    values = packed / weights
    for i, j, k in permutations((first, second, third)):
        tensor[i, j, k] = values
    return tensor


def _corner(size: int) -> tuple[tuple[Array, Array, Array], Array]:
    i, j, k = np.indices((size, size, size)).reshape(3, -1)
    kept = (i <= j) & (j <= k)
    i = i[kept]
    j = j[kept]
    k = k[kept]
    equal = (i == j).astype(int) + (j == k)
    return (i, j, k), np.sqrt(np.array([6.0, 3.0, 1.0]))[equal]


def mean_cube(columns: Array, norm: float) -> Array:
    """Return the mean over columns of v ⊗ v ⊗ v, each clipped to norm ``norm`` = ‖v‖³, packed.

    Parameters
    ----------
    columns : array, K x N
    """
    clipped = clip_columns(columns, float(np.cbrt(norm)))
    mean: Array = pack_cubic(_sum_products(clipped, clipped, clipped)) / columns.shape[1]
    return mean


def mean_mixed_cube(first: Array, second: Array, third: Array, norm: float) -> Array:
    """Return the mean of symmetric parts of u ⊗ v ⊗ w, clipped to ‖u‖‖v‖‖w‖ <= norm, packed.

    The symmetric part's own norm is not larger. A column that overflowed counts as zero.

    Parameters
    ----------
    first, second, third : array, K x N
    """
    u, v, w = (np.asarray(part, dtype=np.float64) for part in (first, second, third))
    ((u, v, w),) = clip_products([(u, v, w)], norm)
    total = _sum_products(u, v, w)
    orders = np.stack([total.transpose(order) for order in permutations(range(3))])
    mean: Array = pack_cubic(orders.mean(axis=0)) / first.shape[1]
    return mean


def _sum_products(first: Array, second: Array, third: Array) -> Array:
    """Sum over columns of u ⊗ v ⊗ w, K x K x K."""
    size = len(first)
    total = np.zeros((size * size, size))
    for start in range(0, first.shape[1], _CHUNK):
        part = slice(start, start + _CHUNK)
        pairs = first[:, None, part] * second[None, :, part]
        total += pairs.reshape(size * size, -1) @ third[:, part].T
    return total.reshape(size, size, size)


def transform_tensor(tensor: Array, matrix: Array) -> Array:
    """Return T(M, M, M) for a D x D x D tensor and a D x K matrix: K x K x K."""
    whole: Array = np.einsum("abc,ai,bj,ck->ijk", tensor, matrix, matrix, matrix, optimize=True)
    return whole


def contract_tensor(tensor: Array, vectors: Array) -> Array:
    """Return T(I, u, u) for each column u, K x L."""
    size, count = vectors.shape
    partial = (tensor.reshape(-1, size) @ vectors).reshape(size, size, count)
    contracted: Array = np.einsum("ijl,jl->il", partial, vectors)
    return contracted


def orthogonal_components(
    tensor: Array, *, restarts: int, iterations: int, generator: np.random.Generator
) -> Array:
    """Return orthonormal u_k with T close to Σ λ_k u_k ⊗ u_k ⊗ u_k, λ_k >= 0: K x K, columns.

    Tensor power method with restarts and deflation. Then all columns are improved together, by the
    polar factor of the contractions, since deflation accumulates errors in the last ones.

    Parameters
    ----------
    tensor : array, K x K x K, symmetric
    restarts, iterations : int
        Random starts for each component, and power iterations from each.
    """
    rest = tensor.copy()
    found = []
    for _ in range(len(tensor)):
        starts = _unit(generator.standard_normal((len(tensor), restarts)))
        for _ in range(iterations):
            starts = _unit(contract_tensor(rest, starts))
        values = np.einsum("il,il->l", contract_tensor(rest, starts), starts)
        best = starts[:, int(np.argmax(values))]
        found.append(best)
        rest = rest - values.max() * np.einsum("i,j,k->ijk", best, best, best)
    columns = _polar(np.column_stack(found))
    for _ in range(_POLISH):
        columns = _polar(contract_tensor(tensor, columns))
    signs = np.sign(np.einsum("il,il->l", contract_tensor(tensor, columns), columns))
    oriented: Array = columns * np.where(signs == 0, 1.0, signs)
    return oriented


def _unit(columns: Array) -> Array:
    sizes = np.sqrt(squared_norms(columns))
    scaled: Array = columns / np.where(sizes > 0, sizes, 1.0)
    return scaled


def _polar(matrix: Array) -> Array:
    left, _, right = np.linalg.svd(matrix)
    nearest: Array = left @ right
    return nearest
