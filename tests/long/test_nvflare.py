"""A study over NVIDIA FLARE itself: its simulator carries what real agents and a centre say."""

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from consortium.coordinator.demo.layout import DemoFolders
from tests.long.platforms import (
    SECONDS,
    SITES,
    apart,
    around,
    centre_at_work,
    check_all_alike,
    check_no_participant,
    python_with,
    write_job,
)
from tests.support.forgery import ledger

MOST_TICKS = 60


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_with("nvflare==2.9.0", tmp_path_factory.mktemp("nvflare"), "CAPE_NVFLARE_PYTHON")


def carried(python: Path, place: DemoFolders) -> tuple[int, str, str]:
    """Run the study over the simulator: the centre's exit code, and what it and the platform said.

    The simulator ends by itself when the last message is with every party.
    """
    job, log = write_job("nvflare", place), place.root / "nvflare.log"
    words = [python.with_name("nvflare"), "simulator", job, "-w", place.root / "workspace"]
    words += ["-c", ",".join(SITES), "-t", str(len(SITES))]
    streams = {"stdout": log.open("w"), "stderr": subprocess.STDOUT}
    with centre_at_work(place) as centre:
        carrier = subprocess.Popen(
            [*map(str, words)],
            env=around(place),
            cwd=place.root,
            start_new_session=True,
            **streams,
        )
        try:
            said = follow(centre, carrier)
            assert carrier.wait(timeout=180) == 0, log.read_text()[-3000:]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(carrier.pid, signal.SIGKILL)  # it has children
    return centre.returncode, said, log.read_text(encoding="utf-8")


def follow(centre: subprocess.Popen[str], carrier: subprocess.Popen[bytes]) -> str:
    """Wait for the centre's end; a platform that fails is a failure at once."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            return centre.communicate(timeout=1)[0]
        except subprocess.TimeoutExpired:
            assert not carrier.poll(), "the platform ended with an error"
    raise AssertionError("the study takes too long")


def test_the_simulator_carries_a_study_that_can_be_shown(python: Path, tmp_path: Path) -> None:
    place = apart(tmp_path / "place")
    code, said, log = carried(python, place)
    assert code == 0, said
    moved = re.search(r"relay: (\d+) ticks, (\d+) names, (\d+) bytes", log)
    assert moved, log[-3000:]
    print(moved[0])
    check_all_alike(place)
    check_no_participant(place, place.root / "workspace")
    assert int(moved[1]) <= MOST_TICKS


def test_a_ledger_at_its_limit_refuses_though_the_platform_took_the_job(
    python: Path, tmp_path: Path
) -> None:
    place = apart(tmp_path / "place", most=1.0)
    code, said, log = carried(python, place)
    assert code == 1
    assert "north" in said
    assert re.search(r"relay: \d+ ticks", log)
    assert all(ledger(place, site) == [] for site in SITES)
