"""What pictures that are no brains have in common."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

INK, SOFT, RED, BLUE = "#16202b", "#8a97a3", "#b3272d", "#1f5f99"


def largest_size(values: NDArray[Any]) -> float:
    """Where a scale of colours ends: the largest size, or 1 if all are zero."""
    return float(np.abs(values).max()) or 1.0


def plain_axes(axes: Any) -> None:
    """Draw axes on two sides only."""
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
