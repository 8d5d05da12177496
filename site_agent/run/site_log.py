"""What the site's people read of an agent: its log, and the lines of it for the site's page."""

from collections.abc import Callable
from pathlib import Path

from consortium.errors import ConsortiumError
from site_agent.run.log_lines import LogLines

_MOST = 4096  # lines once; what strangers write on the exchange fills no memory and no disk


class SiteLog:
    """The site's log.

    What others can cause without end is written through `line_once`, which ends at some thousand
    lines, or kept for the page under a subject, so that it pushes nothing else off the page.

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
        self._told, self._log = LogLines(folder, now), log
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

    def tell(self, text: str) -> None:
        """Log a line that names no person, and keep it for the site's page."""
        self.line(text)
        self.keep(text)

    def tell_once(self, text: str) -> None:
        """Do the same unless the line was logged before."""
        if self._is_new(text):
            self.tell(text)

    def keep(self, text: str, subject: str = "") -> None:
        """Keep a line that names no person for the site's page, and don't log it.

        Parameters
        ----------
        subject : str
            Of its lines only the newest is kept; without one every line.
        """
        try:
            self._told.keep(text, subject)
        except ConsortiumError as error:  # a run does not end for want of a line on a page
            self.line_once(str(error))

    def _is_new(self, text: str) -> bool:
        if self._full or text in self._logged:
            return False
        self._full = len(self._logged) == _MOST
        if self._full:
            self.line(
                f"More than {_MOST} different lines of this kind were logged; further ones are "
                "left out until the agent starts again: look at who writes on the exchange."
            )
        else:
            self._logged.add(text)
        return not self._full
