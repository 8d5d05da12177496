"""An agent's log for the site's staff, and the lines of it for the site's page."""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.work import work_folder
from consortium.errors import ConsortiumError

_TOLD = "told.json"
_KEPT = 40
_MOST = 4096  # lines once; other parties' files on the exchange must not fill memory or disk


class Line(NamedTuple):
    """A line of the log, and its time."""

    at: str
    text: str


class LogLines:
    """Store of the last lines in the site's folder.

    The caller of `keep` ensures that the line is about studies, runs and rounds only: it contains
    no label and no file of the data set.

    Parameters
    ----------
    folder : Path
        The site's.
    now : callable
        The time, for people.
    """

    def __init__(self, folder: Path, now: Callable[[], str]) -> None:
        self._folder = folder
        self._now = now
        self._lines = deque(read_log_lines(folder), maxlen=_KEPT)
        self._newest: dict[str, Line] = {}  # by subject
        self.many = 0

    def keep(self, text: str, subject: str = "") -> None:
        """Add a line.

        Raises OutputError if the folder can't be written.

        Parameters
        ----------
        subject : str
            The new line replaces the subject's earlier line, so a subject's lines never displace
            others from the page. Without a subject, every line stays.
        """
        line = Line(self._now(), text)
        before = self._newest.get(subject)
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


class SiteLog:
    """The agent's log for the site's staff.

    Lines that others can cause without limit are written through `line_once`, which stops after
    some thousand lines, or kept for the page under a subject, so they displace no other line from
    the page.

    Parameters
    ----------
    folder : Path
        The site's.
    now : callable
        The time, for people.
    log : callable
        Receives lines for the site's own log.
    """

    def __init__(self, folder: Path, now: Callable[[], str], log: Callable[[str], None]) -> None:
        self._told = LogLines(folder, now)
        self._log = log
        self._logged: set[str] = set()
        self._full = False

    @property
    def kept(self) -> int:
        """How many lines were kept for the page."""
        return self._told.many

    def line(self, text: str) -> None:
        """Log a line."""
        self._log(text)

    def line_once(self, text: str) -> None:
        """Log a line unless it was logged before."""
        if self._is_new(text):
            self.line(text)

    def write(self, text: str) -> None:
        """Log a line that names no participant, and keep it for the site's page."""
        self.line(text)
        self.keep(text)

    def write_once(self, text: str) -> None:
        """Log and keep a line as `write`, unless it was logged before."""
        if self._is_new(text):
            self.write(text)

    def keep(self, text: str, subject: str = "") -> None:
        """Keep a line that names no participant for the site's page, and don't log it.

        Parameters
        ----------
        subject : str
            Only the newest line of a subject is kept; without a subject, every line.
        """
        try:
            self._told.keep(text, subject)
        except ConsortiumError as error:  # a missing line on a page must not end a run
            self.line_once(str(error))

    def _is_new(self, text: str) -> bool:
        if self._full or text in self._logged:
            return False
        self._full = len(self._logged) == _MOST
        if self._full:
            self.line(
                f"More than {_MOST} different lines of this kind were logged; further ones are "
                "omitted until the agent restarts. Check which party writes to the exchange."
            )
        else:
            self._logged.add(text)
        return not self._full
