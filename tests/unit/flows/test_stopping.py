"""A centre inside a Prefect flow ends at once, too, in one line and without a traceback."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from consortium.base.work import work_folder
from tests.support.forgery import settle
from tests.support.local_consortium import SITES, STUDY
from tests.support.patience import PATIENCE
from tests.support.prefect_server import Server

WAITS = STUDY.replace("join: 4", "join: 400")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_centre_that_is_stopped_while_it_waits_says_one_line(
    by: signal.Signals, tmp_path: Path, server: Server
) -> None:
    files = settle(tmp_path / "place", text=WAITS).files
    words = ["run", files.study, "--roster", files.roster, "--exchange", files.exchange]
    words += ["--keys", files.keys, "--out", files.out]
    program = "from consortium.coordinator.cli import main; main()"
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, words)],
            stdout=said,
            stderr=subprocess.STDOUT,
            env=server.environment(),
        )
    deadline = time.monotonic() + PATIENCE
    waiting = work_folder(files.out) / "waiting.json"
    while not waiting.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert waiting.exists(), (tmp_path / "said").read_text()
    process.send_signal(by)
    assert process.wait(timeout=PATIENCE) == 128 + by
    text = (tmp_path / "said").read_text()
    assert "consortium: stopped; the same command continues." in text
    assert "Traceback" not in text
    lines = [line for line in text.splitlines() if "waiting for" in line]
    assert len(lines) == 1  # no terminal: once, and in one line
    assert all(f"{site} (" in lines[0] for site in SITES), lines
    assert "whose approval does not cover this run" in lines[0]
