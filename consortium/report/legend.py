"""Files of a study that only its report uses: an atlas, and networks to compare maps with.

Both are public files next to the study file. Sites don't use them, and no release depends on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.base.atomic import path_in_folder
from consortium.errors import DataError
from consortium.opened_study import OpenedStudy
from consortium.space.atlas import (
    Anatomy,
    read_anatomy,
    read_image,
    read_map_names,
    sample_maps,
)
from consortium.space.grid import Grid

SHOWN = 2
"""Networks that are named for a map."""
LEAST = 0.2
"""A correlation below names no network."""


@dataclass(frozen=True, eq=False)
class NamedNetworks:
    """Public maps with names, with which the report compares maps."""

    path: Path
    """A 4-D NIfTI, or a 3-D one of a single map."""
    names: Sequence[str]

    def most_alike(self, grid: Grid, values: NDArray[np.floating]) -> list[tuple[str, float]]:
        """Return names and correlations of the networks most similar to a map, over the grid.

        The sign counts: the negative of a network is not similar to it. None if no correlation is
        as large as `LEAST`.
        """
        found = [correlation(row, values) for row in _sampled(self, grid)]
        order = sorted(range(len(found)), key=lambda k: -found[k])[:SHOWN]
        return [(self.names[k], found[k]) for k in order if found[k] >= LEAST]


@lru_cache(maxsize=2)
def _sampled(networks: NamedNetworks, grid: Grid) -> NDArray[np.float32]:
    """Return networks at the voxels of a grid, K x V; the same for every map."""
    image, maps = read_image(networks.path, "file of networks")
    return sample_maps(maps[..., None] if maps.ndim == 3 else maps, image, grid)


@dataclass(frozen=True, eq=False)
class Legend:
    """Names of places and networks in the maps. By default there are none."""

    anatomy: Anatomy | None = None
    networks: NamedNetworks | None = None


def read_legend(opened: OpenedStudy) -> Legend:
    """Read the files that ``report`` of a study names, in the study's folder.

    Raises DataError if a file is outside this folder, is missing or can't be used.
    """
    atlas = opened.study.report.atlas
    networks = opened.study.report.networks
    folder = opened.folder
    return Legend(
        read_anatomy(_beside(folder, atlas)) if atlas else None,
        _networks(_beside(folder, networks)) if networks else None,
    )


def correlation(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """Return Pearson's correlation of a map with a named network; 0 if either is constant."""
    first, second = (np.asarray(each, dtype=np.float64) for each in (one, other))
    first = first - first.mean()
    second = second - second.mean()
    size = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / size if size > 0 else 0.0


def _networks(path: Path) -> NamedNetworks:
    _, maps = read_image(path, "file of networks")
    return NamedNetworks(path, read_map_names(path, maps.shape[3] if maps.ndim == 4 else 1))


def _beside(folder: Path, name: str) -> Path:
    try:
        return path_in_folder(folder, name)
    except ValueError as error:
        raise DataError(
            f"The report's file {name} is not next to the study file. Give a relative path."
        ) from error
