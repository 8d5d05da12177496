"""How much less noise a study would need, in words for whoever plans it."""

import math
from collections.abc import Callable
from dataclasses import replace

from consortium.algorithms.shape import Shape

_MOST_FACTOR = 1000.0
"""Less noise than this is not worth naming."""
_STEP = 1.1


def would_be_enough(shape: Shape, sees: Callable[[Shape], bool]) -> str:
    """Name the persons, or the epsilon, with which a study would see something.

    Parameters
    ----------
    shape : Shape
        As planned, with too much noise.
    sees : callable
        Whether a study of a shape is expected to see anything.
    """
    factor = 1.0
    while factor < _MOST_FACTOR:
        factor *= _STEP
        if sees(replace(shape, noise=shape.noise / factor)):
            break
    if factor >= _MOST_FACTOR:
        return "bring many more participants or a larger epsilon"
    return (
        f"about {math.ceil(sum(shape.units) * factor):,} participants would be enough, or an "
        f"epsilon about {factor:.1f} times as large"
    )
