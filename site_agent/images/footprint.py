"""How much memory work on some persons takes at the most, from what headers tell.

Arrays are counted, with all copies that are there at one time; a test holds the counts against what
is allocated. What a process takes by itself is not in them.
"""

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.errors import ConfigurationError
from consortium.space.atlas import Target
from consortium.space.mesh import Mesh

_PREPARED = 20
"""Bytes for a voxel's value: the runs, all runs, and a float64 copy while they are standardized."""
_VOLUMES = 8
"""Whole volumes of 8 bytes while one is read, smoothed and resampled."""
_UNPACKED = 64
"""Bytes for a vertex of a hemisphere: both, and what is below the cortex, in float64 if scaled."""
_SUMMED = 20
"""Bytes for a feature's value: the block, and float64 copies while it is clipped and multiplied."""
_PARTS = 24
"""Bytes for a number of a sum: what is added up, what is added, and what is asked of its size."""
_SMALL = 1 << 20
_KEPT = 16
"""What is kept from round to round may take so large a part of the memory, or lies on disk."""


def to_prepare(target: Target, length: int) -> int:
    """Bytes to prepare a person of so many volumes."""
    grid, voxels = target.grid, target.grid.features
    blocks = _PREPARED * voxels * length
    if isinstance(grid, Mesh):
        return blocks + _UNPACKED * grid.kind.vertices * length + _SMALL
    box = math.prod(grid.shape)
    return blocks + 8 * _VOLUMES * box + 4 * target.features * length + _SMALL


def to_sum(features: int, lengths: Sequence[int], shape: tuple[int, ...]) -> int:
    """Bytes to sum over a chunk of persons, whose sum has a shape."""
    longest = max(lengths, default=0)
    return _SUMMED * features * longest + _PARTS * math.prod(shape) + _SMALL


def scratch_space(shape: tuple[int, int], memory: int | None, folder: Path) -> NDArray[np.float32]:
    """Room for what is kept from round to round: in memory, or on disk if that is short.

    Raises ConfigurationError if the disk is full.

    Parameters
    ----------
    shape : (int, int)
    memory : int or None
        Bytes that the site may take.
    folder : Path
        Where the file lies, which has no name and ends with the array.
    """
    size = 4 * math.prod(shape)
    if memory is None or _KEPT * size <= memory:
        return np.empty(shape, dtype=np.float32)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a mapped file can't tell of a full disk
            room: NDArray[Any] = np.memmap(file, np.float32, "r+", shape=shape)
            return np.asarray(room)
    except OSError as error:
        raise ConfigurationError(
            f"The cache folder {folder} has no {size / 1e6:.0f} MB left for what is kept between "
            "rounds; free space, name another with 'cache' in site.yaml, or give more 'memory'."
        ) from error
