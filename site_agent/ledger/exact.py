"""Sums of squares of floats without any rounding, so that what is added can be taken away again."""

import math

from consortium.errors import LedgerError

_SCALE = 2 * 1074  # bits: the square of every double is a whole number of 2**-_SCALE


def exact_square(mu: float) -> int:
    """Return μ² as a whole number of 2^-2148; raises LedgerError if it is no number."""
    if not math.isfinite(mu):
        raise LedgerError(
            f"The ledger holds μ = {mu}, which is no price; restore it from a backup."
        )
    numerator, denominator = float(mu).as_integer_ratio()
    return (numerator * numerator) << (_SCALE - 2 * (denominator.bit_length() - 1))


def exact_root(total: int) -> float:
    """Return the root of a sum of `exact_square`; the only two roundings are in here."""
    return math.sqrt(exact_float(total))


def exact_float(total: int) -> float:
    """Return a sum of `exact_square` as the nearest double."""
    try:
        return total / (1 << _SCALE)
    except OverflowError:
        return math.inf
