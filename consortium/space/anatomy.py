"""Names of places: an atlas of labels with a table of their names, as BIDS has it (``_dseg``)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Named regions.

    Parameters
    ----------
    coordinates : array, shape (V, 3)
        In mm, of the voxels that lie in a region.
    labels : array of int, shape (V,)
    names : mapping of int to str
    """

    coordinates: NDArray[np.float64]
    labels: NDArray[np.int64]
    names: Mapping[int, str]

    def name_at(self, place: NDArray[np.floating]) -> str:
        """Name of the region that a place in mm lies in, or of one nearby; empty if there is none.

        Parameters
        ----------
        place : array, shape (3,)
        """
        if not len(self.labels):
            return ""
        squares = ((self.coordinates - place) ** 2).sum(axis=1)
        nearest = int(squares.argmin())
        apart = float(np.sqrt(squares[nearest]))
        name = self.names.get(int(self.labels[nearest]), "")
        if not name or apart > NEAR:
            return ""
        return name if apart <= self._inside else f"{apart:.0f} mm from {name}"

    @property
    def _inside(self) -> float:
        """Distance from a voxel's centre that may still be in it: half its diagonal, roughly."""
        steps = np.diff(np.unique(np.round(self.coordinates[:, 2], 3)))
        return 0.87 * float(steps.min(initial=NEAR))


def read_anatomy(path: Path) -> Anatomy:
    """Read an atlas of labels and the table beside it that names them.

    Parameters
    ----------
    path : Path
        A 3-D NIfTI of whole numbers, 0 outside. The table has the same name, ending in ``.tsv``,
        and columns ``index`` and ``name``.

    Raises
    ------
    DataError
        If one of the two can't be used.
    """
    image, values = read_image(path, "anatomical atlas")
    if values.ndim != 3 or not np.array_equal(values, np.rint(values)):
        raise DataError(f"The anatomical atlas {path} is no 3-D image of labels; give one.")
    voxels = np.argwhere(values)
    coordinates: Any = apply_affine(image.affine, voxels)
    labels = values[tuple(voxels.T)].astype(np.int64)
    return Anatomy(np.asarray(coordinates), labels, read_names(table_of(path)))


def table_of(path: Path) -> Path:
    """Where the table of names of an image lies."""
    return path.with_name(f"{path.name.removesuffix('.gz').removesuffix('.nii')}.tsv")


def read_names(path: Path) -> dict[int, str]:
    """Read a table with columns ``index`` and ``name``.

    Raises
    ------
    DataError
        If it can't be used.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            found = {int(row["index"]): _plain(row["name"]) for row, _ in _limited(rows)}
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"The names {path} can't be read; give a table with columns index and name, separated "
            "by tabs."
        ) from error
    return found


def _limited(rows: Any) -> Any:
    return zip(rows, range(MOST_NAMES), strict=False)


def _plain(name: str) -> str:
    """A name as one printable line."""
    return "".join(letter for letter in name.strip() if letter.isprintable())[:LONGEST]
