"""The page of a running agent: written again after each change, in parallel with other work."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from consortium.engine.clock import Clock
from consortium.errors import ConsortiumError
from site_agent.loading.progress import Drive

EVERY = 10.0
"""Seconds between two pages, which keep a run's rounds from waiting for them."""


@dataclass(eq=False)
class PageUpdater:
    """Writer of the page, which writes it only when the shown state has changed."""

    folder: Path
    """The site's."""
    clock: Clock
    now: Callable[[], datetime]
    """The time of day."""
    log: Callable[[str], None]
    """Receives the error if the page could not be written; the agent continues."""
    drive: Drive
    """Executor that writes the page in parallel with other work."""
    _state: object = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._next = 0.0
        self._busy = False
        self.begun = False

    def look(self, state: object) -> None:
        """Start writing the page if the state has changed and enough time has passed."""
        early = self.begun and self.clock.now() < self._next
        if self._busy or early or state == self._state:
            return
        self._state = state
        self._next = self.clock.now() + EVERY
        self._busy = self.begun = True
        self.drive(self._steps())

    def write(self) -> None:
        """Write the page now."""
        from site_agent.page.page import write_site_page  # matplotlib, for sites that want a page

        try:
            write_site_page(self.folder, self.now())
        except ConsortiumError as error:
            self.log(f"the page can't be written: {error}")

    def _steps(self) -> Iterator[None]:
        try:
            self.write()
        finally:
            self._busy = False
        yield
