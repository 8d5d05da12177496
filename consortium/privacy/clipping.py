"""Clipping: scaling contributions of any scale down to a bound.

A hostile query may choose scales at which squares over- or underflow, column by column and factor
by factor. A naive norm is then infinite or zero. Ordinary squares are used directly. Every other
column is first scaled near one by a power of two, which is exact. A contribution that is not
finite, or whose norm is not, counts as zero: an error would reveal the size of the data.

Norms are computed in float64. A sum in float32 over many voxels is too small, and clipped
contributions would exceed their bound.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from consortium.base.array import Array

Factors = tuple[Array, ...]

_LEAST = 1e-90
_MOST = 1e90
"""Squares between these limits, and products of three numbers, are exact to rounding."""
_LARGEST = 2.0**1000  # bounds beyond count as this: a number over one stays finite
_ROWS = 2048  # rows of a product at a time, which fit into the processor's cache
_LARGEST_BASIS = 1e3


def squared_norms(columns: Array) -> Array:
    """Return the squared norm of each column of ordinary size: 1e-160 has a square of zero."""
    squares: Array = np.einsum("ij,ij->j", columns, columns)
    return squares


def column_norms(columns: Array) -> Array:
    """Return the norm of each column, of any size; infinite for one that is not finite."""
    wide = np.asarray(columns, dtype=np.float64)
    with np.errstate(all="ignore"):
        norms: Array = np.sqrt(squared_norms(wide))
        extreme = _extreme(1.0, norms)
        if extreme.size:
            scaled, exponents = _near_one(wide[:, extreme])
            sizes = np.ldexp(np.sqrt(squared_norms(scaled)), exponents)
            norms[extreme] = np.where(_finite(wide[:, extreme]), sizes, np.inf)
    return norms


def vector_norm(vector: Array) -> float:
    """Return the norm of an array of any shape and size; infinite if an entry is not finite."""
    return float(column_norms(np.reshape(vector, (-1, 1)))[0])


def clip_vector(vector: Array, norm: float) -> Array:
    """Scale an array of any shape to a Euclidean norm of at most ``norm``."""
    wide = np.asarray(vector, dtype=np.float64)
    with np.errstate(all="ignore"):
        square = np.vdot(wide, wide)
        if _extreme(norm, square).size:
            return clip_columns(wide.reshape(-1, 1), norm).reshape(wide.shape)
        size = math.sqrt(square)
    return vector if size <= norm else wide * (norm / size)


def bounded_basis(basis: Array) -> Array:
    """Scale a basis down whose norm is more than a thousand times that of orthonormal columns.

    A library may round products of a matrix and many columns differently with one column more or
    fewer. A hostile basis could be so large that only rounding remains of each column after
    cancellation. One participant more would then change the contributions of all others.
    """
    return clip_vector(basis, _LARGEST_BASIS * math.sqrt(max(basis.shape[-1], 1)))


def clip_columns(matrix: Array, norm: float) -> Array:
    """Scale each column of a D x N matrix to a Euclidean norm of at most ``norm``.

    Returns a new float64 array, of zeros for a norm of zero or less.
    """
    clipped = np.array(matrix, dtype=np.float64, order="C")
    clip_in_place(clipped, norm)
    return clipped


def clip_factors(limit: float, sizes: Array) -> Array:
    """Return each column's factor min(1, limit / size), from its size.

    The factor is 0 for a size that is not a number; ``limit`` is above 0.
    """
    return np.where(np.isfinite(sizes), limit / np.maximum(sizes, limit), 0.0)


def clip_values(values: Array, least: float, most: float) -> Array:
    """Cut each value to a smallest and a largest one; NaN becomes 0."""
    return np.clip(finite_values(values), least, most)


def finite_values(values: Array) -> Array:
    """Return values with 0 in place of numbers that are not finite, before clipping."""
    return np.where(np.isfinite(values), values, 0.0)


def clip_in_place(columns: Array, norm: float) -> None:
    """Clip a float64 array in place, as `clip_columns`.

    Last bits depend on the array's layout.
    """
    with np.errstate(all="ignore"):
        along = columns.flags.f_contiguous  # a column's numbers are then contiguous
        squares = _squared_rows(columns.T) if along else squared_norms(columns)
        extreme = _extreme(norm, squares)
        if extreme.size:
            careful = _clip_carefully([(columns[:, extreme],)], norm)[0][0]
        columns *= norm / np.maximum(np.sqrt(squares), norm)
        if extreme.size:
            columns[:, extreme] = careful


def clipped_mean(parts: Iterable[Array], bound: float, units: int) -> Array:
    """Return the mean over units of their statistics, each clipped to ``bound``.

    A statistic that overflowed counts as zero, since an error would reveal the size of the data.

    Parameters
    ----------
    parts : iterable of array
        Statistics of some units along the first axis of each array.
    bound : float
        Euclidean norm.
    units : int
        Number of all units.
    """
    total: Array = np.zeros(1)
    for part in parts:
        total = total + clip_columns(part.reshape(len(part), -1).T, bound).sum(axis=1)
    return total / units


def clip_products(products: Sequence[Factors], bound: float) -> list[Factors]:
    """Scale factors until each column's outer products together have norm at most ``bound``.

    A column contributes u ⊗ v ⊗ ..., of norm ‖u‖‖v‖..., for every one of the products.

    Parameters
    ----------
    products : sequence of tuples of float64 arrays, each any x N
        The factors of each product.

    Returns
    -------
    list of tuples of arrays
        As ``products``; in each product the factor with the fewest rows is scaled.
    """
    with np.errstate(all="ignore"):
        squares = [[squared_norms(factor) for factor in factors] for factors in products]
        extreme = _extreme(bound, *(each for of_one in squares for each in of_one))
        sizes = np.sqrt(sum(math.prod(of_one[1:], start=of_one[0]) for of_one in squares))
        scales = bound / np.maximum(sizes, bound)
        clipped = [_scaled(factors, scales) for factors in products]
        if extreme.size:
            parts = [tuple(factor[:, extreme] for factor in factors) for factors in products]
            for number, careful in enumerate(_clip_carefully(parts, bound)):
                clipped[number] = tuple(factor.copy() for factor in clipped[number])
                for factor, part in zip(clipped[number], careful, strict=True):
                    factor[:, extreme] = part
    return clipped


def sum_clipped_products(left: Array, right: Array, bound: float) -> Array:
    """Return the sum over columns of left rightᵀ, each clipped to ‖left‖‖right‖ <= ``bound``.

    In float64: the rounding of a float32 sum depends on every column in it, by more than the
    sensitivity allows for.

    Parameters
    ----------
    left : array, A x N, float64
    right : array, B x N, float64

    Returns
    -------
    array, A x B
    """
    ((left, right),) = clip_products([(left, right)], bound)
    total: Array = left @ right.T
    return total


def clip_moment(block: Array, bound: float) -> tuple[Array, float, Array | None]:
    """Clip X Xᵀ / T of one subject's D x T block to Frobenius norm ``bound``.

    Returns
    -------
    rows : array, D x T, float64, Fortran order
    scale : float
        ``scale * rows @ rows.T`` is the subject's contribution.
    product : array, D x D, Fortran order, or None
        Upper triangle of ``rows @ rows.T``, zeros below, if it was worked out for the norm.

    Notes
    -----
    The norm is that of the smaller of X Xᵀ and Xᵀ X.
    """
    rows = np.asarray(block, dtype=np.float64, order="F")
    volumes = rows.shape[1]
    factor = 1.0
    with np.errstate(all="ignore"):
        product, square = _squared_moment(rows)
        if _extreme(bound, square).size:
            column, exponents = _near_one(rows.reshape(-1, 1))
            rows = np.asfortranarray(column.reshape(rows.shape))
            factor = np.ldexp(1.0, 2 * exponents[0])
            product, square = _squared_moment(rows)
        size = math.sqrt(square) / volumes
        if not size > 0:
            return np.zeros_like(rows), 0.0, None
        scale = float(min(factor, min(bound, _LARGEST) / size) / volumes)
        return rows, scale, None if volumes < len(rows) else product


def add_clipped_mean(total: Array, product: Array, count: int, bound: float) -> None:
    """Add ``product / count`` to ``total``, in place, scaled to a norm of at most ``bound``.

    Parameters
    ----------
    total, product : array, D x K
        ``total`` is float64.
    """
    parts = [slice(start, start + _ROWS) for start in range(0, len(product), _ROWS)]
    # Widened piece by piece: as a whole it would pass through memory four times more.
    with np.errstate(all="ignore"):
        square = np.sum([np.square(product[part], dtype=np.float64).sum() for part in parts])
        if _extreme(bound, square).size:
            total += clip_vector(np.asarray(product, dtype=np.float64) / count, bound)
            return
        scale = np.float64(bound / max(math.sqrt(square) / count, bound) / count)
        for part in parts:
            total[part] += product[part] * scale


def finite_columns(matrix: Array) -> Array:
    """Set columns to zero that have values that are not finite, before clipping."""
    finite = _finite(matrix)
    return matrix if finite.all() else np.where(finite, matrix, 0.0)


def _squared_rows(rows: Array) -> Array:
    squares: Array = np.einsum("ij,ij->i", rows, rows)
    return squares


def _finite(columns: Array) -> Array:
    finite: Array = np.logical_and.reduce(np.isfinite(columns), axis=0)
    return finite


def _extreme(bound: float, *squares: Array | np.floating[Any]) -> Array:
    """Return indices of columns whose square or bound is too large or small to multiply."""
    each = [np.atleast_1d(square) for square in squares]
    if not _LEAST <= bound <= _MOST:
        return np.arange(len(each[0]))
    if all(s.min(initial=1.0) >= _LEAST and s.max(initial=1.0) <= _MOST for s in each):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(~np.all([(s >= _LEAST) & (s <= _MOST) for s in each], axis=0))


def _scaled(factors: Factors, scales: Array) -> Factors:
    shortest = min(range(len(factors)), key=lambda index: len(factors[index]))
    return tuple(f * scales if n == shortest else f for n, f in enumerate(factors))


def _clip_carefully(products: Sequence[Factors], bound: float) -> list[Factors]:
    """Clip as `clip_products`, for columns and a bound of any size.

    Every factor is represented as 2^e times one of norm near one. The first factor's multiple is
    computed only after clipping, when it is not much larger than the bound. A product with a factor
    of zero is zero, however large its others: 0 · 2^1024 would be NaN.
    """
    pairs = [[_near_one(factor) for factor in factors] for factors in products]
    norms = np.stack([math.prod(np.sqrt(squared_norms(s)) for s, _ in each) for each in pairs])
    powers = np.stack([sum(exponents for _, exponents in each) for each in pairs])
    largest = np.where(norms > 0, powers, np.iinfo(powers.dtype).min // 2).max(axis=0)
    shares = np.ldexp(norms, np.maximum(powers - largest, -2000))
    size = np.sqrt(np.square(shares).sum(axis=0))  # over 2^largest
    kept = size > 0
    for factors in products:
        for factor in factors:
            kept &= _finite(factor)
    fraction, exponent = math.frexp(min(bound, _LARGEST) if bound > 0 else 0.0)
    caps = np.ldexp(fraction / np.where(kept, size, 1.0), powers - largest + exponent)
    weights = np.where(kept & (norms > 0), np.minimum(np.ldexp(1.0, powers), caps), 0.0)
    return [
        (each[0][0] * weight, *(scaled for scaled, _ in each[1:]))
        for each, weight in zip(pairs, weights, strict=True)
    ]


def _near_one(columns: Array) -> tuple[Array, Array]:
    """Return columns over powers of two, with largest entries from 1/2 to 1, and the exponents.

    Columns that are not finite become zero.
    """
    kept = finite_columns(columns)
    _, exponents = np.frexp(np.abs(kept).max(axis=0, initial=0.0))
    scaled: Array = np.ldexp(kept, -exponents)
    return scaled, exponents


def _squared_moment(rows: Array) -> tuple[Array, Array]:
    """Return X Xᵀ or Xᵀ X, whichever is smaller, and its squared Frobenius norm."""
    half = dsyrk(1.0, rows, trans=rows.shape[1] < len(rows))  # the upper triangle, zeros below
    diagonal = np.diag(half)
    # No product of NumPy's: its BLAS is another than SciPy's, and their threads would fight.
    square: Array = 2.0 * np.einsum("ij,ij->", half.T, half.T) - np.square(diagonal).sum()
    return half, square
