"""Working files lie in one hidden folder, so that the folder around it holds results only."""

from pathlib import Path

WORK = ".work"


def work_folder(folder: Path) -> Path:
    """Return the folder of a folder's working files, which may not be there yet."""
    return folder / WORK
