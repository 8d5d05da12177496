"""Data files of other parties: no waiting for a pipe, and no unpacking of a bomb."""

import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from consortium.errors import DataError

MOST_TEXT = 10_000_000
"""Bytes of a description."""
MOST_VALUES = 1 << 30
"""Numbers of one file that are held in memory at once: 8 GiB."""
_PART = 1 << 20


def regular(path: Path) -> Path:
    """Return the path of a regular file, or of a link to one.

    Raises DataError if it is a pipe, a device, a socket or a folder. Raises OSError if nothing is
    there.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise DataError(
            f"{path} is not a regular file, and is not opened. Put the data's own file there."
        )
    return path


def text_of(path: Path, most: int = MOST_TEXT, errors: str = "strict") -> str:
    """Read a regular file with a maximum number of bytes as UTF-8.

    Raises DataError if it is not a regular file, or is larger. Raises OSError, ValueError if it
    can't be read.
    """
    if regular(path).stat().st_size > most:
        raise DataError(f"{path} has more than {most:,} bytes. Give one that describes its data.")
    return path.read_text(encoding="utf-8-sig", errors=errors)


def sizes_unpacked(packed: bytes) -> Iterator[int]:
    """Yield the unpacked bytes of each part of a zlib stream, without keeping them.

    Raises zlib.error if it is not a zlib stream.
    """
    unpacker = zlib.decompressobj()
    part = b""
    while packed or part:
        part = unpacker.decompress(packed, _PART)
        packed = unpacker.unconsumed_tail
        yield len(part)
