"""What the centre waits for, written down for people: from whom, since when, until when."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.work import work_folder
from consortium.errors import OutputError

WAITING = "waiting.json"
_WORTH_TELLING = 1.0  # s; a healthy round is over before, and writes nothing


@dataclass(frozen=True)
class Waiting:
    """A wait."""

    step: str
    """What is awaited, such as ``round 7 (contribution)``."""
    since: float
    until: float
    """Unix times."""
    sites: Mapping[str, str]
    """The sites that are awaited, each with what else is known of it, which may be nothing."""
    deadlines: Mapping[str, float] = field(default_factory=dict)
    """Unix time until which each is awaited, where it is not ``until``."""


class WaitFile:
    """Keeps the current wait in the output folder.

    Parameters
    ----------
    folder : Path
        The output folder.
    wall : callable
        Unix time.
    """

    def __init__(self, folder: Path, wall: Callable[[], float]) -> None:
        self._path = work_folder(folder) / WAITING
        self._wall = wall
        self._listeners: list[Callable[[Waiting], None]] = []
        self._shown: Waiting | None = None

    def listen(self, listener: Callable[[Waiting], None]) -> None:
        """Have somebody hear of every wait that is written down."""
        self._listeners.append(listener)

    @property
    def shown(self) -> Waiting | None:
        """The wait that is written down now."""
        return self._shown

    def show(
        self,
        step: str,
        waited: float,
        left: float,
        sites: Mapping[str, str],
        lefts: Mapping[str, float] | None = None,
    ) -> None:
        """Write a wait down once it is worth telling, and whenever somebody else is awaited."""
        known = self._shown
        if waited < _WORTH_TELLING or (known and (known.step, known.sites) == (step, sites)):
            return
        now = self._wall()
        deadlines = {site: now + seconds for site, seconds in (lefts or {}).items()}
        self._shown = Waiting(step, now - waited, now + left, dict(sites), deadlines)
        write_bytes(self._path, json.dumps(asdict(self._shown)).encode())
        for listener in self._listeners:
            listener(self._shown)

    def clear(self) -> None:
        """Nobody is awaited; what an earlier process left goes, too.

        Raises OutputError if the note can't be removed.
        """
        self._shown = None
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"{self._path} can't be removed ({error.strerror}); check the folder's rights."
            ) from error


def read_waiting(folder: Path) -> Waiting | None:
    """Return what the centre of an output folder waits for, or None.

    Raises OutputError if the note is damaged.
    """
    path = work_folder(folder) / WAITING
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        sites = {str(site): str(note) for site, note in content["sites"].items()}
        deadlines = {str(site): float(at) for site, at in content.get("deadlines", {}).items()}
        since, until = float(content["since"]), float(content["until"])
        return Waiting(str(content["step"]), since, until, sites, deadlines)
    except FileNotFoundError:
        return None
    except DAMAGED as error:
        raise OutputError(f"{path} is damaged; remove it.") from error
