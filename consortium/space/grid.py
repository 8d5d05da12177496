"""The study's grid: which voxels, in which order, make up a column of data.

The centre and the sites build it from the study file only, so it is public. A vector over the grid
has the voxels of the mask in C order, the order of ``image[mask]``.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from consortium.base.atomic import path_in_folder
from consortium.base.kept_arrays import kept_arrays
from consortium.errors import DataError
from consortium.space.nifti import UNREADABLE, check_stated, load_nifti
from consortium.study.data_section import DataSection

TEMPLATE = "template"
TEMPLATE_FILE = "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
TEMPLATE_THRESHOLD = 0.2
"""Part of the template's largest intensity above which a voxel is brain (nilearn's default)."""
FINEST = 0.5
"""Finest grid of the template in mm. It has eighty million voxels, and half the edge eight times
as many."""
MNI_CODE = 4
"""NIfTI's sform and qform code of the MNI152 space."""
LARGEST_CONDITION = 1e6
"""A grid whose affine is worse conditioned than this has a collapsed axis."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Voxels of a study, in the order of a column of data.

    Raises DataError if the mask is not 3-D or is empty, or the affine can't be inverted.
    """

    mask: NDArray[np.bool_]
    """True or false, shape (I, J, K). True for the D voxels of the study."""
    affine: NDArray[np.float64]
    """Shape (4, 4). Voxel indices to millimetres in the study's space."""

    def __post_init__(self) -> None:
        if self.mask.ndim != 3 or self.mask.dtype != np.bool_:
            msg = f"The study's mask must be a 3-D image of 0 and 1, got shape {self.mask.shape}."
            raise DataError(msg)
        if not self.mask.any():
            raise DataError("The study's mask must contain at least one voxel, and it is empty.")
        if not is_invertible(self.affine):
            raise DataError("The affine of the study's mask is singular. Correct its header.")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels along each axis."""
        first, second, third = self.mask.shape
        return first, second, third

    @cached_property
    def features(self) -> int:
        """D, voxels in the mask."""
        return int(np.count_nonzero(self.mask))

    @cached_property
    def coordinates(self) -> NDArray[np.float64]:
        """Centres of the voxels in mm, shape (D, 3)."""
        return np.asarray(apply_affine(self.affine, np.argwhere(self.mask)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of mask and affine: two parties that agree on it mean the same voxels."""
        content = hashlib.sha256(repr(self.shape).encode())
        content.update(np.packbits(self.mask).tobytes())
        content.update((np.round(self.affine, 4) + 0.0).astype("<f8").tobytes())
        return content.hexdigest()

    @cached_property
    def edge(self) -> float:
        """Edge in mm of a cube as large as a voxel."""
        return float(np.cbrt(abs(np.linalg.det(self.affine[:3, :3]))))

    def image(self, values: NDArray[Any]) -> nib.Nifti1Image:
        """Put values back in their places; voxels outside the mask are zero.

        Raises DataError if the first axis is not D long.

        Parameters
        ----------
        values : array, shape (D,) or (D, K)
            One volume, or K of them.

        Returns
        -------
        nibabel.Nifti1Image
            3-D or 4-D, float32, in mm of the MNI152 space.
        """
        if values.ndim not in (1, 2) or values.shape[0] != self.features:
            msg = f"Values of shape {values.shape} don't fit a grid of {self.features} voxels. "
            raise DataError(msg + "Give one row for each voxel of the mask.")
        volume = np.zeros(self.shape + values.shape[1:], dtype=np.float32)
        volume[self.mask] = values
        image = nib.Nifti1Image(volume, self.affine)
        image.header.set_xyzt_units(xyz="mm")
        image.set_sform(self.affine, code=MNI_CODE)
        image.set_qform(self.affine, code=MNI_CODE)
        return image


