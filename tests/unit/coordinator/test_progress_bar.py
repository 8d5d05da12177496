"""Whom a centre waits for: live on a terminal, once and in one line elsewhere."""

import io
import time
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from consortium.base.formatting import moment
from consortium.coordinator.progress_bar import (
    _LONGEST_RUN,
    RoundsBar,
    _TimeLeft,
    tell_plainly,
    waiting_lines,
)
from consortium.engine.clock import WaitFile, Waiting

WAITING = Waiting(
    "round 3 (contribution)",
    1000.0,
    1060.0,
    {"north": "", "west": "loading its data"},
    {"west": 1600.0},
)


def test_each_site_has_its_own_deadline() -> None:
    assert waiting_lines(WAITING, 1030.4) == [
        "round 3 (contribution): waiting for",
        f"  north: until {moment(1060.0)}, 30 s left",
        f"  west, loading its data: until {moment(1600.0)}, 570 s left",
    ]
    late = waiting_lines(WAITING, 5000.0)
    assert all("0 s left" in line for line in late[1:])


def test_a_hundred_sites_do_not_fill_the_terminal() -> None:
    many = Waiting("set-up (present)", 0, 9, {f"s{n}": "" for n in range(100)})
    lines = waiting_lines(many, 1.0)
    assert len(lines) == 14
    assert lines[-1] == "  and 88 more"


def test_a_terminal_shows_it_live_and_takes_it_away(tmp_path: Path) -> None:
    said = io.StringIO()
    console = Console(file=said, force_terminal=True, width=100)
    notes = WaitFile(tmp_path, time.time)
    with RoundsBar(console, tmp_path) as bar:
        bar(2, 7)
        notes.show("round 3 (contribution)", 2.0, 90.0, {"north": "", "west": "[red]\x1b[2J"})
        _await(said, "waiting for")
        text = said.getvalue()
        assert "north: until" in text
        assert "s left" in text
        assert "[red]" in text  # a site's words are no markup, and drive no terminal
        assert "\x1b[2J" not in text
        notes.clear()
        time.sleep(0.6)
        said.seek(0)
        said.truncate()
        time.sleep(0.6)
        assert "waiting for" not in said.getvalue()
    tell_plainly(console, WAITING)
    assert "waiting for" not in said.getvalue()


def test_a_log_has_one_line_for_each_wait(tmp_path: Path) -> None:
    said = io.StringIO()
    console = Console(file=said, width=40)
    notes = WaitFile(tmp_path, lambda: 1000.0)
    notes.listen(lambda waiting: tell_plainly(console, waiting))
    with RoundsBar(console, tmp_path):
        for waited in (0.5, 2.0, 3.0, 4.0):
            notes.show("round 3 (unmasking)", waited, 60.0, {"north": "", "west": "loading"})
    lines = [line for line in said.getvalue().splitlines() if "waiting" in line]
    until = moment(1060.0)
    assert lines == [
        f"round 3 (unmasking): waiting for north (until {until}), west (loading, until {until})"
    ]


def _await(said: io.StringIO, word: str) -> None:
    deadline = time.monotonic() + 10
    while word not in said.getvalue():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_time_left_is_estimated_from_the_rounds_of_this_start() -> None:
    now = [0.0]
    column = _TimeLeft()
    with Progress(column, get_time=lambda: now[0], speed_estimate_period=_LONGEST_RUN) as progress:
        task = progress.add_task("rounds", total=10)
        progress.update(task, completed=4)  # of an earlier start, in no time
        assert column.render(progress.tasks[0]).plain == ""
        for done in (5, 6):
            now[0] += 90.0
            progress.update(task, completed=done)
        assert column.render(progress.tasks[0]).plain == "about 0:06:00 left"
        progress.update(task, completed=10)
        assert column.render(progress.tasks[0]).plain == ""
