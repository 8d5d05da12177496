"""The last lines of the log that name no person, kept on disk for the site's own page."""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.work import work_folder

_TOLD = "told.json"
_KEPT = 40


class Line(NamedTuple):
    """A line of the log, and when it was written."""

    at: str
    text: str


class LogLines:
    """Keeps the last lines in the site's folder.

    Who calls `keep` vouches that the line tells of studies, runs and rounds only: no label, no
    file of the data set.

    Parameters
    ----------
    folder : Path
        The site's.
    now : callable
        The time, for people.
    """

    def __init__(self, folder: Path, now: Callable[[], str]) -> None:
        self._folder, self._now = folder, now
        self._lines = deque(read_log_lines(folder), maxlen=_KEPT)
        self._newest: dict[str, Line] = {}  # by subject
        self.many = 0

    def keep(self, text: str, subject: str = "") -> None:
        """Add a line.

        Raises OutputError if the folder can't be written.

        Parameters
        ----------
        subject : str
            Whose earlier line goes, so that its lines push no others off the page; without one
            every line stays.
        """
        line, before = Line(self._now(), text), self._newest.get(subject)
        if before is not None and before in self._lines:
            self._lines.remove(before)
        if subject:
            self._newest[subject] = line
        self._lines.append(line)
        self.many += 1
        write_bytes(_path(self._folder), json.dumps(list(self._lines)).encode())


def read_log_lines(folder: Path) -> list[Line]:
    """Return the last lines, oldest first; none if they are damaged, as nothing depends on them."""
    try:
        found = json.loads(_path(folder).read_text("utf-8"))
        return [Line(str(at), str(text)) for at, text in found]
    except DAMAGED:
        return []


def _path(folder: Path) -> Path:
    return work_folder(folder) / _TOLD
