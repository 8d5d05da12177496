"""Writing of files that are complete or absent, under names that are safe in a folder."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
"""Exceptions of reading a JSON record that another party may have written."""


def path_in_folder(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder, if the name that another party chose is safe.

    Raises ValueError if the name, or a link on its way, leads out of the folder.
    """
    root = folder.resolve()
    try:
        path = (root / name).resolve()
    except RuntimeError as error:  # links in a circle
        raise ValueError(name) from error
    if Path(name).is_absolute() or ".." in Path(name).parts or not path.is_relative_to(root):
        raise ValueError(name)
    return path


def write_bytes(path: Path, data: bytes, *, mode: int = 0o666) -> Path:
    """Write a file atomically: a crash leaves the old one or the new one.

    A link is replaced by the file, and the file that it names stays as it is. Raises OutputError if
    the folder can't be written; an earlier file is then unchanged.

    Parameters
    ----------
    path : Path
        The file; its folders are made.
    mode : int
        Its permissions, before the umask; 0o600 for the owner only.

    Returns
    -------
    Path
        The file's.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.unlink(missing_ok=True)  # an earlier one may be open to others
            with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # or a power cut could leave the new name with no bytes
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"{path} can't be written ({error.strerror}). Check disk space and rights."
        ) from error
    return path


def write_text(path: Path, text: str) -> Path:
    """Write a text file (UTF-8) as `write_bytes` does."""
    return write_bytes(path, text.encode())


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write strict JSON as `write_bytes` does.

    Raises OutputError if the file can't be written. Raises ValueError if a number is infinite or
    NaN, which JSON does not have.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return write_text(path, text + "\n")


def make_folder(folder: Path) -> None:
    """Make a folder unless it exists; raises OutputError if it can't be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder} can't be made ({error.strerror}). Choose another folder."
        ) from error
