"""Files of the output folder: each is whole or absent, never half."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from consortium.errors import OutputError


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file beside its place and rename it there, in place of an earlier one.

    Parameters
    ----------
    path : Path
        The file; its folders are made.
    content : bytes

    Raises
    ------
    OutputError
        If the folder can't be written; an earlier file is then unchanged.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{path} can't be written; check that the folder exists, is yours and has room."
        raise OutputError(msg) from error
    return path


def write_text(path: Path, text: str) -> Path:
    """Write a text file (UTF-8) as `write_bytes` does."""
    return write_bytes(path, text.encode())


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write strict JSON as `write_bytes` does.

    Raises
    ------
    OutputError
        If the file can't be written.
    ValueError
        If a number is infinite or NaN, which JSON does not know.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return write_text(path, text + "\n")
