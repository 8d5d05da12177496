"""Statistics of whitened sources that ICA needs, one pass over the data each.

z = W x are the current sources. Two scores ψ are known: ``tanh`` for
super-Gaussian values, and ``volatility`` for sources whose variance wanders in
time, as GARCH courses do: ψ(z_t) = z_t / (a + mean of z² around t), the score of
a Gaussian with locally estimated variance (after Hyvärinen 2001, separation by
nonstationarity of variance). The second mixes a subject's volumes and is
therefore for unit ``subject`` only.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
from scipy.ndimage import uniform_filter1d

from consortium.base.array import Array
from consortium.kernels.tiles import filled_up, product_of_columns
from consortium.privacy.clipping import squared_norms, sum_clipped_products

Score = Literal["tanh", "volatility"]

CURVATURE: dict[Score, float] = {"tanh": 0.06, "volatility": 0.32}
"""E[ψ' − ψz] of a GARCH course (α = 0.2, β = 0.7): sets the scale of a step."""

_WINDOW = 15  # volumes over which the local variance is taken
_FLOOR = 0.3  # least local variance, relative to the mean; bounds the score in quiet stretches
_TINY = float(np.finfo(np.float64).tiny)
_CHUNK = 8192  # columns that stay in the processor's cache


def tanh_score(sources: Array) -> Array:
    """Return the infomax score ψ(z) = tanh z of sources z."""
    score: Array = np.tanh(sources)
    return score


def volatility_score(sources: Array) -> Array:
    """Return ψ(z_t) = z_t / (0.3 + mean of z² over 15 volumes) along the last axis."""
    window = min(_WINDOW, sources.shape[-1])
    local: Array = uniform_filter1d(np.square(sources), window, axis=-1, mode="nearest")
    local += _FLOOR
    np.divide(sources, local, out=local)
    return local


SCORES: dict[Score, Callable[[Array], Array]] = {
    "tanh": tanh_score,
    "volatility": volatility_score,
}


def antisymmetric_part(matrix: Array) -> Array:
    """Return c_ij = M_ij − M_ji, i < j (last two axes): the gradient over ICA's rotations."""
    rows, columns = np.triu_indices(matrix.shape[-1], 1)
    difference: Array = matrix[..., rows, columns] - matrix[..., columns, rows]
    return difference


def skew_matrix(coordinates: Array, size: int) -> Array:
    """Return a rotation's antisymmetric matrix with ``coordinates`` above the diagonal."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = coordinates
    whole: Array = matrix - matrix.T
    return whole


def rotation_by_volume(unmixing: Array, data: Array, bound: float) -> Array:
    """Sum over volumes of the clipped c = ψ zᵀ − z ψᵀ, ψ = tanh; R(R−1)/2 entries.

    With r the part of z orthogonal to ψ, c = ψ rᵀ − r ψᵀ and ‖c‖ = ‖ψ‖‖r‖. So no volume's matrix is
    formed. ‖c‖² = ‖ψ‖²‖z‖² − (ψᵀz)² is mathematically equal, but cancels if z is long and nearly
    parallel to ψ: a hostile unmixing would disable the clipping.
    """
    total = np.zeros((len(unmixing),) * 2, dtype=np.float64)
    for z, _ in _sources(unmixing, data):  # columns of zeros add nothing
        psi = np.tanh(z).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            along = np.einsum("ij,ij->j", psi, z) / np.maximum(squared_norms(psi), _TINY)
            rest = z - along * psi
        total += sum_clipped_products(psi, rest, bound)
    return antisymmetric_part(total)


def infomax_by_volume(unmixing: Array, bias: Array, data: Array, bound: float) -> Array:
    """Sum over volumes of the clipped ŷ (z; 1)ᵀ, ŷ = −tanh(z/2); R x (R+1).

    Source: dissertation eq. 6.3 and 6.6 without the identity and without the factor W,
    which carry no data; ‖ŷ (z; 1)ᵀ‖ = ‖ŷ‖·‖(z; 1)‖.
    """
    size = len(unmixing)
    total = np.zeros((size, size + 1), dtype=np.float64)
    for z, count in _sources(unmixing, data):
        z += bias[:, None].astype(z.dtype)
        y = np.tanh(z * z.dtype.type(-0.5)).astype(np.float64)
        extended = np.ones((size + 1, z.shape[1]))
        extended[:size] = z
        total += sum_clipped_products(y[:, :count], extended[:, :count], bound)
    return total


def infomax_mean(unmixing: Array, bias: Array, data: Array) -> Array:
    """Return the mean over one subject's volumes of ŷ (z; 1)ᵀ; R x (R+1)."""
    z = unmixing @ data + bias[:, None]
    y = np.tanh(-0.5 * z)
    mean: Array = np.hstack([y @ z.T, y.sum(axis=1, keepdims=True)]) / data.shape[1]
    return mean


def subject_moments(
    unmixing: Array, data: Array, lengths: Sequence[int], score: Score
) -> Iterator[Array]:
    """Yield, for runs of equally long subjects, the means of ψ zᵀ of their sources (n x R x R)."""
    for cube, psi in _scored(unmixing, data, lengths, score):
        yield np.matmul(psi, cube.transpose(0, 2, 1)) / cube.shape[2]


def subject_steps(
    unmixing: Array, data: Array, lengths: Sequence[int], score: Score
) -> Iterator[Array]:
    """Yield the subjects' means of ψ zᵀ − diag ψ' (n x R x R), FastICA's fixed-point step.

    ψ' takes the local variance of the ``volatility`` score as given.
    """
    for cube, psi in _scored(unmixing, data, lengths, score):
        moments = np.matmul(psi, cube.transpose(0, 2, 1)) / cube.shape[2]
        slopes = 1.0 - psi * psi if score == "tanh" else psi / np.where(cube == 0, 1.0, cube)
        diagonal = np.arange(len(unmixing))
        moments[:, diagonal, diagonal] -= slopes.mean(axis=2)
        yield moments


def _sources(unmixing: Array, data: Array) -> Iterator[tuple[Array, int]]:
    """Yield sources in whole tiles, the last one filled up with zeros, and how many are volumes.

    A volume's source depends on no other volume: see `consortium.kernels.tiles`.
    """
    matrix = unmixing.astype(data.dtype)
    for start in range(0, data.shape[1], _CHUNK):
        volumes = data[:, start : start + _CHUNK]
        with np.errstate(over="ignore", invalid="ignore"):
            sources = product_of_columns(matrix, volumes).astype(data.dtype)
        yield filled_up(sources), volumes.shape[1]


def _scored(
    unmixing: Array, data: Array, lengths: Sequence[int], score: Score
) -> Iterator[tuple[Array, Array]]:
    """Yield sources and their scores, each n x R x T, for runs of n subjects with T volumes."""
    matrix = unmixing.astype(data.dtype)
    for part, length in _runs(lengths):
        people = data[:, part].reshape(len(data), -1, length).transpose(1, 0, 2)
        cube = unmix_alone(matrix, np.ascontiguousarray(people))
        yield cube, SCORES[score](cube)


def unmix_alone(matrix: Array, people: Array) -> Array:
    """Return the sources W x of n subjects (n x R x T), each in a product of its own.

    The rounding of a column by BLAS depends on its place among others, and with an unmixing whose
    terms cancel only this rounding remains: a scan that is one volume shorter would change the
    contributions of other subjects.
    """
    sources: Array = np.matmul(matrix, people)
    return sources


def _runs(lengths: Sequence[int]) -> Iterator[tuple[slice, int]]:
    """Yield slices of neighbouring subjects of one length, about `_CHUNK` volumes each."""
    start = index = 0
    while index < len(lengths):
        length = lengths[index]
        first = index
        while (
            index < len(lengths)
            and lengths[index] == length
            and (index == first or (index - first + 1) * length <= _CHUNK)
        ):
            index += 1
        stop = start + (index - first) * length
        yield slice(start, stop), length
        start = stop
