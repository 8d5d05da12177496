"""Ctrl-C and SIGTERM end either program at once, in one line and without a traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.forgery import settle
from tests.support.patience import PATIENCE

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def _ended(module: str, *words: object, by: signal.Signals, once: str) -> tuple[int, str, float]:
    """Exit code, what was said after ``once`` was, and the seconds that the end took."""
    command = [sys.executable, "-c", f"from {module} import main; main()", *map(str, words)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environment.pop("PREFECT_API_URL", None)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    assert process.stdout is not None
    for line in process.stdout:
        if once in line:
            break
    time.sleep(0.3)
    start = time.monotonic()
    process.send_signal(by)
    rest = process.communicate(timeout=PATIENCE)[0]
    return process.returncode, rest, time.monotonic() - start


@pytest.mark.parametrize("by", SIGNALS)
def test_an_agent_that_is_stopped_says_one_line(by: signal.Signals, tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    folder = place.site("north")
    code, said, took = _ended("site_agent.cli", "start", "-f", folder, by=by, once="at work")
    assert code == 128 + by
    assert said.splitlines()[-1] == "site-agent: stopped; the same command continues."
    assert "Traceback" not in said
    assert took < 2
