"""Reading the voxels of a series once, from start to end, as fast as its file can be unpacked.

Gzip is unpacked by ISA-L where the package isal is installed, and by zlib otherwise; a file that
is not compressed is mapped into memory, so that only the pages that are used are read.
"""

import gzip
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import nibabel as nib
import numpy as np
from nibabel.openers import ImageOpener
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.privacy.bounds import Unit
from consortium.space.nifti import UNREADABLE

Voxels = NDArray[np.float32]

_WORTH_A_THREAD = 4 << 20  # bytes of a compressed file beyond which another thread unpacks it
CHUNK = 1 << 20
"""Bytes that a writer may leave behind the last volume."""


def iterate_volumes(
    path: Path, image: nib.Nifti1Image, places: NDArray[np.intp] | None = None
) -> Iterator[Voxels]:
    """Yield an image's volumes one at a time, in order, as float32.

    The file is read once from start to end, so that gzip's own checksum is compared too, which
    reading slices through nibabel never does. Raises DataError if the file ends early, goes on far
    behind its last volume, or its compression is damaged.

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
    stored, done = image.dataobj, 0
    try:
        for raw in stored_volumes(path, image):
            if places is not None:
                yield _scaled(raw.take(places, mode="clip"), stored.slope, stored.inter)
            else:
                whole = _scaled(raw, stored.slope, stored.inter)
                yield whole.reshape(image.shape[:3], order="F")
            done += 1
    except (*UNREADABLE, *unpacker_errors()) as error:
        msg = f"{path} is cut short or damaged after volume {done}; copy the file again."
        raise DataError(msg) from error


def check_finite(path: Path, number: int, row: Voxels, unit: Unit) -> None:
    """Refuse a volume, counted from 1, while it is in the processor's cache, or make it zero.

    Raises DataError if a value is not finite and a person is the unit.
    """
    if np.isfinite(row).all():
        return
    if unit == "timepoint":
        row[:] = 0.0
    else:
        msg = f"{path} has a value that is not finite in volume {number}; "
        raise DataError(msg + "repair it, or write 0 outside the brain.")


def stored_places(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Where the voxels of a mask lie in a stored volume, in the order of ``image[mask]``."""
    first, second, third = np.nonzero(mask)
    return np.ravel_multi_index((first, second, third), mask.shape, order="F")


def stored_volumes(path: Path, image: nib.Nifti1Image) -> Iterator[NDArray[Any]]:
    """Yield each volume's values as the file has them, from a file that is whole.

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
        _exactly(file, stored.offset)  # a thread that unpacks ahead can't be sent back and forth
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
    """What ISA-L raises on damaged data, beside what gzip does."""
    try:
        from isal import isal_zlib
    except ImportError:
        return ()
    failure = cast("type[Exception]", isal_zlib.error)
    return (failure,)


def _expect_end(file: IO[bytes]) -> None:
    """Read what a writer may leave behind the last volume, but no bomb."""
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
    """Apply the header's scaling in float32; out of its range is infinite, and told as such."""
    with np.errstate(over="ignore"):
        values = raw.astype(np.float32, copy=not raw.flags.owndata)
        if (slope, inter) != (1.0, 0.0):
            values *= np.float32(slope)
            values += np.float32(inter)
    return values
