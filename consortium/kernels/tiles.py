"""Products that give each column the same result, independent of the other columns.

BLAS rounds the product of a column in an order that depends on the number of columns of the matrix
and on the position of the column. A hostile centre can choose a left matrix whose terms cancel,
which leaves only this rounding. One participant more or fewer would then change the product of
every other participant, and a clipped sum would move by more than its sensitivity.

Columns are therefore multiplied in tiles of one fixed width, as float64 numbers in one memory
layout, and the last tile is filled with zeros. The number of columns then has no influence. Full
tiles also use the same kernel of BLAS at every position, which no standard guarantees. Each process
verifies it for each shape on tiles of equal columns, whose products must be equal. If they are not,
each column is multiplied in a call of its own. In float32 the kernels for Haswell and Zen fail this
test, so float32 columns are converted to float64.
"""

from functools import lru_cache

import numpy as np

from consortium.base.array import Array
from consortium.privacy.bounds import Unit

TILE = 64
"""Columns of a tile. Another number changes the last bits of statistics."""
_TRIALS = 8
_EXPONENTS = (0, 1, 30, 70)
"""Ranges of the powers of two by which the terms of a trial differ."""


def product_of_columns(left: Array, columns: Array) -> Array:
    """Return ``left @ columns``, with no column depending on other columns or on its position.

    Parameters
    ----------
    left : array, shape (K, D)
    columns : array, shape (D, N)

    Returns
    -------
    array, shape (K, N), float64
        Entries that overflow are not finite.

    Examples
    --------
    >>> product_of_columns(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
    array([[13., 16.]])
    """
    wide = np.ascontiguousarray(left, dtype=np.float64)
    multiply = _of_tile if equal_in_every_place(*wide.shape) else _one_by_one
    count = columns.shape[1]
    product = np.empty((len(wide), count))
    tile = np.zeros((len(columns), TILE))
    with np.errstate(all="ignore"):
        for start in range(0, count, TILE):
            here = min(TILE, count - start)
            tile[:, :here] = columns[:, start : start + here]
            tile[:, here:] = 0.0
            product[:, start : start + here] = multiply(wide, tile)[:, :here]
    return product


def filled_up(columns: Array) -> Array:
    """Append columns of zeros up to a multiple of a tile's width, in C order.

    Reductions and element-wise functions may also round a narrow array in another order. On whole
    tiles they treat each column alike.
    """
    count = columns.shape[1]
    filled = np.zeros((len(columns), -(-count // TILE) * TILE), dtype=columns.dtype)
    filled[:, :count] = columns
    return filled


def reduced_block(basis: Array, block: Array, unit: Unit) -> Array:
    """Return ``basis.T @ block`` of one participant in the block's type, shape (R, T).

    If the unit of privacy is a volume, no volume depends on the others. If it is the participant,
    the product of the block is already one of its own.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = basis.T.astype(block.dtype)
        if unit == "subject":
            whole: Array = narrow @ block
            return whole
        return product_of_columns(narrow, block).astype(block.dtype)


@lru_cache(maxsize=256)
def equal_in_every_place(rows: int, features: int) -> bool:
    """Return whether BLAS gives equal columns of a tile equal products, in all trials."""
    generator = np.random.default_rng(0)
    for trial in range(_TRIALS):
        most = _EXPONENTS[trial % len(_EXPONENTS)]
        powers = np.ldexp(1.0, generator.integers(-most, most + 1, features))
        left = generator.standard_normal((rows, features)) * powers
        tile = np.repeat(generator.standard_normal((features, 1)), TILE, axis=1)
        product = _of_tile(left, tile)
        if (product != product[:, :1]).any():
            return False
    return True


def _of_tile(left: Array, tile: Array) -> Array:
    product: Array = left @ tile
    return product


def _one_by_one(left: Array, tile: Array) -> Array:
    """Multiply each column in a call of its own, always from the same place in memory."""
    turned = np.ascontiguousarray(left.T)
    room = np.empty((1, len(tile)))
    product = np.empty((len(left), tile.shape[1]))
    for place, column in enumerate(tile.T):
        room[0] = column
        product[:, place] = (room @ turned)[0]
    return product
