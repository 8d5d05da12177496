"""Every hospital's agent as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from consortium.coordinator.demo.layout import DemoFolders
from consortium.study.spec import Study


@contextmanager
def agents(place: DemoFolders, study: Study) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Run every site's agent as a process for the duration; their logs are in their folders."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in study.sites:
            running[name] = start_agent(place, name)
        yield running
        for process in running.values():
            process.wait(timeout=60)
    finally:
        for process in running.values():
            process.terminate()
            process.wait()


@contextmanager
def agents_at_work(place: DemoFolders, sites: Sequence[str]) -> Iterator[None]:
    """Keep every site's agent at work for the duration, whatever studies come."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        running += [start_agent(place, name, once=False) for name in sites]
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def start_agent(place: DemoFolders, name: str, *, once: bool = True) -> subprocess.Popen[bytes]:
    """Start one hospital's agent; it stops after one run, or at the signal."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    mode = ["--once"] if once else []
    with (place.site(name) / "agent.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "site_agent", "start", *mode, "--folder", place.site(name)],
            stdout=log,
            stderr=log,
            env=os.environ | threads,
        )
