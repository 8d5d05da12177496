"""The hidden folder of working files, which keeps the folder around it free for results."""

from pathlib import Path

WORK = ".work"


def work_folder(folder: Path) -> Path:
    """Return the folder of a folder's working files, which may not be there yet."""
    return folder / WORK
