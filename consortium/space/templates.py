"""Public maps beside a study file, that an analysis starts from."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Templates
from consortium.errors import DataError
from consortium.space.atlas import Regions, read_image, sample_maps
from consortium.space.grid import Grid
from consortium.space.sampling import share_inside, voxel_places

_LEAST_INSIDE = 0.9
"""Part of the study's voxels that must lie in the templates' image."""
_LEAST_SPREAD = 1e-4
"""Standard deviation of a map over its largest value; one that varies less is constant."""


def read_templates(
    path: Path,
    grid: Grid,
    regions: Regions | None = None,
    fine: Grid | None = None,
    *,
    at_home: bool = False,
) -> Templates:
    """Read templates at a study's features, and at the voxels of its maps.

    Raises DataError if the file can't be used, lies in another space, or a map is the same
    everywhere.

    Parameters
    ----------
    path : Path
        4-D NIfTI, a map for each network; another grid is resampled linearly.
    grid : Grid
        The study's voxels.
    regions : Regions, optional
        Of its atlas, over whose voxels the maps are averaged.
    fine : Grid, optional
        Voxels of full-resolution maps.
    at_home : bool
        Whether nothing of them leaves the hospital, as of `read_image`.
    """
    image, values = read_image(path, "file of templates", at_home=at_home)
    inside = share_inside(voxel_places(np.asarray(image.affine), grid), image.shape)
    if inside < _LEAST_INSIDE:
        raise DataError(
            f"The templates {path} hold {inside:.0%} of the study's voxels; they are of another "
            "space, so give maps in the study's own."
        )
    stack = values[..., None] if values.ndim == 3 else values
    coarse = sample_maps(stack, image, grid).T
    if regions is not None:
        coarse = np.asarray(regions.weights @ coarse, dtype=np.float32)
    check_varied(coarse, path)
    finer = sample_maps(stack, image, fine).T if fine is not None and regions is None else None
    return Templates(coarse, finer)


def check_varied(maps: NDArray[np.float32], path: Path) -> None:
    """Raise DataError if a map (D x R) is the same everywhere."""
    spread = maps.std(axis=0, dtype=np.float64)
    flat = np.flatnonzero(spread <= _LEAST_SPREAD * np.abs(maps).max(axis=0, initial=0.0))
    if len(flat):
        raise DataError(
            f"Map {flat[0] + 1} of the templates {path} is the same everywhere in the study's "
            "brain; remove it, or check that the file is in the study's space."
        )
