"""Opening public NIfTI files of other parties: a header is checked before it is used."""

import math
import struct
import zlib
from pathlib import Path
from typing import Any

import nibabel as nib
from nibabel.filebasedimages import ImageFileError
from nibabel.openers import ImageOpener
from nibabel.spatialimages import HeaderDataError, SpatialImage
from nibabel.wrapstruct import WrapStructError

from consortium.base.regular_file import regular
from consortium.errors import DataError

UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    struct.error,
    zlib.error,
    ImageFileError,
    HeaderDataError,
    WrapStructError,
)
"""What nibabel, gzip and zlib raise on files that are missing, foreign, cut short or damaged."""
MOST_VOXELS = 1 << 27
"""Voxels of one volume: three times those of a whole brain at half a millimetre."""
MOST_VOLUMES = (1 << 15) - 1
"""Largest number of volumes in NIfTI-1."""
_MOST_OFFSET = 1 << 24  # bytes before the first voxel, where the header's extensions are
_UNPACKS = {".gz": 1032, ".mgz": 1032, ".nii": math.inf, ".mgh": math.inf}
"""Most bytes that one byte of a packed file can become, by the file's ending.

The length of a file that is not packed is compared with its header instead."""
_NIFTI_1 = 348
_HEADERS = {_NIFTI_1: nib.Nifti1Header, 540: nib.Nifti2Header}
"""By their sizes in bytes."""

KEPT = b"KEPT AT THE HOSPITAL: exact, without the noise of privacy"
"""Description in the header of an image that must not leave the hospital where it was made."""


def mark_kept(image: Any) -> None:
    """Write into an image's header that it must not leave."""
    _header(image)["descrip"] = KEPT


def is_kept(image: Any) -> bool:
    """Return whether a NIfTI file states that it must not leave the hospital where it was made."""
    header = _header(image)
    return "descrip" in header and bytes(header["descrip"].item()).startswith(KEPT)


def _header(image: Any) -> Any:
    """Return the NIfTI header, which a CIFTI image has in addition to its own."""
    return getattr(image, "nifti_header", image.header)


def open_image(path: Path) -> Any:
    """Open a file as nibabel does, after a check of its header; no value is read.

    Raises DataError if it is not a regular file, or is GIFTI, since nibabel reads all its values at
    once. Raises ValueError if the header claims extensions without end, or more values than the
    file can contain. Raises UNREADABLE for errors of nibabel.
    """
    if ".gii" in regular(path).suffixes:
        raise _of_surface(path)
    # What nibabel comes to after it has tried its kinds of images one by one.
    single = _check_offset(path) == _NIFTI_1 and path.name.endswith((".nii", ".nii.gz"))
    image = nib.Nifti1Image.from_filename(path) if single else nib.load(path)
    shape = tuple(int(length) for length in image.shape)
    claimed = math.prod(shape) * image.get_data_dtype().itemsize
    most = _UNPACKS.get(path.suffix.lower(), 1) * path.stat().st_size
    if min(shape, default=0) < 1 or claimed > most:
        raise ValueError("the header claims more than the file can hold")
    return image


def load_nifti(path: Path) -> Any:
    """Open an image of voxels as `open_image` does.

    Raises DataError if the file is of a surface: GIFTI, or CIFTI. Raises ValueError if the header
    claims more voxels, volumes or extensions than an image has, or than the file can hold. Raises
    UNREADABLE whatever nibabel makes of it.

    Returns
    -------
    nibabel.spatialimages.SpatialImage
    """
    image = open_image(path)
    if not isinstance(image, SpatialImage):
        raise _of_surface(path)
    voxels = math.prod(image.shape[:3])
    volumes = math.prod(image.shape[3:])
    if voxels > MOST_VOXELS or volumes > MOST_VOLUMES:
        raise ValueError(f"an image can't have the shape {image.shape}")
    return image


def has_orientation(image: Any) -> bool:
    """Return whether a file states how its voxels are placed.

    A NIfTI file does if its sform_code or qform_code is not 0. Analyze files have no field for it.
    nibabel guesses an affine for both that may exchange left and right.
    """
    header = image.header
    if "sform_code" in header and "qform_code" in header:
        return bool(int(header["sform_code"]) > 0 or int(header["qform_code"]) > 0)
    return not isinstance(image, nib.AnalyzeImage)


def check_stated(path: Path, image: Any, what: str) -> None:
    """Raise DataError if a public image of a study does not state its orientation.

    Parameters
    ----------
    what : str
        Its name in the message.
    """
    if not has_orientation(image):
        raise DataError(
            f"The {what} {path} must state its orientation, and it is an Analyze file or a NIfTI "
            "file whose sform_code and qform_code are both 0. Write it again with an sform."
        )


def _of_surface(path: Path) -> DataError:
    return DataError(
        f"{path} has values on a surface, where an image of voxels is required. Give a NIfTI "
        "image, or name a view of source: surface."
    )


def _check_offset(path: Path) -> int:
    """Refuse a header with endless extensions, which nibabel would read into memory.

    Returns the header's size; 0 if it is none of NIfTI's.
    """
    with ImageOpener(path) as file:
        start = bytes(file.read(max(_HEADERS)))
    for order in ("little", "big"):
        size = int.from_bytes(start[:4], order)
        if size in _HEADERS and len(start) >= size:
            header = _HEADERS[size](start[:size], check=False)
            if not 0 <= float(header["vox_offset"]) <= _MOST_OFFSET:
                raise ValueError("the voxels are too far behind the header")
            return size
    return 0
