"""The study's two spaces: the features that are analysed, and the voxels that maps are drawn on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.files import beside
from consortium.report.atlas import Regions, read_regions
from consortium.report.grid import TEMPLATE, Grid, study_grid, template_grid
from consortium.study import DataSection


@dataclass(frozen=True, eq=False)
class Space:
    """What a study's numbers stand for.

    Parameters
    ----------
    grid : Grid
        Voxels that images are sampled on.
    regions : Regions, optional
        An atlas over these voxels; its regions are then the features, and the voxels otherwise.
    fine : Grid, optional
        Voxels of full-resolution maps; by default those of ``grid``.
    """

    grid: Grid
    regions: Regions | None = None
    fine: Grid | None = None

    @property
    def features(self) -> int:
        """D, what is analysed."""
        return self.regions.features if self.regions else self.grid.features

    @property
    def maps(self) -> Grid:
        """Voxels of full-resolution maps."""
        return self.fine or self.grid

    @property
    def voxels(self) -> int:
        """V, rows of a full-resolution map."""
        return self.maps.features

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it; without atlas and finer maps that of the grid."""
        parts = [self.grid.digest]
        if self.regions:
            parts.append(f"regions {self.regions.digest}")
        if self.fine:
            parts.append(f"fine {self.fine.digest}")
        return parts[0] if len(parts) == 1 else hashlib.sha256("|".join(parts).encode()).hexdigest()

    def paint(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the features (D x K) as values of the grid's voxels."""
        return self.regions.paint(values) if self.regions else values


def study_space(data: DataSection, folder: Path) -> Space:
    """Space that a study's data section asks for.

    Parameters
    ----------
    data : DataSection
        Its ``mask``, ``resolution``, ``atlas`` and ``maps_resolution``.
    folder : Path
        Folder of the study file, which mask and atlas lie beside.

    Raises
    ------
    DataError
        If mask or atlas are outside ``folder``, are missing or can't be used.
    """
    grid = study_grid(data, folder)
    regions = read_regions(_beside(folder, data.atlas), grid) if data.atlas else None
    finer = data.maps_resolution
    return Space(grid, regions, _finer(data, grid, finer) if finer else None)


def _beside(folder: Path, name: str) -> Path:
    try:
        return beside(folder, name)
    except ValueError as error:
        raise DataError(
            f"The study's atlas {name} is not beside the study file; give a relative path."
        ) from error


def _finer(data: DataSection, grid: Grid, resolution: float) -> Grid:
    """The same brain on voxels of another size."""
    if data.mask == TEMPLATE:
        return template_grid(resolution)
    from nilearn.image import resample_img  # costs seconds, which few should pay

    image = resample_img(
        grid.image(np.ones(grid.features)),
        np.eye(3) * resolution,
        interpolation="nearest",
        force_resample=True,
        copy_header=True,
    )
    return Grid(np.asarray(image.dataobj) > 0, np.asarray(image.affine, dtype=np.float64))
