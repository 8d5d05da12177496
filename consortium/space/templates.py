"""Public maps next to a study file, in voxels or on a mesh, from which an analysis starts."""

from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Templates
from consortium.errors import DataError
from consortium.space.atlas import Regions, read_image, sample_maps
from consortium.space.grid import Grid
from consortium.space.mesh import (
    DAMAGED,
    Hemisphere,
    Mesh,
    check_vertices,
    cortex_rows,
    grayordinates,
    load_gifti,
)
from consortium.space.nifti import KEPT, is_kept, open_image
from consortium.space.sampling import share_inside, voxel_places
from consortium.views.meshes import side_file_names

_LEAST_INSIDE = 0.9
"""Minimum fraction of the study's voxels in the templates' image."""
_LEAST_SPREAD = 1e-4
"""Standard deviation of a map over its largest value; one that varies less is constant."""
DENSE = ".dscalar.nii"
"""End of a file's name. It is not compressed, so its size limits its content."""
_MOST_MAPS = 1000
_MOST_BYTES = 500_000_000


def read_templates(
    path: Path,
    grid: Grid,
    regions: Regions | None = None,
    fine: Grid | None = None,
    *,
    at_home: bool = False,
) -> Templates:
    """Read templates at a study's features, and at the voxels of its maps.

    Raises DataError if the file can't be used, is in another space, or a map is the same
    everywhere.

    Parameters
    ----------
    path : Path
        4-D NIfTI, a map for each network; another grid is resampled linearly.
    grid : Grid
        The study's voxels.
    regions : Regions, optional
        Regions of its atlas, over whose voxels the maps are averaged.
    fine : Grid, optional
        Voxels of full-resolution maps.
    at_home : bool
        Whether the maps stay in the hospital, as for `read_image`.
    """
    image, values = read_image(path, "file of templates", at_home=at_home)
    inside = share_inside(voxel_places(np.asarray(image.affine), grid), image.shape)
    if inside < _LEAST_INSIDE:
        raise DataError(
            f"The templates {path} must be in the study's space, and they contain only "
            f"{inside:.0%} of its voxels. Give maps in the study's space."
        )
    stack = values[..., None] if values.ndim == 3 else values
    coarse = sample_maps(stack, image, grid).T
    if regions is not None:
        coarse = np.asarray(regions.weights @ coarse, dtype=np.float32)
    check_varied(coarse, path)
    finer = sample_maps(stack, image, fine).T if fine is not None and regions is None else None
    return Templates(coarse, finer)


def check_varied(maps: NDArray[np.float32], path: Path) -> None:
    """Raise DataError if a public map (D x R) is the same everywhere."""
    spread = maps.std(axis=0, dtype=np.float64)
    flat = np.flatnonzero(spread <= _LEAST_SPREAD * np.abs(maps).max(axis=0, initial=0.0))
    if len(flat):
        raise DataError(
            f"Map {flat[0] + 1} of the templates {path} is the same everywhere in the study's "
            "brain. Remove it, or check that the file is in the study's space."
        )


def read_surface_templates(
    path: Path, mesh: Mesh, regions: Regions | None = None, *, at_home: bool = False
) -> Templates:
    """Read templates at the vertices of a study's mesh, or their means in the regions on it.

    Raises DataError if a file can't be used, is of another mesh or wall, must not leave the
    hospital where it was made, or a map is the same everywhere.

    Parameters
    ----------
    path : Path
        CIFTI (``.dscalar.nii``), or GIFTI of the left hemisphere with ``hemi-L`` in its name and
        the right one's file next to it; a map for each network.
    at_home : bool
        Whether the maps stay in the hospital, as for `read_image`.
    """
    if path.suffix == ".gii":
        names = side_file_names(path.name)
        if len(names) != len(mesh.sides):
            raise DataError(f"The templates {path} are of one hemisphere. Name that of hemi-L.")
        parts = zip(names, mesh.sides, strict=True)
        values = np.vstack([_of_gifti(path.with_name(n), s, mesh, at_home) for n, s in parts])
    else:
        values = _of_cifti(path, mesh, at_home)
    if not np.isfinite(values).all():
        raise DataError(
            f"The templates {path} must be finite everywhere on the study's cortex. Repair them."
        )
    if regions is not None:
        values = np.asarray(regions.weights @ values, dtype=np.float32)
    check_varied(values, path)
    return Templates(values)


def read_dense(
    path: Path, mesh: str = "a mesh", *, at_home: bool = False
) -> tuple[nib.Cifti2Image, NDArray[np.float32]]:
    """Read dense maps of CIFTI, and their values at all grayordinates: K x G.

    Raises DataError if it is another file, or must not leave the hospital where it was made.

    Parameters
    ----------
    mesh : str
        Expected mesh, for messages.
    at_home : bool
        As of `read_surface_templates`.
    """
    try:
        if not path.name.endswith(DENSE) or path.stat().st_size > _MOST_BYTES:
            raise ValueError("no dense maps, or too large")
        image = open_image(path)
        if not isinstance(image, nib.Cifti2Image):
            raise ValueError("no CIFTI")
        maps, places = image.shape
        if not 0 < maps <= _MOST_MAPS or places != grayordinates(image):
            raise ValueError("no dense maps")
        values: NDArray[Any] = np.asarray(image.dataobj, dtype=np.float32)
    except DAMAGED as error:
        raise DataError(
            f"{path} is not a complete file of maps on {mesh}. Give .dscalar.nii, or hemi-L of a "
            "pair of .gii."
        ) from error
    _check_home(path, is_kept(image), at_home)
    return image, values


def _of_cifti(path: Path, mesh: Mesh, at_home: bool) -> NDArray[np.float32]:
    image, values = read_dense(path, mesh.name, at_home=at_home)
    return np.ascontiguousarray(values[:, cortex_rows(path, image, mesh)].T)


def _of_gifti(path: Path, side: Hemisphere, mesh: Mesh, at_home: bool) -> NDArray[np.float32]:
    image = load_gifti(path, side.side)
    _check_home(path, KEPT.decode() in image.meta.values(), at_home)
    maps = [np.asarray(each.data) for each in image.darrays]
    if not 0 < len(maps) <= _MOST_MAPS or any(
        m.ndim != 1 or m.dtype.kind not in "iuf" for m in maps
    ):
        raise DataError(f"The templates {path} have no map of numbers. Give one for each network.")
    for each in maps:
        check_vertices(path, side, len(each), mesh)
    return np.stack([each[side.cortex] for each in maps], axis=1).astype(np.float32)


def _check_home(path: Path, kept: bool, at_home: bool) -> None:
    if kept and not at_home:
        raise DataError(
            f"The maps {path} are made of a hospital's own participants without noise and must not "
            "leave it. Take maps that a study released."
        )
