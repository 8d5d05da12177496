"""Files of one data set with the same content, which may be one participant's under two names.

The comparison is for the site's staff. The site's messages do not depend on it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from pathlib import Path

from consortium.base.regular_file import regular
from consortium.errors import DataError

_HEAD = 1 << 20
"""Bytes that are compared first. Where they are equal, as background may be, whole files are."""


def same_files(paths: Iterable[Path]) -> list[list[Path]]:
    """Return the groups of two or more files whose bytes are the same.

    Files are read only if others have the same size. Unreadable files are omitted.
    """
    groups = [list(paths)]
    for key in (_size, _head, _whole):
        groups = [part for group in groups for part in _split(group, key)]
    return groups


def _split(paths: Iterable[Path], key: Callable[[Path], Hashable]) -> list[list[Path]]:
    found: dict[Hashable, list[Path]] = defaultdict(list)
    for path in paths:
        with suppress(OSError, DataError):
            found[key(path)].append(path)
    return [group for group in found.values() if len(group) > 1]


def _size(path: Path) -> int:
    return path.stat().st_size


def _head(path: Path) -> bytes:
    with regular(path).open("rb") as file:
        return hashlib.sha256(file.read(_HEAD)).digest()


def _whole(path: Path) -> bytes:
    with regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
