"""An exchange in a directory that all parties can reach: a shared disk, a mounted share.

Whoever may write there can plant links, to lead readers to other files and writers into other
folders. So names are walked one word at a time, from an open directory to the next, and no link
below the root is followed.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from consortium.errors import ExchangeError
from consortium.exchange.base import check_name, oversized, taken

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_HERE = os.O_NOFOLLOW
"""What keeps a word of a name from being a link to elsewhere."""


class DirectoryExchange:
    """One file per message, put in place whole by an atomic link.

    Parameters
    ----------
    root : Path
        The directory, or a link to it; it is made if its parent exists.

    Raises
    ------
    ExchangeError
        If it can't be made.
    """

    pace = 0.002

    def __init__(self, root: Path) -> None:
        self._root = root
        try:
            root.mkdir(exist_ok=True)
        except OSError as error:
            raise ExchangeError(f"{root} can't be used as an exchange; check its path.") from error

    def put(self, name: str, data: bytes | memoryview) -> None:
        """See `Exchange.put`."""
        *folders, target = check_name(name).split("/")
        try:
            with self._within(folders, make=True) as folder:
                _place(folder, target, data)
        except FileExistsError:
            if self.get(name, len(data)) != data:
                raise taken(name) from None
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be written ({error.strerror}); check the exchange's disk and rights."
            ) from error

    def get(self, name: str, limit: int) -> bytes | None:
        """See `Exchange.get`."""
        *folders, target = check_name(name).split("/")
        try:
            with self._within(folders) as folder:
                handle = _without_waiting(target, os.O_RDONLY | _HERE, dir_fd=folder)
            with open(handle, "rb") as file:  # noqa: PTH123 - no path, but what it led to
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ExchangeError(
                        f"{name} is not a file; have the exchange's owner remove it."
                    )
                data = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be read ({error.strerror}); check the exchange's rights, and that "
                "no link lies there."
            ) from error
        if len(data) > limit:
            raise oversized(name, limit)
        return data

    def children(self, prefix: str) -> list[str]:
        """See `Exchange.children`."""
        try:
            with self._within(check_name(prefix).split("/")) as folder:
                found = os.listdir(folder)  # noqa: PTH208 - as above
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ExchangeError(
                f"{prefix} can't be listed ({error.strerror}); check the exchange's rights."
            ) from error
        return sorted(name for name in found if not name.startswith("."))

    @contextmanager
    def _within(self, words: list[str], *, make: bool = False) -> Iterator[int]:
        """Lend the open directory that words below the root lead to."""
        folder = os.open(self._root, _FOLDER)
        try:
            for word in words:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(word, dir_fd=folder)
                below = os.open(word, _FOLDER | _HERE, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def _place(folder: int, target: str, data: bytes | memoryview) -> None:
    """Write a file whole under a name that is not taken."""
    draft = f".{uuid.uuid4().hex}"
    handle = os.open(draft, _DRAFT | _HERE, 0o666, dir_fd=folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - as above
        try:
            file.write(data)
            file.flush()
            os.link(  # fails if the name is taken, unlike a rename
                draft, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False
            )
        finally:
            os.unlink(draft, dir_fd=folder)


def _without_waiting(path: str, flags: int, *, dir_fd: int) -> int:
    """Open a file; one that is a pipe must not hold its reader up until somebody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK, dir_fd=dir_fd)
