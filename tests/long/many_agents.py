"""``python -m tests.long.many_agents [SITES [ROUNDS]]``: a consortium of processes on one machine.

Every site is an agent with keys, ledger and data of its own, as a hospital would start it. They
idle for a while, carry one study out, and idle again: what an agent costs in each state is read
from the kernel's accounts.
"""

import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.latency import settle
from benchmarks.timing import show
from consortium.coordinator.demo.prepare import start_agent
from consortium.coordinator.run import run_study
from consortium.engine.clock import Clock

_QUIET = 45.0  # s without a run, after which rests are as long as they get
_COUNTED = 30.0  # s over which wake-ups are counted
_ROOM = 3 << 30  # bytes that the machine must have left


def wakes(pid: int) -> int:
    """How often a process's threads have gone to sleep of their own will."""
    found = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        (line,) = [x for x in status.read_text().splitlines() if x.startswith("voluntary")]
        found += int(line.split()[1])
    return found


def processor(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Megabytes of a process, what it shares divided among the sharers."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def room() -> int:
    """Bytes of memory that the machine can still give."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def middle(values: Sequence[float], form: str) -> str:
    """Median and greatest of a figure over all agents."""
    return f"{statistics.median(values):{form}} ({max(values):{form}})"


def main(sites: int = 64, rounds: int = 5) -> None:
    """Print what the agents cost and how long the study took."""
    root = Path("build/many-agents").resolve()
    shutil.rmtree(root, ignore_errors=True)
    place, running = settle(root, sites, rounds), []
    try:
        for number in range(sites):
            if room() < _ROOM:
                raise SystemExit(f"there is no room for more than {number} agents here")
            running.append(start_agent(place, f"site{number}", once=False))
        pids = [process.pid for process in running]
        logs = [place.site(f"site{number}") / "agent.log" for number in range(sites)]
        while not all("ready for a run" in log.read_text() for log in logs):
            time.sleep(1.0)
        started = [processor(pid) for pid in pids]
        time.sleep(_QUIET)
        idle, before = [memory(pid) for pid in pids], [wakes(pid) for pid in pids]
        used = [processor(pid) for pid in pids]
        time.sleep(_COUNTED)
        minute = 60 / _COUNTED
        woken = [minute * (wakes(p) - b) for p, b in zip(pids, before, strict=True)]
        spent = [1000 * minute * (processor(p) - u) for p, u in zip(pids, used, strict=True)]
        used, start = [processor(pid) for pid in pids], time.perf_counter()
        run_study(place.files, Clock(), Console(quiet=True))
        took = time.perf_counter() - start
        worked = [processor(p) - u for p, u in zip(pids, used, strict=True)]
        full = [memory(pid) for pid in pids]
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    records = sorted((place.files.out / "transcript").glob("round-*.json"))
    times = [path.stat().st_mtime for path in records]
    each = (times[-1] - times[0]) / (len(times) - 1)
    rows = [
        ["start to ready, processor", middle(started, ".1f") + " s"],
        ["idle, memory", middle(idle, ".0f") + " MB"],
        ["idle, wake-ups a minute", middle(woken, ".0f")],
        ["idle, processor a minute", middle(spent, ".0f") + " ms"],
        ["whole run, processor", middle(worked, ".2f") + " s"],
        ["after the run, memory", middle(full, ".0f") + " MB"],
        ["whole study, wall time", f"{took:.0f} s"],
        [f"of {len(times)} rounds, a round", f"{each:.2f} s"],
    ]
    show(f"{sites} agents, median (greatest)", ["what", "an agent"], rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
