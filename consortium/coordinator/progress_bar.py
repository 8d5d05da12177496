"""Progress bars on a terminal: of a run with the awaited sites, and of reading participants."""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from consortium.base.formatting import moment
from consortium.engine.clock import Waiting, read_waiting
from consortium.errors import OutputError, printable

_LONGEST_RUN = 30 * 86_400.0  # s; the estimate is of all rounds, as one may take hours
_MOST_SITES = 12  # that are shown line by line


class RoundsBar:
    """A progress bar as a context; calling it sets it.

    Parameters
    ----------
    folder : Path, optional
        The output folder, where the centre writes down whom it waits for.
    """

    def __init__(self, console: Console, folder: Path | None = None) -> None:
        self._progress = _WithWaits(console, folder)
        self._task = self._progress.add_task("rounds", total=None)

    def __enter__(self) -> Callable[[int, int], None]:
        self._progress.__enter__()
        return lambda done, total: self._progress.update(self._task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self._progress.__exit__(None, None, None)


class PersonsBar:
    """A progress bar over participants in a terminal, as a context; calling it sets it."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task("participants", total=None)

    def __enter__(self) -> Callable[[int, int], None]:
        self._progress.__enter__()
        return lambda done, total: self._progress.update(self._task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self._progress.__exit__(None, None, None)


class _TimeLeft(ProgressColumn):
    """An estimate of the time left, from the time of the rounds of this start so far."""

    def render(self, task: Task) -> Text:
        """Return the estimate; empty before the second round and at the end."""
        left = task.time_remaining
        if not left:
            return Text("")
        return Text(f"about {timedelta(seconds=math.ceil(left))} left")


class _WithWaits(Progress):
    """The bar, and below it a line for each site that is awaited, with the seconds it has left."""

    def __init__(self, console: Console, folder: Path | None) -> None:
        self._folder = folder if console.is_terminal else None
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        super().__init__(
            *columns,
            TimeElapsedColumn(),
            _TimeLeft(),
            console=console,
            refresh_per_second=4,
            speed_estimate_period=_LONGEST_RUN,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar, and the sites for which the centre waits."""
        yield from super().get_renderables()
        if self._folder is None:
            return
        waiting = None
        with suppress(OutputError):  # damaged: reported where it is needed
            waiting = read_waiting(self._folder)
        if waiting is not None:
            yield from map(Text, waiting_lines(waiting, time.time()))


def waiting_lines(waiting: Waiting, now: float) -> list[str]:
    """State which sites are missing and until when, a line each.

    Parameters
    ----------
    now : float
        Unix time.
    """
    lines = [f"{printable(waiting.step)}: waiting for"]
    for site, note in list(waiting.sites.items())[:_MOST_SITES]:
        until = waiting.deadlines.get(site, waiting.until)
        more = f", {printable(note)}" if note else ""
        lines.append(f"  {site}{more}: until {moment(until)}, {max(until - now, 0):.0f} s left")
    if len(waiting.sites) > _MOST_SITES:
        lines.append(f"  and {len(waiting.sites) - _MOST_SITES} more")
    return lines


def tell_plainly(console: Console, waiting: Waiting) -> None:
    """Print a wait as a line where nothing can be shown live, in a log say."""
    if console.is_terminal:
        return
    sites = ", ".join(
        f"{site} ({f'{printable(note)}, ' if note else ''}until "
        f"{moment(waiting.deadlines.get(site, waiting.until))})"
        for site, note in waiting.sites.items()
    )
    line = f"{printable(waiting.step)}: waiting for {sites}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)
