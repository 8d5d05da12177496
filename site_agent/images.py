"""Opening a site's 4-D images, and saying in one sentence what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from nibabel.openers import ImageOpener
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.report.grid import Grid, is_invertible
from consortium.report.nifti import UNREADABLE, load_nifti

COVERAGE = 0.8
"""Part of the study's voxels that an image's field of view must contain."""
CHUNK = 1 << 20


def open_series(path: Path, grid: Grid) -> nib.Nifti1Image:
    """Open a 4-D image and check all that its header tells; no voxel is read.

    Parameters
    ----------
    path : Path
    grid : Grid
        The study's.

    Returns
    -------
    nibabel.Nifti1Image
        Of shape (I, J, K, T), not loaded.

    Raises
    ------
    DataError
        If it is not a NIfTI file, not 4-D, not of real numbers, cut short, has a singular affine
        or shows less than `COVERAGE` of the study's voxels.
    """
    try:
        image = load_nifti(path)
    except UNREADABLE as error:
        raise DataError(f"{path} can't be read as NIfTI; check that it is there, whole.") from error
    if not isinstance(image, nib.Nifti1Image):
        raise DataError(f"{path} is not a NIfTI image; convert it to .nii or .nii.gz.")
    if len(image.shape) != 4:
        axes = len(image.shape)
        raise DataError(f"{path} has {axes} axes; give a 4-D series of volumes.")
    if image.get_data_dtype().kind not in "iuf":
        raise DataError(f"{path} does not hold real numbers; convert it to int16 or float32.")
    _check_size(path, image)
    _check_place(path, image, grid)
    return image


def iterate_volumes(path: Path, image: nib.Nifti1Image) -> Iterator[NDArray[np.float32]]:
    """Yield an image's volumes one at a time, in order, as float32 of shape (I, J, K).

    The file is read once from start to end, so that gzip's own checksum is compared too, which
    reading slices through nibabel never does.

    Raises
    ------
    DataError
        If the file ends early, goes on far behind its last volume, or its compression is damaged.
    """
    stored = image.dataobj
    size = int(np.prod(image.shape[:3])) * stored.dtype.itemsize
    done = 0
    try:
        with ImageOpener(path) as file:
            file.seek(stored.offset)
            for _ in range(image.shape[3]):
                raw = np.frombuffer(_exactly(file, size), stored.dtype)
                yield _scaled(raw, stored.slope, stored.inter).reshape(image.shape[:3], order="F")
                done += 1
            _expect_end(file)
    except UNREADABLE as error:
        msg = f"{path} is cut short or damaged after volume {done}; copy the file again."
        raise DataError(msg) from error


def _expect_end(file: ImageOpener) -> None:
    """Read what a writer may leave behind the last volume, but no bomb."""
    rest = 0
    while part := file.read(CHUNK):
        rest += len(part)
        if rest > CHUNK:
            raise EOFError


def _exactly(file: ImageOpener, size: int) -> bytes:
    content = bytes(file.read(size))
    if len(content) != size:
        raise EOFError
    return content


def _scaled(raw: NDArray[Any], slope: float, inter: float) -> NDArray[np.float32]:
    """Apply the header's scaling in float32; out of its range is infinite, and told as such."""
    with np.errstate(over="ignore"):
        values = raw.astype(np.float32)
        values *= np.float32(slope)
        values += np.float32(inter)
    return values


def same_grid(image: nib.Nifti1Image, grid: Grid) -> bool:
    """Whether an image's voxels are the study's, to a thousandth of a millimetre."""
    return image.shape[:3] == grid.shape and np.allclose(image.affine, grid.affine, atol=1e-3)


def _check_size(path: Path, image: nib.Nifti1Image) -> None:
    """Refuse an uncompressed file whose size shows that it was cut short."""
    needed = image.dataobj.offset + math.prod(image.shape) * image.get_data_dtype().itemsize
    if path.suffix == ".nii" and path.stat().st_size < needed:
        raise DataError(f"{path} is cut short: its header asks for more; copy the file again.")


def _check_place(path: Path, image: nib.Nifti1Image, grid: Grid) -> None:
    """Refuse an image that lies elsewhere than the study's mask."""
    if not is_invertible(image.affine):
        raise DataError(f"{path} has a singular or infinite affine; repair its sform and qform.")
    places = apply_affine(np.linalg.inv(image.affine), grid.coordinates)
    inside = ((places >= -0.5) & (places <= np.array(image.shape[:3]) - 0.5)).all(axis=1).mean()
    if inside < COVERAGE:
        msg = f"{path} shows {inside:.0%} of the study's mask and must show {COVERAGE:.0%}; "
        raise DataError(msg + "normalise it to the study's space or correct its affine.")
