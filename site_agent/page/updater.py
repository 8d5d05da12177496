"""The page of a running agent: written anew when something on it changed, beside other work."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from consortium.engine.clock import Clock
from consortium.errors import ConsortiumError
from site_agent.loading.progress import Drive

EVERY = 10.0
"""Seconds between two pages, so that a run's rounds don't wait for them."""


@dataclass(eq=False)
class PageUpdater:
    """Writes the page whenever what it shows is another state, and no more often than that."""

    folder: Path
    """The site's."""
    clock: Clock
    now: Callable[[], datetime]
    """The time of day."""
    log: Callable[[str], None]
    """Hears why the page could not be written; the agent goes on."""
    drive: Drive
    """Has the page written beside other work."""
    _state: object = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._next = 0.0
        self._busy = False
        self.begun = False

    def look(self, state: object) -> None:
        """Have the page written if the state is another than it was, and a while has passed."""
        early = self.begun and self.clock.now() < self._next
        if self._busy or early or state == self._state:
            return
        self._state, self._next = state, self.clock.now() + EVERY
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