def study_grid(data: DataSection, folder: Path) -> Grid:
    """Return the grid of voxels that a study's data section states.

    Raises DataError if the mask file is outside ``folder``, is missing or can't be used.

    Parameters
    ----------
    data : DataSection
        Its ``mask`` and ``resolution``; a mask file brings its own grid and ``resolution`` is
        then not used.
    folder : Path
        Folder of the study file and of a mask file.

    Returns
    -------
    Grid
        The same at every site for the same study and mask file; compare ``digest`` to be sure.
    """
    if data.mask == TEMPLATE:
        return template_grid(data.resolution)
    # The study file comes from the centre: it must not be able to point at a site's other files.
    try:
        path = path_in_folder(folder, data.mask)
    except ValueError as error:
        msg = f"The study's mask {data.mask} is not next to the study file. Give a relative path."
        raise DataError(msg) from error
    return mask_grid(path)


@lru_cache(maxsize=4)  # a public constant that takes half a second
def template_grid(resolution: float) -> Grid:
    """Return the brain mask of the MNI152 template in nilearn.

    Raises DataError if it is below `FINEST`.

    Parameters
    ----------
    resolution : float
        Edge of a voxel in mm.
    """
    if resolution < FINEST:
        raise DataError(
            f"The study's resolution of {resolution:g} mm is finer than {FINEST:g} mm. Ask for a "
            "coarser grid."
        )
    # Read from where nilearn has it: to import nilearn takes seconds, in every process.
    found = find_spec("nilearn")
    folder = Path(next(iter((found and found.submodule_search_locations) or ["nilearn"])))
    path = folder / "datasets" / "data" / TEMPLATE_FILE
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    key = f"{content} {float(resolution).hex()}"
    make = partial(_brain, path, resolution)
    kept = kept_arrays("template", key, __file__, make)
    return Grid(kept["mask"], kept["affine"])


def _brain(path: Path, resolution: float) -> dict[str, NDArray[Any]]:
    image = load_nifti(path)
    values = np.asarray(image.dataobj, dtype=np.float32)
    values = values / values.max()
    affine = np.asarray(image.affine, dtype=np.float64)
    if resolution != 1:
        values, affine = _resampled(values, affine, resolution)
    return {"mask": values > TEMPLATE_THRESHOLD, "affine": affine}


def _resampled(
    values: NDArray[np.float32], affine: NDArray[np.float64], resolution: float
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Resample by cubic splines on the cubes that contain the image, as ``resample_img`` does."""
    from scipy.ndimage import affine_transform

    corners = np.array(list(product(*((0, length - 1) for length in values.shape))))
    places = apply_affine(affine, corners) / resolution
    low = places.min(axis=0)
    high = places.max(axis=0)
    target = np.diag([resolution] * 3 + [1.0])
    target[:3, 3] = resolution * low
    step = np.linalg.inv(affine) @ target
    shape = tuple(np.ceil(high - low).astype(int) + 1)
    return affine_transform(values, np.diag(step)[:3], step[:3, 3], shape), target


def mask_grid(path: Path) -> Grid:
    """Return the grid of a 3-D NIfTI mask, with the voxels that are neither zero nor NaN.

    Raises DataError if the file is missing, is not a NIfTI of real numbers, is not 3-D or has no
    voxel.
    """
    try:
        image = load_nifti(path)
        values = np.asarray(image.dataobj)
    except UNREADABLE as error:
        msg = f"The mask {path} can't be read. Give a whole 3-D NIfTI file."
        raise DataError(msg) from error
    check_stated(path, image, "mask")
    if values.dtype.kind not in "biuf":
        raise DataError(f"The mask {path} does not contain real numbers. Save it as 0 and 1.")
    try:
        return Grid((values != 0) & np.isfinite(values), np.asarray(image.affine, np.float64))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def is_invertible(affine: NDArray[np.float64]) -> bool:
    """Return whether an affine (4 x 4) maps voxels to millimetres one to one."""
    if not np.isfinite(affine).all():
        return False
    linear = affine[:3, :3]
    lengths = np.linalg.norm(linear, axis=0)
    # Columns are scaled first: anisotropic voxels are sound, parallel axes are not.
    return bool((lengths > 0).all() and np.linalg.cond(linear / lengths) < LARGEST_CONDITION)
