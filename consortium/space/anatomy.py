"""Names of places: an atlas of labels with a table of their names, as BIDS has it (``_dseg``)."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.space.atlas import read_image

NEAR = 8.0
"""A place outside all regions is told by the nearest one within so many mm."""
MOST_NAMES = 1 << 16
LONGEST = 100


@dataclass(frozen=True, eq=False)
class Anatomy:
    """Named regions."""

    labels: NDArray[np.int64]
    """Whole numbers, shape (I, J, K). 0 outside."""
    affine: NDArray[np.float64]
    """Shape (4, 4)."""
    names: Mapping[int, str]

    def name_at(self, place: NDArray[np.floating]) -> str:
        """Name of the region that a place in mm lies in, or of one nearby; empty if there is none.

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
        """Voxels that lie in a region, and their centres in mm."""
        voxels = np.argwhere(self.labels)
        return voxels, np.asarray(apply_affine(self.affine, voxels), dtype=np.float64)


def read_anatomy(path: Path) -> Anatomy:
    """Read an atlas of labels and the table beside it that names them.

    Raises DataError if one of the two can't be used.

    Parameters
    ----------
    path : Path
        A 3-D NIfTI of whole numbers, 0 outside. The table has the same name, ending in ``.tsv``,
        and columns ``index`` and ``name``.
    """
    image, values = read_image(path, "anatomical atlas")
    if values.ndim != 3 or not np.array_equal(values, np.rint(values)):
        raise DataError(f"The anatomical atlas {path} is no 3-D image of labels; give one.")
    affine = np.asarray(image.affine, dtype=np.float64)
    return Anatomy(values.astype(np.int64), affine, read_names(table_of(path)))


def table_of(path: Path) -> Path:
    """Where the table of names of an image lies."""
    return path.with_name(f"{path.name.removesuffix('.gz').removesuffix('.nii')}.tsv")


def read_names(path: Path) -> dict[int, str]:
    """Read a table with columns ``index`` and ``name``; raises DataError if it can't be used."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            found = {int(row["index"]): _plain(row["name"]) for row in islice(rows, MOST_NAMES)}
        if not found:
            raise ValueError(path)
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"The names {path} can't be read; give a table with columns index and name, separated "
            "by tabs."
        ) from error
    return found


def _plain(name: str | None) -> str:
    """A name as one printable line."""
    if name is None:
        raise ValueError(name)
    return "".join(letter for letter in name.strip() if letter.isprintable())[:LONGEST]
