"""One process for each folder."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from consortium.base.work import work_folder
from consortium.errors import OutputError

_LOCK = "lock"


@contextmanager
def only_one(folder: Path, who: str = "centre") -> Iterator[None]:
    """Keep a second centre, or agent, out of the same folder.

    Raises OutputError if one is at work there, or the folder can't be made or written to.
    """
    with _lock(folder, who):
        yield


def in_use(folder: Path) -> bool:
    """Return whether another process uses a folder."""
    try:
        with (work_folder(folder) / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _lock(folder: Path, who: str) -> IO[str]:
    """Return the folder's lock, held until it is closed."""
    try:
        work_folder(folder).mkdir(parents=True, exist_ok=True)
        lock = (work_folder(folder) / _LOCK).open("w")
    except OSError as error:
        raise OutputError(
            f"{folder} can't be written ({error.strerror}); check its rights, or choose another."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise OutputError(f"{folder} is in use by another {who}; wait for it to end.") from error
    return lock
