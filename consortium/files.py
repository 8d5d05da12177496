"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from consortium.errors import OutputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of it.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a power cut could leave the new name with no bytes
        draft.replace(path)
    except OSError as error:
        raise OutputError(
            f"{path} can't be written ({error.strerror}); check disk space and rights."
        ) from error


def make_folder(folder: Path) -> None:
    """Make a folder unless it is there.

    Raises
    ------
    OutputError
        If it can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder} can't be made ({error.strerror}); choose another folder."
        ) from error
