"""Prefect's makers hear nothing of its use here: fresh home, a terminal, and no way out."""

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from site_agent.config import SiteConfig
from tests.support.forgery import settle
from tests.support.local_consortium import STUDY
from tests.support.prefect_server import Server

NO_WAY_OUT = """
import sys

def look(event, told):
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = told[0]
    elif event == "socket.connect" and isinstance(told[1], tuple):
        host = told[1][0]
    else:
        return
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name not in ("127.0.0.1", "::1", "localhost", "None"):
        with open({tried!r}, "a") as file:
            print(event, name, file=file)
        raise OSError("no network")

sys.addaudithook(look)
"""
"""Lets no process look up or reach another machine, and writes down which it wanted to."""


DONE = {"start": "nothing to do for 1 s", "run": "not there", "deploy": "no standing approval"}
"""What each command comes to, once it has used Prefect."""


def _words(place: DemoFolders, command: str) -> list[str]:
    files = place.files
    centre = ["--roster", files.roster, "--exchange", files.exchange, "--keys", files.keys]
    study = [files.study, *centre, "--out", files.out]
    words: dict[str, list[object]] = {
        "start": ["site_agent", "start", "--once", "--idle", 1, "-f", place.site("north")],
        "run": ["consortium", "run", *study],
        "deploy": ["consortium", "deploy", *study, "--cron", "0 0 1 1 *", "--dry-run"],
    }
    return [str(word) for word in words[command]]


def _at_a_terminal(words: list[str], environment: dict[str, str]) -> str:
    """Run a module with a terminal of its own; returns what was shown there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", *words], env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the other end is closed
            while more := os.read(ours, 4096):
                shown += more
        process.wait(60)
    os.close(ours)
    return shown.decode(errors="replace")


@pytest.mark.parametrize("command", list(DONE))
def test_nothing_is_told_to_prefects_makers(command: str, tmp_path: Path, server: Server) -> None:
    place = settle(tmp_path / "place", text=STUDY.replace("join: 4", "join: 1"))
    folder = place.site("north")
    SiteConfig.load(folder).model_copy(update={"prefect": True}).save(folder)
    home, hook, tried = tmp_path / "home", tmp_path / "hook", tmp_path / "tried"
    home.mkdir()
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(NO_WAY_OUT.format(tried=str(tried)))
    environment = {"HOME": str(home), "PYTHONPATH": str(hook), "TERM": "dumb"}
    environment |= {"PATH": os.environ["PATH"], "PREFECT_API_URL": server.url}
    shown = _at_a_terminal(_words(place, command), environment)
    assert DONE[command] in shown, shown
    assert "telemetry" not in shown.lower(), shown
    assert list(home.rglob(".sdk_telemetry")) == []
    assert not tried.exists(), tried.read_text()
