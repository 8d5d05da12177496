"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from consortium.errors import OutputError

DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading a JSON record raises that somebody else may have written."""


def beside(folder: Path, name: str) -> Path:
    """Path of a file that lies in a folder, whoever chose its name.

    Raises
    ------
    ValueError
        If the name, or a link that it goes through, leads out of the folder.
    """
    root = folder.resolve()
    try:
        path = (root / name).resolve()
    except RuntimeError as error:  # links in a circle
        raise ValueError(name) from error
    if Path(name).is_absolute() or ".." in Path(name).parts or not path.is_relative_to(root):
        raise ValueError(name)
    return path


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
