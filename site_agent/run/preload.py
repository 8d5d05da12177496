"""Approved studies' data loaded before any run is announced, and again when they changed."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from consortium.engine.clock import Clock
from consortium.errors import ConsortiumError, EngineError
from consortium.opened_study import OpenedStudy, open_signed
from site_agent.approval.approval import Approval
from site_agent.loading.progress import Data, Drive, Loading

_LOOK_EVERY = 5.0  # s between two looks at the approvals
_LONGEST_REST = 600.0  # s
_REST = 100.0  # times as long as a look took, which is long with many participants
_AGAIN_EVERY = 600.0  # s between two looks at a data set whose study is ready
_TELL_EVERY = 10.0  # s between two lines of progress in the log


@dataclass(eq=False)
class Preload:
    """Loading of one study after the other, in parallel with the agent's other work."""

    source: Path
    """The site's data set."""
    open_data: Callable[[OpenedStudy], Data]
    """Makes the data set of an approved study, unread."""
    drive: Drive
    clock: Clock
    log: Callable[[str], None]
    """Receives a line for the site's own log."""
    _ready: dict[str, tuple[str, float]] = field(default_factory=dict, init=False)
    _loading: Loading | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._study = ""
        self._next = -_LOOK_EVERY
        self._told = 0.0

    @property
    def words(self) -> str:
        """Progress of the data that are being loaded; empty if none are."""
        loading = self._loading
        return "" if loading is None or loading.over else loading.words

    @property
    def study(self) -> str:
        """Study whose data are loaded now, or were loaded last."""
        return self._study

    def look(self, approved: Callable[[], Sequence[Approval]]) -> None:
        """Start to load the next approved study that is not ready, and report the progress.

        Parameters
        ----------
        approved : callable
            Returns the studies that may have a run now.
        """
        now = self.clock.now()
        if self._loading is not None and not self._loading.over:
            if now - self._told >= _TELL_EVERY:
                self._told = now
                self.log(f"{self._study}: {self._loading.words}")
            return
        if now < self._next:
            return
        found = approved()
        after = self.clock.now()
        self._next = after + min(max(_LOOK_EVERY, _REST * (after - now)), _LONGEST_REST)
        for approval in found:
            _, looked = self._ready.get(approval.study.digest, ("", -_AGAIN_EVERY))
            if now - looked >= _AGAIN_EVERY:
                self._begin(approval, now)
                return

    def _begin(self, approval: Approval, now: float) -> None:
        try:
            loading = Loading(self.open_data(open_signed(approval)))
        except ConsortiumError as error:
            self._ready[approval.study.digest] = "", now
            self.log(f"{approval.study.study}: {error}")
            return
        self._study = approval.study.study
        self._loading = loading
        self._told = now
        self.drive(self._steps(approval, loading, now))

    def _steps(self, approval: Approval, loading: Loading, now: float) -> Iterator[object]:
        """Load a study's data, unless no file of the data set changed since the last time."""
        digest = approval.study.digest
        name = approval.study.study
        before = self._ready.get(digest)
        stamp = files_digest(self.source)
        self._ready[digest] = stamp, now
        if before is not None and before[0] == stamp:
            loading.over = True
            return
        yield from loading.steps()
        try:
            persons = len(loading.data.lengths)
        except ConsortiumError as error:
            if isinstance(error, EngineError):
                self._ready[digest] = "", now  # though no file changes
            self.log(f"{name}: {error}")
        else:
            self.log(f"{name}: ready for a run, with {persons} participants")


def files_digest(folder: Path) -> str:
    """Return the digest of the names, sizes and times of a loaded folder's files."""
    seen = hashlib.sha256()
    for home, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(home, name)
            try:
                status = path.stat()
            except OSError:  # gone meanwhile
                continue
            seen.update(
                f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(errors="replace")
            )
    return seen.hexdigest()
