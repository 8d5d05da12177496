"""Block power iteration: products of a second moment with a few columns, and eigenpairs from them.

No D x D array is formed: a participant's part of X Xᵀ Q is computed as X (Xᵀ Q), in memory of the
size of its block. Method: subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4).
"""

import numpy as np

from consortium.base.array import Array
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.clipping import add_clipped_mean, sum_clipped_products

ITERATIONS = 5
"""Number of products if the noise is unknown. Without noise it is enough for 99 % of the energy of
20 components even if the spectrum has no gap and each eigenvalue is a twentieth smaller than the
one before."""
_CHUNK = 256  # volumes that are converted to float64 together


def start_basis(features: int, size: int, seed: int) -> Array:
    """Draw a random orthonormal D x K basis, reproducible from the seed."""
    draws = np.random.default_rng(seed).standard_normal((features, size))
    return orthonormal(draws)


def orthonormal(columns: Array) -> Array:
    """Return an orthonormal basis (D x K) of the span of D x K columns."""
    basis: Array = np.linalg.qr(columns)[0]
    return basis


def add_subject_product(total: Array, block: Array, basis: Array, bound: float) -> None:
    """Add the clipped X Xᵀ Q / T of one participant to ``total``, in place.

    The products are as precise as the block; norm and sum are in float64. A product that overflowed
    counts as zero, since an error would reveal the size of the data to the party that chose Q.

    Parameters
    ----------
    total : array, D x K, float64
    block : array, D x T
    basis : array, D x K
        Q, of the block's type.
    bound : float
        Largest Frobenius norm of the contribution.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        courses = (block.T @ basis).T
    add_subject_maps(total, block, courses, bound)


def add_subject_maps(total: Array, block: Array, courses: Array, bound: float) -> None:
    """Add the clipped Y Zᵀ / T of one participant to ``total``; see `add_subject_product`.

    Parameters
    ----------
    total : array, V x R, float64
    block : array, V x T
        Y.
    courses : array, R x T
        Z, of the block's type.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = block @ courses.T
    add_clipped_mean(total, product, block.shape[1], bound)


def add_volume_products(total: Array, block: Array, basis: Array, bound: float) -> None:
    """Add x xᵀ Q of every volume to ``total``, in place, each clipped to ``bound``.

    ‖x xᵀ Q‖ = ‖x‖ ‖Qᵀ x‖, so no volume's matrix is formed. All numbers are float64: the rounding of
    a float32 sum depends on every volume in it.
    """
    wide = np.asarray(basis, dtype=np.float64)
    for start in range(0, block.shape[1], _CHUNK):
        volumes = block[:, start : start + _CHUNK].astype(np.float64)
        coordinates = product_of_columns(wide.T, volumes)
        total += sum_clipped_products(volumes, coordinates, bound)


def add_volume_maps(total: Array, block: Array, courses: Array, bound: float) -> None:
    """Add y zᵀ of every volume to ``total``, in place, each clipped to ``bound``."""
    for start in range(0, block.shape[1], _CHUNK):
        part = slice(start, start + _CHUNK)
        wide = block[:, part].astype(np.float64), courses[:, part].astype(np.float64)
        total += sum_clipped_products(*wide, bound)


def eigenpairs(product: Array, deviation: float) -> tuple[Array, Array]:
    """Estimate leading eigenpairs of A from Y = A Q + noise, Q orthonormal and nearly invariant.

    Parameters
    ----------
    product : array, D x K
        Y.
    deviation : float
        σ, standard deviation of the noise in each entry.

    Returns
    -------
    basis : array, D x K
        Left singular vectors of Y.
    eigenvalues : array, length K
        Singular values corrected for noise. Its expectation in YᵀY is D σ² on the diagonal, with
        a standard deviation of about σ² √(2D), which is the smallest squared value.
    """
    basis, sizes, _ = np.linalg.svd(product, full_matrices=False)
    features = len(product)
    squares = np.square(sizes) - features * deviation**2
    chance = np.sqrt(2.0 * features) * deviation**2
    return basis, np.sqrt(np.maximum(squares, chance))


def noise_edge(features: int, size: int, deviation: float) -> float:
    """Return the largest of `eigenpairs`' eigenvalues if Y is only noise.

    The largest singular value of Gaussian D x K noise is σ (√D + √K) (Davidson and Szarek 2001).
    """
    return deviation * float(np.sqrt(2.0 * np.sqrt(float(features * size)) + size))
