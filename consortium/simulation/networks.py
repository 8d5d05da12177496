"""Well-known brain networks as sums of Gaussian blobs.

They are placed by hand around common coordinates. They are true maps for simulations, not an atlas.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import yaml
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from consortium.errors import DataError


@dataclass(frozen=True)
class Blob:
    """A Gaussian of a simulated network: centre in MNI mm, standard deviation in mm, height."""

    x: float
    y: float
    z: float
    width: float = 9.0
    height: float = 1.0


NETWORKS: dict[str, tuple[Blob, ...]] = {
    name: tuple(Blob(*blob) for blob in blobs)
    for name, blobs in yaml.safe_load(
        (files("consortium.simulation") / "networks.yaml").read_bytes()
    ).items()
}


def network_maps(
    affine: NDArray[np.float64],
    shape: tuple[int, int, int],
    mask: NDArray[np.bool_],
    *,
    count: int = len(NETWORKS),
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Draw the first networks of the table on a grid.

    Raises DataError if the mask has another shape, or the table has fewer networks.

    Parameters
    ----------
    affine : array, shape (4, 4)
        Voxel indices to MNI millimetres.
    shape : tuple of int
        Voxels along each axis.
    mask : array of bool, shape ``shape``
        The D voxels to draw on.
    count : int
        R, networks.

    Returns
    -------
    names : tuple of str
    maps : array, shape (D, R)
        Unit-free, largest value about 1; rows in the order of ``image[mask]``.
    """
    if mask.shape != tuple(shape):
        msg = f"A mask of shape {mask.shape} does not fit a grid of shape {tuple(shape)}. "
        raise DataError(msg + "Draw networks on the mask's own grid.")
    if not 1 <= count <= len(NETWORKS):
        msg = f"There are {len(NETWORKS)} known networks, not {count}. Ask for one up to all."
        raise DataError(msg)
    places = np.asarray(apply_affine(affine, np.argwhere(mask)), dtype=np.float64)
    names = tuple(NETWORKS)[:count]
    maps = [sum_of_blobs(places, NETWORKS[name]) for name in names]
    return names, np.stack(maps, axis=1).astype(np.float32)


def sum_of_blobs(places: NDArray[np.float64], blobs: tuple[Blob, ...]) -> NDArray[Any]:
    """Add Gaussians up at places in mm, shapes (D, 3) -> (D,)."""
    total = np.zeros(len(places))
    for blob in blobs:
        squared = np.sum((places - (blob.x, blob.y, blob.z)) ** 2, axis=1)
        total += blob.height * np.exp(-0.5 * squared / blob.width**2)
    return total
