"""Cost of a round at a site of 10² to 10⁵ participants: processor time, memory, growth."""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.page import put
from benchmarks.prepared_site import Size, answer, dataset, prepare
from benchmarks.replication.drawing import IMAGES
from benchmarks.timing import show
from consortium.base.one_thread import one_thread
from site_agent.engines.base import Threads

MEMORY = 2 * 10**9
WORKERS = 2
CASES = (
    (Size(100, 200), "pca second moment", (100, 1_000, 10_000, 100_000)),
    (Size(100, 200), "ica rotation", (100, 1_000, 10_000, 100_000)),
    (Size(400, 500), "pca second moment", (100, 1_000, 10_000)),
    (Size(70_000, 200), "pca power", (20, 200, 2_000)),
)
PICTURE = IMAGES / "scaling.png"
TIMES = ("ms each, first", "later")


@dataclass(frozen=True)
class Taken:
    """What one process took: seconds of the processor for the first and the second round, MB."""

    first: float
    second: float
    resident: float
    allocated: float


def scaling(cases: Sequence[tuple[Size, str, tuple[int, ...]]] = CASES) -> None:
    """Print a table and draw the figure; every number of participants has a process of its own."""
    rows: list[list[str]] = []
    found = {}
    for size, name, numbers in cases:
        taken = [measured(size, name, persons) for persons in numbers]
        times, sizes = [t.second for t in taken], [t.resident for t in taken]
        found[f"{name}, {size}"] = numbers, times, sizes
        rows += [line(name, size, *each) for each in zip(numbers, taken, strict=True)]
        slopes = f"{exponent(numbers, times):.2f}", f"{exponent(numbers, sizes):.2f}"
        rows.append(["", "", "exponent", "", slopes[0], slopes[1], ""])
    columns = ["statistic", "size", "participants", *TIMES, "peak MB", "unmapped"]
    machine = f"{WORKERS} threads, memory {MEMORY / 1e9:.0f} GB"
    title = f"A round by participants; {machine}; processor time"
    show(title, columns, rows)
    put("persons", columns, rows)
    draw(found)


def line(name: str, size: Size, persons: int, taken: Taken) -> list[str]:
    """Return the cells of one number of participants."""
    each = (f"{1e3 * seconds / persons:.3f}" for seconds in (taken.first, taken.second))
    memory = (f"{megabytes:.0f}" for megabytes in (taken.resident, taken.allocated))
    return [name, str(size), f"{persons:,}", *each, *memory]


def measured(size: Size, name: str, persons: int) -> Taken:
    """Measure two rounds over a number of participants, in a process that does nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), size, persons)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(_rounds, Path(folder), size, name, persons).result()


def _rounds(folder: Path, size: Size, name: str, persons: int) -> Taken:
    one_thread()
    data = dataset(folder, size, persons, Threads(WORKERS, MEMORY))
    watch = _Watch()
    times = []
    for _ in range(2):
        start = time.process_time()
        answer(data, name)
        times.append(time.process_time() - start)
    return Taken(times[0], times[1], resident("VmHWM"), watch.end())


class _Watch(threading.Thread):
    """Largest memory of this process without mapped files, looked at every 20 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._over, self._most = threading.Event(), 0.0
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.02):
            self._most = max(self._most, resident("RssAnon"))

    def end(self) -> float:
        """Stop the observation, and return the largest number."""
        self._over.set()
        self.join()
        return self._most


def resident(kind: str) -> float:
    """Return this process's memory in MB, by Linux's name of its kind; VmHWM is the peak."""
    # Not getrusage's, which begins with what its parent held.
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if kind in x)
    return int(line.split()[1]) / 1024


def exponent(persons: Sequence[int], taken: Sequence[float]) -> float:
    """Return the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(persons), np.log(taken), 1)[0])


def draw(found: dict[str, tuple[tuple[int, ...], list[float], list[float]]]) -> None:
    """Draw docs/images/scaling.png."""
    figure = Figure(figsize=(10.2, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, (persons, times, sizes) in found.items():
        for axes, taken in ((left, times), (right, sizes)):
            label = f"{name}: exponent {exponent(persons, taken):.2f}"
            axes.loglog(persons, taken, "o-", label=label)
    for axes, title in ((left, "processor time of a round, s"), (right, "peak memory, MB")):
        axes.set(xlabel="participants at the site", title=title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="upper left")
        axes.margins(y=0.6 if axes is left else 0.05)
    right.set_ylim(100, 3000)
    right.axhline(MEMORY / 1e6, color="grey", linestyle=":")
    figure.savefig(PICTURE)
