"""Reading of a site's own NIfTI scans and maps, with one sentence for each fault.

The voxels of a series are read once, from start to end, as fast as its file can be unpacked. Gzip
is unpacked by ISA-L where the package isal is installed, and by zlib otherwise. A file that is not
compressed is mapped into memory, and only the used pages are read.
"""

import gzip
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import nibabel as nib
import numpy as np
from nibabel.openers import ImageOpener
from nibabel.volumeutils import apply_read_scaling
from numpy.typing import NDArray

from consortium.base.regular_file import MOST_VALUES
from consortium.errors import DataError
from consortium.privacy.bounds import Unit
from consortium.space.grid import Grid, is_invertible
from consortium.space.nifti import UNREADABLE, has_orientation, load_nifti
from consortium.space.sampling import share_inside, voxel_places

COVERAGE = 0.8
"""Part of the study's voxels that an image's field of view must contain."""


class GapsError(DataError):
    """A participant's images lack more values than a study's ``gaps`` allow.

    This is a rule of the study, so its number of participants may not be inferred from an answer.
    """


Voxels = NDArray[np.float32]

_WORTH_A_THREAD = 4 << 20  # bytes of a compressed file beyond which another thread unpacks it
CHUNK = 1 << 20
"""Bytes that a writer may leave behind the last volume."""


def open_nifti(path: Path) -> nib.Nifti1Image:
    """Open any image of real numbers; no voxel is read.

    Raises DataError if it is not a NIfTI file, not of real numbers, or cut short.
    """
    try:
        image = load_nifti(path)
    except UNREADABLE as error:
        raise DataError(
            f"{path} can't be read as NIfTI. Check that the file exists and is complete."
        ) from error
    if not isinstance(image, nib.Nifti1Image):
        raise DataError(f"{path} is not a NIfTI image. Convert it to .nii or .nii.gz.")
    if image.get_data_dtype().kind not in "iuf":
        raise DataError(f"{path} does not contain real numbers. Convert it to int16 or float32.")
    _check_size(path, image)
    return image


def open_series(path: Path, grid: Grid) -> nib.Nifti1Image:
    """Open a 4-D image and check its header; no voxel is read.

    Raises DataError if it is not a NIfTI file, not 4-D, not of real numbers, cut short, has a
    singular affine or shows less than `COVERAGE` of the study's voxels.

    Parameters
    ----------
    grid : Grid
        The study's.

    Returns
    -------
    nibabel.Nifti1Image
        Of shape (I, J, K, T), not loaded.
    """
    image = open_nifti(path)
    if len(image.shape) != 4:
        axes = len(image.shape)
        raise DataError(f"{path} has {axes} axes. Give a 4-D series of volumes.")
    _check_place(path, image, grid)
    return image


def open_volume(path: Path, grid: Grid) -> nib.Nifti1Image:
    """Open a 3-D image; otherwise as `open_series`.

    A fourth axis of length one is accepted. Raises DataError as `open_series`.
    """
    image = open_nifti(path)
    if len(image.shape) < 3 or any(length > 1 for length in image.shape[3:]):
        raise DataError(f"{path} has shape {image.shape}. Give one 3-D image per participant.")
    _check_place(path, image, grid)
    return image


def check_orientation(path: Path, image: nib.Nifti1Image) -> None:
    """Raise DataError if an image does not state its orientation.

    nibabel then guesses an affine that may exchange left and right.
    """
    if not has_orientation(image):
        raise DataError(
            f"{path}: a stated orientation is required, and sform_code and qform_code are both 0, "
            "so left and right are unknown. Convert the original images again, or set "
            "'accept_unoriented: true' in site.yaml if you have checked left and right."
        )


def read_whole(path: Path, image: nib.Nifti1Image) -> NDArray[np.float64]:
    """Read all values of an image, in the shape of its header; gzip's checksum is compared.

    Raises DataError if the file is cut short or damaged, or has more than `MOST_VALUES`.
    """
    if math.prod(image.shape) > MOST_VALUES:
        raise DataError(f"{path} claims more than {MOST_VALUES:,} values. Give a shorter one.")
    stored = image.dataobj
    try:
        raw = np.stack(list(stored_volumes(path, image)))
        with np.errstate(all="ignore"):  # values that become infinite by scaling are found later
            values = apply_read_scaling(raw.T, stored.slope, stored.inter)
            return np.asarray(values, dtype=np.float64).reshape(image.shape, order="F")
    except (*UNREADABLE, *unpacker_errors()) as error:
        raise DataError(f"{path} is cut short or damaged. Copy the file again.") from error


def same_grid(image: nib.Nifti1Image, grid: Grid) -> bool:
    """Return whether an image's voxels are the study's, to a thousandth of a millimetre."""
    return image.shape[:3] == grid.shape and np.allclose(image.affine, grid.affine, atol=1e-3)


def _check_size(path: Path, image: nib.Nifti1Image) -> None:
    """Refuse an uncompressed file whose size shows that it was cut short."""
    needed = image.dataobj.offset + math.prod(image.shape) * image.get_data_dtype().itemsize
    if path.suffix == ".nii" and path.stat().st_size < needed:
        raise DataError(f"{path} is cut short: its header asks for more. Copy the file again.")


