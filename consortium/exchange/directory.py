"""An exchange in a directory that all parties can reach: a shared disk, a mounted share.

A user who may write there can plant links, to lead readers to other files and writers into other
folders. So names are resolved one word at a time, from an open directory to the next, and no link
below the root is followed.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from consortium.errors import ExchangeError
from consortium.exchange.base import check_name, name_taken, oversized_message

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_HERE = os.O_NOFOLLOW
"""What keeps a word of a name from being a link to elsewhere."""


class DirectoryExchange:
    """One file per message, which an atomic link makes complete at once.

    Raises ExchangeError if the directory is missing.

    Parameters
    ----------
    root : Path
        The directory, or a link to it. It is never made here: at the mount point of a share, a
        local folder would never receive a message. Files and folders below it get its mode and
        group, whatever the umask. So all its users can work there.
    """

    pace = 0.002

    def __init__(self, root: Path) -> None:
        self._root = root
        try:
            exists = root.is_dir()
        except OSError as error:
            raise ExchangeError(
                f"{root} can't be used as an exchange ({error.strerror}). Check its rights."
            ) from error
        if not exists:
            raise ExchangeError(
                f"{root} must be an existing folder to be an exchange, and it is not. Mount the "
                "share, correct the path, or make the folder if the consortium begins."
            )

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Follow `Exchange.put`."""
        *folders, target = check_name(name).split("/")
        try:
            with self._within(folders, make=True) as folder:
                _place(folder, target, data, self._access)
        except FileExistsError:
            if self.get(name, len(data)) != data:
                raise name_taken(name) from None
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be written ({error.strerror}). Check the exchange's disk and rights."
            ) from error

    def get(self, name: str, limit: int) -> bytes | None:
        """Follow `Exchange.get`."""
        *folders, target = check_name(name).split("/")
        try:
            with self._within(folders) as folder:
                handle = _without_waiting(target, os.O_RDONLY | _HERE, dir_fd=folder)
            with open(handle, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ExchangeError(
                        f"{name} is not a file. Have the exchange's owner remove it."
                    )
                data = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be read ({error.strerror}). Check the exchange's rights, and that "
                "it is not a link."
            ) from error
        if len(data) > limit:
            raise oversized_message(name, limit)
        return data

    def children(self, prefix: str) -> list[str]:
        """Follow `Exchange.children`."""
        try:
            with self._within(check_name(prefix).split("/")) as folder:
                found = os.listdir(folder)  # noqa: PTH208 - as above
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ExchangeError(
                f"{prefix} can't be listed ({error.strerror}). Check the exchange's rights."
            ) from error
        return sorted(name for name in found if not name.startswith("."))

    def stored_at(self, name: str) -> float | None:
        """Follow `DatedExchange.stored_at`."""
        *folders, target = check_name(name).split("/")
        try:
            with self._within(folders) as folder:
                # The time of the last change of the entry, which its writer can't set.
                return os.stat(target, dir_fd=folder, follow_symlinks=False).st_ctime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be read ({error.strerror}). Check the exchange's rights."
            ) from error

    def remove(self, name: str) -> None:
        """Follow `Removes.remove`."""
        *folders, target = check_name(name).split("/")
        try:
            with self._within(folders) as folder:
                os.unlink(target, dir_fd=folder)
        except OSError as error:
            raise ExchangeError(
                f"{name} can't be removed ({error.strerror}). Check the exchange's rights."
            ) from error
        with suppress(OSError):  # a folder that is not empty, or another party's, stays
            for depth in range(len(folders) - 1, -1, -1):
                with self._within(folders[:depth]) as above:
                    os.rmdir(folders[depth], dir_fd=above)

    @contextmanager
    def _within(self, words: list[str], *, make: bool = False) -> Iterator[int]:
        """Yield the open directory to which words below the root lead."""
        try:
            folder = os.open(self._root, _FOLDER)
        except FileNotFoundError as error:  # not the same as an empty exchange
            raise ExchangeError(f"{self._root} is gone. Mount the share again.") from error
        try:
            for word in words:
                made = make and _made(word, folder)
                below = os.open(word, _FOLDER | _HERE, dir_fd=folder)
                if made:
                    self._access.apply_to(below)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    @property
    def _access(self) -> _Access:
        status = self._root.stat()
        return _Access(status.st_mode & 0o7777, status.st_gid)


@dataclass(frozen=True)
class _Access:
    """Mode and group of the exchange's own folder."""

    mode: int
    group: int

    def apply_to(self, handle: int) -> None:
        """Set this mode and group on a folder or file of this process, where permitted."""
        status = os.fstat(handle)
        mode = self.mode if stat.S_ISDIR(status.st_mode) else self.mode & 0o666
        # Not in that group, a share without groups, or a container without its number.
        with suppress(OSError):
            if status.st_gid != self.group:
                os.fchown(handle, -1, self.group)
        with suppress(PermissionError):
            if status.st_mode & 0o7777 != mode:
                os.fchmod(handle, mode)


def _made(word: str, folder: int) -> bool:
    """Make a folder unless it exists; returns whether it was made."""
    try:
        os.mkdir(word, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def _place(folder: int, target: str, data: bytes | memoryview, access: _Access) -> None:
    """Write a file whole under a name that is not taken."""
    draft = f".{uuid.uuid4().hex}"
    handle = os.open(draft, _DRAFT | _HERE, 0o666, dir_fd=folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - as above
        try:
            access.apply_to(handle)
            file.write(data)
            file.flush()
            os.link(  # fails if the name is taken, unlike a rename
                draft, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False
            )
        finally:
            os.unlink(draft, dir_fd=folder)


def _without_waiting(path: str, flags: int, *, dir_fd: int) -> int:
    """Open a file without blocking, as a pipe would block its reader until it is written to."""
    return os.open(path, flags | os.O_NONBLOCK, dir_fd=dir_fd)
