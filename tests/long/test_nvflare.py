"""A study over NVIDIA FLARE itself: its simulator carries what real agents and a centre say."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from tests.long.platforms import (
    SECONDS,
    SITES,
    apart,
    around,
    centre_at_work,
    check_all_alike,
    check_no_participant,
    follow,
    python_with,
    write_job,
)
from tests.support.forgery import ledger

MOST_TICKS = 60
MOVED = re.compile(r"relay: (\d+) ticks, (\d+) names, (\d+) bytes")


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
            env=around(place.root),
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


@contextmanager
def federation(python: Path, root: Path) -> Iterator[Callable[..., str]]:
    """Provision a server and clients with certificates, each a process; lends its commands."""
    around_it = around(root) | {
        "HOME": str(root), "NVFLARE_POC_WORKSPACE": str(root / "workspace"),
        "PATH": f"{python.parent}:/usr/bin:/bin",
    }  # fmt: skip

    def type_(*words: object) -> str:
        with (root / "typed.log").open("a+") as log:  # a server holds the streams it is given
            begins = log.tell()
            line = [python.with_name("nvflare"), *map(str, words)]
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            done = subprocess.run(line, env=around_it, cwd=root, timeout=300, **streams)
            log.seek(begins)
            said = log.read()
        assert done.returncode == 0, said
        return said

    type_("poc", "prepare", "--force", "-c", *SITES)
    try:
        type_("poc", "start", "--timeout", 180)
        yield type_
    finally:
        type_("poc", "stop")


def test_a_provisioned_federation_carries_a_study_that_can_be_shown(
    python: Path, tmp_path: Path
) -> None:
    place = apart(tmp_path / "place")
    job = write_job("nvflare", place)
    with federation(python, place.root) as type_, centre_at_work(place) as centre:
        begun = time.monotonic()
        type_("job", "submit", "-j", job)
        said, _ = centre.communicate(timeout=SECONDS)
        seconds = time.monotonic() - begun
        assert centre.returncode == 0, said
        moved = await_summary(place.root / "workspace")
        check_no_participant(place, place.root / "workspace")
    print(moved[0], f"{seconds:.0f} s")
    check_all_alike(place)
    assert int(moved[1]) <= MOST_TICKS


def await_summary(workspace: Path) -> re.Match[str]:
    """Wait until the server says what was moved."""
    end = time.monotonic() + 180
    while time.monotonic() < end:
        for log in workspace.rglob("poc_console.log"):
            if moved := MOVED.search(log.read_text(encoding="utf-8")):
                return moved
        time.sleep(0.5)
    raise AssertionError("the job does not end")


def test_the_simulator_carries_a_study_that_can_be_shown(python: Path, tmp_path: Path) -> None:
    place = apart(tmp_path / "place")
    code, said, log = carried(python, place)
    assert code == 0, said
    moved = MOVED.search(log)
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