def _check_place(path: Path, image: nib.Nifti1Image, grid: Grid) -> None:
    """Refuse an image whose place differs from the study's mask."""
    if not is_invertible(image.affine):
        raise DataError(f"{path} has a singular or infinite affine. Repair its sform and qform.")
    inside = share_inside(voxel_places(image.affine, grid), image.shape)
    if inside < COVERAGE:
        msg = f"{path} shows {inside:.0%} of the study's mask and must show {COVERAGE:.0%}. "
        raise DataError(msg + "Normalise it to the study's space or correct its affine.")


def iterate_volumes(
    path: Path, image: nib.Nifti1Image, places: NDArray[np.intp] | None = None
) -> Iterator[Voxels]:
    """Yield an image's volumes one at a time, in order, as float32.

    The file is read once from start to end. So gzip's own checksum is also compared, which reading
    slices through nibabel never does. Raises DataError if the file ends early, continues far behind
    its last volume, or its compression is damaged.

    Parameters
    ----------
    image : nibabel.Nifti1Image
        As `site_agent.images.nifti.open_series` returned it for this path.
    places : array of int, optional
        Voxels to keep, as `stored_places` counts them; the others are not even converted.

    Yields
    ------
    array
        Shape (I, J, K), or as many voxels as ``places`` has.
    """
    stored = image.dataobj
    done = 0
    try:
        for raw in stored_volumes(path, image):
            if places is not None:
                yield _scaled(raw.take(places, mode="clip"), stored.slope, stored.inter)
            else:
                whole = _scaled(raw, stored.slope, stored.inter)
                yield whole.reshape(image.shape[:3], order="F")
            done += 1
    except (*UNREADABLE, *unpacker_errors()) as error:
        msg = f"{path} is cut short or damaged after volume {done}. Copy the file again."
        raise DataError(msg) from error


def check_finite(path: Path, number: int, row: Voxels, unit: Unit) -> None:
    """Refuse a volume of a series, or make it zero, if it has values that are not finite.

    Raises DataError if a value is not finite and a participant is the unit.
    """
    if np.isfinite(row).all():
        return
    if unit == "timepoint":
        row[:] = 0.0
    else:
        msg = f"{path} has a value that is not finite in volume {number}. "
        raise DataError(msg + "Repair it, or write 0 outside the brain.")


def stored_places(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the places of a mask's voxels in a stored volume, in the order of ``image[mask]``."""
    first, second, third = np.nonzero(mask)
    return np.ravel_multi_index((first, second, third), mask.shape, order="F")


def stored_volumes(path: Path, image: nib.Nifti1Image) -> Iterator[NDArray[Any]]:
    """Yield an image's volumes as the file has them, from a file that is whole.

    Raises UNREADABLE and `unpacker_errors`, if it is not.
    """
    return _mapped(path, image) if path.suffix == ".nii" else _unpacked(path, image)


def _mapped(path: Path, image: nib.Nifti1Image) -> Iterator[NDArray[Any]]:
    """Yield the stored values of each volume of an uncompressed file."""
    stored = image.dataobj
    shape = (math.prod(image.shape[3:]), math.prod(image.shape[:3]))
    whole = np.memmap(path, stored.dtype, "r", stored.offset, shape)
    if path.stat().st_size > stored.offset + whole.nbytes + CHUNK:
        raise EOFError
    yield from np.asarray(whole)


def _unpacked(path: Path, image: nib.Nifti1Image) -> Iterator[NDArray[Any]]:
    """Yield the stored values of each volume of a compressed file."""
    stored = image.dataobj
    size = math.prod(image.shape[:3]) * stored.dtype.itemsize
    with _open(path) as file:
        _exactly(file, stored.offset)  # a thread that unpacks in advance can't seek
        for _ in range(math.prod(image.shape[3:])):
            yield np.frombuffer(_exactly(file, size), stored.dtype)
        _expect_end(file)


def _open(path: Path) -> IO[bytes]:
    if path.suffix != ".gz":
        return cast("IO[bytes]", ImageOpener(path))
    try:
        from isal import igzip_threaded
    except ImportError:
        return cast("IO[bytes]", gzip.open(path, "rb"))
    ahead = int(path.stat().st_size > _WORTH_A_THREAD)
    return cast("IO[bytes]", igzip_threaded.open(path, "rb", threads=ahead))


def unpacker_errors() -> tuple[type[Exception], ...]:
    """Return the errors that ISA-L raises on damaged data, in addition to those of gzip."""
    try:
        from isal import isal_zlib
    except ImportError:
        return ()
    failure = cast("type[Exception]", isal_zlib.error)
    return (failure,)


def _expect_end(file: IO[bytes]) -> None:
    """Read the short rest that a writer may leave behind the last volume, but not a long one."""
    rest = 0
    while part := file.read(CHUNK):
        rest += len(part)
        if rest > CHUNK:
            raise EOFError


def _exactly(file: IO[bytes], size: int) -> bytes:
    content = file.read(size)
    if len(content) != size:
        raise EOFError
    return content


def _scaled(raw: NDArray[Any], slope: float, inter: float) -> Voxels:
    """Apply the header's scaling in float32; values out of its range become infinite."""
    with np.errstate(over="ignore"):
        values = raw.astype(np.float32, copy=not raw.flags.owndata)
        if (slope, inter) != (1.0, 0.0):
            values *= np.float32(slope)
            values += np.float32(inter)
    return values
