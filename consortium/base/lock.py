"""Lock of a folder, in which only one centre, agent or inbox may work."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from consortium.base.work import work_folder
from consortium.errors import OutputError

_LOCK = "lock"
_PATIENCE = 30.0  # s to wait for another process's turn
_PAUSE = 0.02  # s between two looks


@contextmanager
def only_one(folder: Path, who: str = "centre", name: str = _LOCK) -> Iterator[None]:
    """Keep a second centre, agent or inbox out of the same folder.

    Raises OutputError if one is at work there, or the folder can't be made or written to.

    Parameters
    ----------
    folder : Path
        The folder.
    who : str
        Program that works there, such as an agent.
    name : str
        Name of the lock; programs with different names don't exclude each other.
    """
    with _lock(folder, who, name):
        yield


@contextmanager
def take_turns(folder: Path, name: str) -> Iterator[None]:
    """Let one holder at a time change a folder's files of one kind; the others wait.

    A holder that is killed leaves nothing to be removed. Raises OutputError if another holder
    takes too long, or the folder can't be made or written to.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        Name of the lock, such as decisions.
    """
    lock = _open_lock(folder, name)
    until = time.monotonic() + _PATIENCE
    with lock:
        while not _is_locked(lock):
            if time.monotonic() > until:
                raise OutputError(
                    f"{folder}: another program has been changing the {name} of this folder for "
                    f"{_PATIENCE:.0f} s. Try again when it has ended."
                )
            time.sleep(_PAUSE)
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


def _lock(folder: Path, who: str, name: str) -> IO[str]:
    """Return the folder's lock, held until it is closed."""
    lock = _open_lock(folder, name)
    if not _is_locked(lock):
        lock.close()
        raise OutputError(f"{folder} is in use by another {who}. Wait for it to end.")
    return lock


def _open_lock(folder: Path, name: str) -> IO[str]:
    try:
        work_folder(folder).mkdir(parents=True, exist_ok=True)
        return (work_folder(folder) / name).open("w")
    except OSError as error:
        raise OutputError(
            f"{folder} can't be written ({error.strerror}). Check its rights, or choose another."
        ) from error


def _is_locked(lock: IO[str]) -> bool:
    """Lock a file unless another holder has locked it, and return whether that was possible."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
