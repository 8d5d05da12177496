"""Regions of an atlas as features: tables of their names, and the map from voxels to regions.

On a mesh, regions are parcels of vertices from CIFTI's labels, and series have them by name.
Source: CIFTI-2 (``.dlabel.nii``, ``.ptseries.nii``). Vertices of key 0 are in no parcel. The names
of an atlas's regions are in a table next to it, as in BIDS (``_dseg``).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray
from scipy import sparse

from consortium.base.delimited import open_table
from consortium.errors import DataError, TableError
from consortium.space.grid import Grid, is_invertible
from consortium.space.mesh import (
    DAMAGED,
    SIDE_NAMES,
    STRUCTURES,
    Hemisphere,
    Mesh,
    check_vertices,
    grayordinates,
)
from consortium.space.nifti import UNREADABLE, check_stated, is_kept, load_nifti, open_image
from consortium.space.sampling import sample, voxel_places

NEAR = 8.0
"""Maximum distance in mm at which a place outside all regions has the nearest region's name."""
MOST_NAMES = 1 << 16
_MOST_BYTES = 10_000_000
_LISTED = 12
LONGEST = 100


@dataclass(frozen=True, eq=False)
class Regions:
    """Weights of V voxels in D regions."""

    weights: Any
    """Not negative; every row adds up to one."""
    names: tuple[str, ...] = ()
    """Names of the regions, if files are matched by name."""

    @property
    def features(self) -> int:
        """D, number of regions."""
        return int(self.weights.shape[0])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights, in float32, and of names if there are any."""
        content = hashlib.sha256(repr(self.weights.shape).encode())
        for part in (self.weights.indptr, self.weights.indices):
            content.update(part.astype("<i8").tobytes())
        content.update(self.weights.data.astype("<f4").tobytes())
        content.update("\n".join(self.names).encode())
        return content.hexdigest()

    def average(self, series: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the mean time series of the regions: T x V to T x D."""
        return np.asarray((self.weights.astype(np.float32) @ series.T).T)

    def paint(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Give every voxel the value of its region: D x K to V x K.

        A voxel in several regions gets their mean by weight; one in none is zero.
        """
        total = np.asarray(self.weights.sum(axis=0)).ravel()
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        return np.asarray((self.weights.T @ values) * inverse[:, None])


def read_maps(path: Path, grid: Grid) -> NDArray[np.float32]:
    """Read maps of a 4-D (or 3-D) NIfTI at the voxels of a grid, resampled linearly.

    Raises DataError if the file can't be used.

    Returns
    -------
    array of float32, shape (V, K)
    """
    image, values = read_image(path, "file of maps")
    return sample_maps(values[..., None] if values.ndim == 3 else values, image, grid).T


def read_regions(path: Path, grid: Grid) -> Regions:
    """Read an atlas: a 3-D image of whole numbers (labels), or 4-D with a map for each region.

    An atlas on another grid is resampled: labels to the nearest voxel, maps linearly. Raises
    DataError if the file can't be used, or a region has no voxel in the study's mask.

    Parameters
    ----------
    grid : Grid
        The study's voxels.

    Returns
    -------
    Regions
        In the order of the labels (0 is outside), or of the maps; negative weights count as zero.
    """
    image, values = read_image(path, "atlas")
    if values.ndim == 3:
        rows = _labels(values, image, grid, path)
    else:
        rows = sparse.csr_array(
            np.maximum(sample_maps(values, image, grid).astype(np.float64), 0.0)
        )
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if not len(sums) or not (sums > 0).all():
        number = int(np.argmin(sums)) + 1 if len(sums) else 0
        msg = f"Region {number} of the atlas {path} has no voxel in the study's mask. Remove it"
        raise DataError(f"{msg}, or refine the grid.")
    return Regions(sparse.csr_array(sparse.diags_array(1.0 / sums) @ rows))


def read_image(
    path: Path, what: str, *, at_home: bool = False
) -> tuple[nib.Nifti1Image, NDArray[np.float32]]:
    """Read a 3-D or 4-D atlas of finite numbers, and its values.

    Raises DataError if it is another file, or must not leave the hospital where it was made.

    Parameters
    ----------
    what : str
        Its name in messages.
    at_home : bool
        Whether the image stays in the hospital. It may then be one that must not leave it.
    """
    try:
        image = load_nifti(path)
        values = np.asarray(image.dataobj, dtype=np.float32)
    except UNREADABLE as error:
        raise DataError(f"The {what} {path} can't be read. Give a whole NIfTI file.") from error
    check_stated(path, image, what)
    if is_kept(image) and not at_home:
        raise DataError(
            f"The {what} {path} is made of a hospital's own participants without noise and must "
            "not leave it. Take maps that a study released."
        )
    if values.ndim not in (3, 4) or not np.isfinite(values).all():
        raise DataError(f"The {what} {path} is no 3-D or 4-D image of finite numbers. Correct it.")
    if not is_invertible(image.affine):
        raise DataError(f"The {what} {path} has a singular affine. Repair its sform and qform.")
    return image, values


def _labels(values: NDArray[np.float32], image: nib.Nifti1Image, grid: Grid, path: Path) -> Any:
    """Return one row of ones for each label of the whole atlas, in the labels' order."""
    labels = np.unique(values)
    if not np.array_equal(labels, np.rint(labels)):
        raise DataError(f"The atlas {path} has fractions. Give labels, or a map for each region.")
    labels = labels[labels != 0]
    found = sample(values, voxel_places(image.affine, grid), order=0)
    voxels = np.flatnonzero(found)
    rows = np.searchsorted(labels, found[voxels])
    ones = np.ones(len(voxels))
    return sparse.csr_array((ones, (rows, voxels)), shape=(len(labels), grid.features))


def sample_maps(
    values: NDArray[np.float32], image: nib.Nifti1Image, grid: Grid
) -> NDArray[np.float32]:
    """Return values of I x J x K x R maps at the voxels of a grid, linearly: R x V."""
    places = voxel_places(image.affine, grid)
    sampled = [sample(values[..., k], places, order=1) for k in range(values.shape[3])]
    return np.array(sampled, dtype=np.float32)


def read_parcellation(path: Path, mesh: Mesh) -> Regions:
    """Read the parcels of a mesh's cortex; vertices of its medial wall count for none.

    Raises DataError if the file can't be used, is of another mesh, or names two parcels alike.

    Parameters
    ----------
    path : Path
        CIFTI with one map of labels (``.dlabel.nii``).

    Returns
    -------
    Regions
        Means over the mesh's D vertices, in the order of the labels' keys, with their names.
    """
    try:
        image = open_image(path)
        labels = image.header.get_axis(0)
        if not isinstance(labels, nib.cifti2.LabelAxis) or image.shape != (1, grayordinates(image)):
            raise ValueError("no labels of grayordinates")
        keys = np.asarray(image.dataobj, dtype=np.float64)[0]
        if not np.array_equal(keys, np.rint(keys)):
            raise ValueError("no keys")
        found = np.concatenate([_keys_of(path, image, keys, side, mesh) for side in mesh.sides])
        names = {int(key): str(name) for key, (name, _) in labels.label[0].items()}
    except DAMAGED as error:
        raise DataError(f"The atlas {path} is not a complete .dlabel.nii with one map.") from error
    keys_present = np.unique(found[found != 0])
    region_names = tuple(names.get(int(key), "") for key in keys_present)
    if not region_names or "" in region_names or len({*region_names}) < len(region_names):
        raise DataError(
            f"The atlas {path} has not a name of its own for each parcel on the cortex. Give one "
            "with a name for each."
        )
    vertices = np.flatnonzero(found)
    rows = np.searchsorted(keys_present, found[vertices])
    weights = 1.0 / np.bincount(rows)[rows]
    shape = len(keys_present), mesh.features
    return Regions(sparse.csr_array((weights, (rows, vertices)), shape=shape), region_names)


def _keys_of(
    path: Path, image: nib.Cifti2Image, keys: NDArray[Any], side: Hemisphere, mesh: Mesh
) -> NDArray[Any]:
    """Return the keys at the vertices of one cortex; 0 where the file has none."""
    whole = np.zeros(len(side.cortex))
    for model in image.header.matrix.get_index_map(1).brain_models:
        if model.brain_structure == STRUCTURES[side.side]:
            check_vertices(path, side, int(model.surface_number_of_vertices), mesh)
            start = int(model.index_offset)
            vertices = np.fromiter(model.vertex_indices, np.intp)
            whole[vertices] = keys[start : start + len(vertices)]
    if not whole.any():
        raise DataError(
            f"The atlas {path} has no parcel in the {SIDE_NAMES[side.side]} hemisphere. Give one "
            "of both."
        )
    return whole[side.cortex]


def parcels_of(image: nib.Cifti2Image) -> int:
    """Return the number of parcels that an atlas of the cortex states; 0 without parcels."""
    places = image.header.matrix.get_index_map(1)
    if places.indices_map_to_data_type != "CIFTI_INDEX_TYPE_PARCELS":
        return 0
    return len(list(places.parcels))


def parcel_places(path: Path, image: nib.Cifti2Image, regions: Regions) -> NDArray[np.intp]:
    """Return which columns of a file of parcels an atlas's regions are, by name.

    Raises DataError if one is missing or appears twice.
    """
    names = [str(parcel.name) for parcel in image.header.matrix.get_index_map(1).parcels]
    lacking = [name for name in regions.names if names.count(name) != 1]
    if lacking:
        more = f" (and {len(lacking) - 1} others)" if lacking[1:] else ""
        raise DataError(
            f"{path} has not one parcel '{lacking[0]}'{more}, as the study's atlas has. Give the "
            "series of that atlas."
        )
    return np.array([names.index(name) for name in regions.names])


@dataclass(frozen=True, eq=False)
class Target:
    """Voxels that an image is sampled on, and regions that these are averaged over."""

    grid: Grid | Mesh
    """Grid of voxels, or a mesh, whose vertices' values are used unchanged."""
    regions: Regions | None = None
    """Regions of an atlas over the voxels of the grid (default: the voxels)."""

    @property
    def features(self) -> int:
        """D, number of values of a volume: regions, or voxels or vertices without an atlas."""
        return self.regions.features if self.regions else self.grid.features

    @property
    def digests(self) -> list[str]:
        """SHA-256 of each part."""
        return [self.grid.digest, *([self.regions.digest] if self.regions else [])]


@dataclass(frozen=True, eq=False)
class Anatomy:
    """Named regions of an atlas."""

    labels: NDArray[np.int64]
    """Whole numbers, shape (I, J, K). 0 outside."""
    affine: NDArray[np.float64]
    """Shape (4, 4)."""
    names: Mapping[int, str]

    def name_at(self, place: NDArray[np.floating]) -> str:
        """Return the name of the region at a place in mm, or of one nearby; empty if none is near.

        Parameters
        ----------
        place : array, shape (3,)
        """
        label, apart = self._label_at(place)
        name = self.names.get(label, "")
        return f"{apart:.0f} mm from {name}" if name and apart else name

    def _label_at(self, place: NDArray[np.floating]) -> tuple[int, float]:
        """Label of a place and how far away it is in mm; 0 if it is further than `NEAR`."""
        voxel = np.rint(apply_affine(np.linalg.inv(self.affine), place)).astype(int)
        if ((voxel >= 0) & (voxel < self.labels.shape)).all() and self.labels[tuple(voxel)]:
            return int(self.labels[tuple(voxel)]), 0.0
        voxels, centres = self._regions
        if not len(voxels):
            return 0, 0.0
        squares = ((centres - place) ** 2).sum(axis=1)
        nearest = int(squares.argmin())
        apart = float(np.sqrt(squares[nearest]))
        return (int(self.labels[tuple(voxels[nearest])]) if apart <= NEAR else 0), apart

    @cached_property
    def _regions(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Voxels in a region, and their centres in mm."""
        voxels = np.argwhere(self.labels)
        return voxels, np.asarray(apply_affine(self.affine, voxels), dtype=np.float64)


def read_anatomy(path: Path) -> Anatomy:
    """Read an atlas of labels and the table next to it that names them.

    Raises DataError if one of the two can't be used.

    Parameters
    ----------
    path : Path
        A 3-D NIfTI of whole numbers, 0 outside. The table has the same name, ending in ``.tsv``,
        and columns ``index`` and ``name``.
    """
    image, values = read_image(path, "anatomical atlas")
    if values.ndim != 3 or not np.array_equal(values, np.rint(values)):
        raise DataError(f"The anatomical atlas {path} is no 3-D image of labels. Give one.")
    affine = np.asarray(image.affine, dtype=np.float64)
    return Anatomy(values.astype(np.int64), affine, read_names(table_of(path)))


def table_of(path: Path) -> Path:
    """Return the path of the table of names of an atlas."""
    return path.with_name(f"{path.name.removesuffix('.gz').removesuffix('.nii')}.tsv")


def read_names(path: Path) -> dict[int, str]:
    """Read the names of an atlas's regions, by their labels in the image.

    Raises TableError if the table can't be read, lacks a column ``index`` or ``name``, or has one
    label twice.
    """
    found: dict[int, str] = {}
    with open_table(path, _MOST_BYTES) as table:
        for wanted in ("index", "name"):
            if table.header.count(wanted) != 1:
                raise TableError(
                    path,
                    "column",
                    "the columns 'index' and 'name' are required once each, and the columns are "
                    f"{', '.join(map(repr, table.header[:_LISTED]))}. Rename them.",
                )
        index = table.header.index("index")
        name = table.header.index("name")
        for row in islice(table.rows(), MOST_NAMES):
            label = _label(path, row.line, row.cells[index])
            if label in found:
                raise TableError(
                    path,
                    "duplicate",
                    f"every label must have one row, and label {label} has two. Delete one.",
                    row.line,
                )
            found[label] = _plain(row.cells[name])
    if not found:
        raise TableError(path, "empty", "a row for each region is required. Write the rows.")
    return found


def read_map_names(path: Path, many: int) -> tuple[str, ...]:
    """Read the names of an image's maps from the table next to it, in the maps' order.

    Raises TableError as `read_names`. Raises DataError if the numbers in its column ``index`` are
    not those of the maps, from 0 or from 1.

    Parameters
    ----------
    path : Path
        The image.
    many : int
        Number of its maps.
    """
    names = read_names(table_of(path))
    if sorted(names) not in (list(range(many)), list(range(1, many + 1))):
        raise DataError(
            f"{table_of(path)} must have one line for each of the {many} maps of {path.name}, "
            "numbered in the maps' order. Correct the table."
        )
    return tuple(names[k] for k in sorted(names))


def _label(path: Path, line: int, cell: str) -> int:
    try:
        number = float(cell)
        if number.is_integer():
            return int(number)
    except ValueError:
        pass
    raise TableError(path, "label", "'index' must be an integer. Correct the cell.", line)


def _plain(name: str) -> str:
    """Return a name as one printable line."""
    return "".join(letter for letter in name.strip() if letter.isprintable())[:LONGEST]
