"""Component maps made comparable: order, sign and scale that no run leaves to chance.

A decomposition gives its components in any order, with either sign, at any
scale. Here the order is by explained variance, the sign turns the heavier tail
up, and the scale is a robust z, so that maps of two runs can be laid side by side.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh

Floats = NDArray[np.float64]

MAD_TO_DEVIATION = 1.4826
"""Standard deviation of Gaussian noise over its median absolute deviation."""
LEAST_NOISE = 1e-6
"""A noise floor below this part of the largest deviation is none: the map is sparse."""
EVEN = 1e-9
"""A standardised third moment below this says nothing about which tail is heavier."""


@dataclass(frozen=True, eq=False)
class Components:
    """Tidied maps of R components over D voxels, the most explained variance first."""

    maps: Floats
    """Shape (D, R). Robust z-scores."""
    shares: Floats
    """Shape (R,). Part of the components' common variance; adds up to one."""
    peaks: Floats
    """Shape (R, 3). Where a map is highest, in mm of the study's space."""
    heights: Floats
    """Shape (R,). z at the peaks."""
    noise: Floats
    """Shape (R,). Noise floor that a map was divided by, in the unit of the maps that came in."""
    order: tuple[int, ...]
    """Column of the incoming array that each component was, from 0."""
    signs: tuple[int, ...]
    """1 or -1, what each column was multiplied by."""

    def __len__(self) -> int:
        return len(self.order)


def tidy_components(
    maps: NDArray[np.floating], grid: Grid | Mesh, variances: NDArray[np.floating] | None = None
) -> Components:
    """Order, sign and scale component maps.

    Raises DataError if the shapes don't fit, a value is not finite or a variance is negative.

    Parameters
    ----------
    maps : array, shape (D, R)
        Raw maps, such as the mixing matrix of a temporal ICA.
    grid : Grid or Mesh
        The D voxels, or vertices.
    variances : array, shape (R,), optional
        Variance that each component explains; by default the sum of squares of
        its column, which is right for sources of unit variance.

    Returns
    -------
    Components
        The same whatever the order and the signs of the incoming columns.
    """
    _check(maps, grid, variances)
    # One contiguous row per component: its sums then don't depend on its neighbours, to the bit.
    rows = np.ascontiguousarray(maps.T, dtype=np.float64)
    signs = [heavier_tail(row) for row in rows]
    rows = rows * np.array(signs, dtype=np.float64)[:, None] + 0.0  # + 0.0 turns -0 into 0
    explained = (rows**2).sum(axis=1) if variances is None else np.asarray(variances, np.float64)
    # Equal variances: the content decides, so that the incoming order never does.
    order = sorted(range(len(rows)), key=lambda r: (-explained[r], rows[r].tobytes()))
    scaled = [robust_z(rows[r]) for r in order]
    scores = np.array([z for z, _ in scaled])
    tops = scores.argmax(axis=1)
    total = math.fsum(explained)  # exact, so that the order of its terms is no matter
    return Components(
        maps=scores.T,
        shares=explained[order] / (total if total > 0 else 1.0),
        peaks=grid.coordinates[tops],
        heights=scores[np.arange(len(scores)), tops],
        noise=np.array([noise for _, noise in scaled]),
        order=tuple(order),
        signs=tuple(signs[r] for r in order),
    )


def heavier_tail(values: Floats) -> int:
    """Sign that turns the heavier tail up: of the skewness, else of the largest value.

    Parameters
    ----------
    values : array, shape (D,)

    Returns
    -------
    int
        1 or -1; the sign for ``-values`` is always the opposite, but for all zeros.
    """
    centred = values - values.mean()
    deviation = float(np.sqrt((centred**2).mean()))
    skewness = float((centred**3).mean()) / deviation**3 if deviation**3 > 0 else 0.0
    if abs(skewness) < EVEN:
        skewness = float(values[np.abs(values).argmax()])
    return -1 if skewness < 0 else 1


def robust_z(values: Floats) -> tuple[Floats, float]:
    """Values in units of their noise floor, around their median.

    The floor is 1.4826 times the median absolute deviation: most voxels of a
    network's map lie outside the network, so this is the spread of its noise. A
    map with more than half of its voxels at one value has none; the standard
    deviation is taken instead, and a constant map scores zero everywhere.

    Parameters
    ----------
    values : array, shape (D,)

    Returns
    -------
    scores : array, shape (D,)
    noise : float
        What was divided by, more than zero.
    """
    centred = values - np.median(values)
    sizes = np.abs(centred)
    noise = MAD_TO_DEVIATION * float(np.median(sizes))
    if noise <= LEAST_NOISE * float(sizes.max()):
        noise = float(centred.std())
    if noise == 0:
        return np.zeros_like(values), 1.0
    return centred / noise, noise


def _check(
    maps: NDArray[np.floating], grid: Grid | Mesh, variances: NDArray[np.floating] | None
) -> None:
    if maps.ndim != 2 or maps.shape[0] != grid.features or maps.shape[1] < 1:
        raise DataError(
            f"Maps of shape {maps.shape} don't fit a grid of {grid.features} voxels; give one "
            "row for each voxel and one column for each component."
        )
    if not np.isfinite(maps).all():
        raise DataError("A component map holds a value that is not finite; run the study again.")
    if variances is None:
        return
    if variances.shape != maps.shape[1:]:
        raise DataError(
            f"{variances.shape} variances don't fit {maps.shape[1]} maps; give one for each map."
        )
    if not (np.isfinite(variances).all() and (variances >= 0).all()):
        raise DataError("An explained variance is negative or not finite; give variances >= 0.")
