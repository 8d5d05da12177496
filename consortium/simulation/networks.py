"""Brain networks that a neuroimager knows by sight, as sums of Gaussian blobs.

Drawn by hand around coordinates in common use; they are a truth for simulations, not an atlas.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from consortium.errors import DataError


@dataclass(frozen=True)
class Blob:
    """A Gaussian in MNI space: centre in mm, standard deviation in mm, height."""

    x: float
    y: float
    z: float
    width: float = 9.0
    height: float = 1.0


NETWORKS: dict[str, tuple[Blob, ...]] = {
    "default-mode": (
        Blob(0, -54, 30, 11, 1.0),  # posterior cingulate, precuneus
        Blob(0, 52, 2, 11, 0.8),  # medial prefrontal
        Blob(-46, -68, 34, 9, 0.8),  # left angular gyrus
        Blob(48, -64, 34, 9, 0.8),  # right angular gyrus
    ),
    "sensorimotor": (
        Blob(-40, -24, 56, 10, 1.0),  # left hand
        Blob(40, -24, 56, 10, 1.0),  # right hand
        Blob(0, -8, 60, 9, 0.7),  # supplementary motor
    ),
    "visual-medial": (
        Blob(-9, -80, 4, 10, 1.0),  # left calcarine
        Blob(9, -78, 6, 10, 1.0),  # right calcarine
    ),
    "visual-lateral": (
        Blob(-42, -78, -4, 10, 1.0),  # left lateral occipital
        Blob(42, -76, -4, 10, 1.0),  # right lateral occipital
    ),
    "auditory": (
        Blob(-52, -18, 8, 10, 1.0),  # left superior temporal
        Blob(54, -14, 6, 10, 1.0),  # right superior temporal
    ),
    "salience": (
        Blob(0, 22, 36, 10, 1.0),  # dorsal anterior cingulate
        Blob(-36, 18, 0, 8, 0.9),  # left anterior insula
        Blob(38, 18, 0, 8, 0.9),  # right anterior insula
    ),
    "dorsal-attention": (
        Blob(-25, -4, 56, 8, 0.8),  # left frontal eye field
        Blob(27, -4, 56, 8, 0.8),  # right frontal eye field
        Blob(-28, -60, 52, 9, 1.0),  # left intraparietal sulcus
        Blob(30, -58, 52, 9, 1.0),  # right intraparietal sulcus
    ),
    "frontoparietal-left": (
        Blob(-44, 26, 32, 10, 1.0),  # left dorsolateral prefrontal
        Blob(-48, -50, 46, 9, 1.0),  # left inferior parietal
    ),
    "frontoparietal-right": (
        Blob(44, 30, 32, 10, 1.0),  # right dorsolateral prefrontal
        Blob(50, -48, 46, 9, 1.0),  # right inferior parietal
    ),
    "cerebellum": (
        Blob(-30, -64, -32, 11, 1.0),  # left crus
        Blob(30, -64, -32, 11, 1.0),  # right crus
    ),
    "basal-ganglia-thalamus": (
        Blob(-24, 4, 2, 8, 1.0),  # left putamen
        Blob(24, 4, 2, 8, 1.0),  # right putamen
        Blob(-10, -18, 8, 7, 0.7),  # left thalamus
        Blob(10, -18, 8, 7, 0.7),  # right thalamus
    ),
    "language": (
        Blob(-50, 20, 14, 8, 1.0),  # Broca's area
        Blob(-56, -44, 8, 9, 1.0),  # Wernicke's area
    ),
    "temporal-poles": (
        Blob(-40, 10, -32, 9, 1.0),  # left temporal pole
        Blob(42, 10, -32, 9, 1.0),  # right temporal pole
    ),
    "hippocampus": (
        Blob(-26, -22, -16, 8, 1.0),  # left hippocampus
        Blob(28, -20, -16, 8, 1.0),  # right hippocampus
    ),
}


def network_maps(
    affine: NDArray[np.float64],
    shape: tuple[int, int, int],
    mask: NDArray[np.bool_],
    *,
    count: int = len(NETWORKS),
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Draw the first networks of the table on a grid.

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

    Raises
    ------
    DataError
        If the mask has another shape, or the table has fewer networks.
    """
    if mask.shape != tuple(shape):
        msg = f"A mask of shape {mask.shape} does not fit a grid of shape {tuple(shape)}; "
        raise DataError(msg + "draw networks on the mask's own grid.")
    if not 1 <= count <= len(NETWORKS):
        msg = f"There are {len(NETWORKS)} known networks, not {count}; ask for one up to all."
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
