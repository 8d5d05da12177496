"""``python -m benchmarks.memory [PERSONS]``: a round over prepared blocks that are on disk.

Blocks of made-up persons lie in a site's cache, and a round's statistic streams over them, on one
worker and on two. Ratios are of one run, the engines taken in turn; memory is that of a process
which does one round. Then the cost of a person, part by part.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.secagg import Meeting
from benchmarks.timing import best, show
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query
from consortium.algorithms.over_persons import CHUNK
from consortium.kernels.moments import add_second_moment, packed_size
from consortium.kernels.projectors import leading_directions, reduce_series
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_moment
from consortium.privacy.noise import GaussianSampler
from consortium.space.grid import Grid
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.data.cache import BlockCache, block_key
from site_agent.data.survey import Run, Subject, Survey
from site_agent.engines.base import Engine, one_thread
from site_agent.engines.processes import Processes
from site_agent.engines.remote import RemoteEngine
from site_agent.engines.threads import Threads
from site_agent.images.series import SiteDataset

PERSONS, VOLUMES, REGIONS = 2_000, 200, 400
BOUND = Bound(0.5)
QUERIES = {
    "pca second moment": ("pca", Query("pca", "second_moment")),
    "group_ica projectors": (
        "group_ica",
        Query("", "projectors", {"directions": 20, "cutoff": 0.0, "global_signal": "keep"}),
    ),
}
ENGINES: dict[str, Callable[[], Engine]] = {
    "1 thread": partial(Threads, 1),
    "2 threads": partial(Threads, 2),
    "1 process": lambda: RemoteEngine("processes", partial(Processes, 1)),
    "2 processes": lambda: RemoteEngine("processes", partial(Processes, 2)),
}


def dataset(folder: Path, persons: int, engine: Engine) -> SiteDataset:
    """A site whose persons' blocks are prepared."""
    grid = Grid(np.ones((REGIONS, 1, 1), dtype=np.bool_), np.eye(4))
    data = SiteDataset(folder, DataSection(), Space(grid), "subject", folder / "cache", engine)
    subjects = tuple(
        Subject(f"{number:05}", (Run(folder / f"{number:05}"),)) for number in range(persons)
    )
    data.__dict__["survey"] = Survey(subjects, (VOLUMES,) * persons, ())
    return data


def prepare(folder: Path, persons: int) -> None:
    """Write everybody's block, of low rank and noise, as if it had been prepared."""
    data, draws = dataset(folder, persons, Threads()), np.random.default_rng(0)
    cache, networks = BlockCache(folder / "cache"), draws.standard_normal((REGIONS, 20))
    for subject in data.survey.subjects:
        subject.runs[0].bold.touch()
        courses = draws.standard_normal((20, VOLUMES))
        block = networks @ courses + draws.standard_normal((REGIONS, VOLUMES))
        block /= np.linalg.norm(block) / np.sqrt(VOLUMES)
        cache.store(block_key(subject, data.data, data.space.target), block.astype(np.float32))


def memory(folder: Path, persons: int, engine: str, query: str) -> tuple[float, float]:
    """Largest resident memory in MB of a round: the agent's, and that of its largest worker."""
    one_thread()
    data = dataset(folder, persons, ENGINES[engine]())
    answer(data, query)
    worker = max(data.engine.map(resident, range(8)))
    data.engine.close()
    return resident(0), worker


def resident(_number: int) -> float:
    """Largest resident memory of this process so far, in MB."""
    # Not getrusage's, which begins with what its parent held.
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return int(line.split()[1]) / 1024


def answer(data: SiteDataset, query: str) -> bytes:
    """A site's statistic."""
    algorithm, asked = QUERIES[query]
    return REGISTRY[algorithm].statistics[asked.statistic](data, asked, BOUND).tobytes()


def rounds(folder: Path, persons: int, repeats: int = 3) -> None:
    """A line for every statistic and engine; the best of several rounds, engines in turn."""
    one_thread()
    sites = {name: dataset(folder, persons, start()) for name, start in ENGINES.items()}
    rows, context = [], multiprocessing.get_context("spawn")
    for query in QUERIES:
        answers = {answer(data, query) for data in sites.values()}  # digests are compared once
        assert len(answers) == 1
        times: dict[str, list[float]] = {name: [] for name in sites}
        for _ in range(repeats):
            for name, data in sites.items():
                times[name].append(best(partial(answer, data, query), 1))
        for name in sites:
            alone = min(times["1 thread" if "thread" in name else "1 process"])
            warm = min(times[name])
            speed = f"{alone / warm:.2f}" if name.startswith("2") else ""
            with ProcessPoolExecutor(1, context) as pool:
                own, worker = pool.submit(memory, folder, persons, name, query).result()
            each = f"{1e3 * warm / persons:.2f}"
            rows.append([query, name, f"{warm:.1f}", each, speed, f"{own:.0f}", f"{worker:.0f}"])
    for data in sites.values():
        data.engine.close()
    columns = ["statistic", "engine", "s", "ms a person", "over 1", "agent MB", "worker MB"]
    title = f"{persons} persons x {VOLUMES} volumes x {REGIONS} regions, in chunks of {CHUNK}"
    show(f"{title}; all answers equal to the last bit", columns, rows)


def parts(folder: Path, persons: int) -> None:
    """Where a round's cost goes, on one worker: by person, and by round."""
    data = dataset(folder, min(persons, 200), Threads())
    some, total = len(data.lengths), np.zeros((REGIONS, REGIONS), order="F")
    sum(1 for _ in data.blocks())  # digests are compared once
    disk = best(lambda: [block.max() for block in data.blocks()]) / some
    block = next(data.blocks()).copy()
    rows, scale = clip_moment(block, BOUND.norm)
    size, meeting = packed_size(REGIONS), Meeting(4, 20)
    meeting.set_up()
    numbers, vector = iter(range(1, 20)), np.ones(size, dtype=np.uint64)

    def told(name: str, seconds: float) -> list[str]:
        return [name, f"{1e3 * seconds:.3f}"]

    lines = [
        told("a person: disk, mapped and read once", disk),
        told("a person: pca, clip", best(lambda: clip_moment(block, BOUND.norm))),
        told("a person: pca, product", best(lambda: add_second_moment(total, rows, scale))),
        told("a person: group_ica, directions", best(lambda: _directions(block))),
        told("a round: noise", best(lambda: GaussianSampler(bytes(32)).draw(1 << 20, size))),
        told("a round: masks of 4 sites", best(lambda: meeting.round(next(numbers), vector))),
    ]
    show("Where it goes", ["part", "ms"], lines)


def _directions(block: np.ndarray) -> np.ndarray:
    return leading_directions(reduce_series(block, None, "keep"), 20)


def main(persons: int = PERSONS) -> None:
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), persons)
        rounds(Path(name), persons)
        one_thread()
        parts(Path(name), persons)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
