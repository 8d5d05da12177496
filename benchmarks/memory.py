"""``python -m benchmarks.memory [PERSONS | scale]``: a round over prepared blocks on disk.

Blocks of simulated participants are in a site's cache, and a round's statistic streams over them,
on one worker and on two. Ratios are of one run, with the engines in turn; memory is that of a
process that does one round. Then the cost of a participant is measured part by part. With
``scale``, sites have 10² to 10⁵ participants, and docs/images/scaling.png is drawn.
"""

import multiprocessing
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg.blas import dsyrk

from benchmarks.by_persons import resident, scaling
from benchmarks.page import put
from benchmarks.prepared_site import BOUND, Size, answer, dataset, prepare
from benchmarks.secagg import Meeting
from benchmarks.timing import best, command, processor, show
from consortium.algorithms.over_persons import CHUNK
from consortium.base.one_thread import one_thread
from consortium.kernels.moments import add_person_moment, add_volume_moments, packed_size
from consortium.kernels.projectors import leading_directions, reduce_series
from consortium.privacy.noise import GaussianSampler
from site_agent.data.cache import _digest
from site_agent.engines.base import Engine, Threads
from site_agent.engines.remote import Processes, RemoteEngine

PERSONS, SIZE = 2_000, Size(400, 500)
NAMES = ("pca second moment", "group_ica projectors")
ENGINES: dict[str, Callable[[], Engine]] = {
    "1 thread": partial(Threads, 1),
    "2 threads": partial(Threads, 2),
    "1 process": lambda: RemoteEngine("processes", partial(Processes, 1)),
    "2 processes": lambda: RemoteEngine("processes", partial(Processes, 2)),
}


def memory(folder: Path, persons: int, engine: str, query: str) -> tuple[float, float]:
    """Return a round's largest resident memory in MB: the agent's, and its largest worker's."""
    one_thread()
    data = dataset(folder, SIZE, persons, ENGINES[engine]())
    answer(data, query)
    worker = max(data.engine.map(peak, range(8)))
    data.engine.close()
    return peak(0), worker


def peak(_number: int) -> float:
    """Return this process's largest resident memory so far, in MB."""
    return resident("VmHWM")


def rounds(folder: Path, persons: int, repeats: int = 3) -> None:
    """Return a line for every statistic and engine; the best of several rounds, engines in turn."""
    one_thread()
    sites = {name: dataset(folder, SIZE, persons, start()) for name, start in ENGINES.items()}
    rows, context = [], multiprocessing.get_context("spawn")
    for query in NAMES:
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
    columns = ["statistic", "engine", "s", "ms a participant", "over 1", "agent MB", "worker MB"]
    title = f"{persons} participants of {SIZE}, in chunks of {CHUNK}"
    show(f"{title}; all answers equal to the last bit", columns, rows)
    put("workers", columns, rows)


def parts(folder: Path, persons: int) -> None:
    """Return the processor time of a round's parts on one worker, by participant and by round."""
    data = dataset(folder, SIZE, min(persons, 200), Threads())
    some, total = len(data.lengths), np.zeros((SIZE.features,) * 2, order="F")
    sum(1 for _ in data.blocks())  # digests are compared once
    block = next(data.blocks()).copy(order="F")
    rows = block.astype(np.float64)
    size, meeting = packed_size(SIZE.features), Meeting(4, 20)
    meeting.set_up()
    numbers, vector = iter(range(1, 20)), np.ones(size, dtype=np.uint64)
    sampler = GaussianSampler(bytes(32))
    product = processor(lambda: dsyrk(1.0, rows, beta=1.0, c=total, overwrite_c=1), 9)
    volumes = processor(lambda: add_volume_moments(total, block, BOUND.norm), 9)
    person = processor(lambda: add_person_moment(total, block, BOUND.norm), 9)
    reading = processor(lambda: [block.max() for block in data.blocks()]) / some
    masks = processor(lambda: meeting.round(next(numbers), vector))
    lines = [
        ("a participant: disk, mapped and read", reading),
        (
            "a participant: disk, digest compared, once in a process",
            processor(lambda: _digest(block)),
        ),
        ("a participant: second moment, product only", product),
        ("a participant: second moment, additional clip of a participant", person - product),
        ("a participant: second moment, additional clip of every volume", volumes - product),
        ("a participant: group_ica, directions", processor(lambda: _directions(block))),
        ("a round: noise, one vector", processor(lambda: sampler.draw(1 << 20, size))),
        (
            "a round: masks, 4 sites and the centre",
            masks,
        ),
    ]
    title = f"Where it goes, {SIZE.features} regions x {SIZE.volumes} volumes, {size:,} numbers"
    cells = [[name, f"{1e3 * seconds:.3f}"] for name, seconds in lines]
    show(title, ["part", "ms"], cells)
    put("parts", [title, "ms"], cells)


def _directions(block: np.ndarray) -> np.ndarray:
    return leading_directions(reduce_series(block, None, "keep"), 20)


def main(asked: str = str(PERSONS)) -> None:
    if asked == "scale":
        scaling()
        return
    persons = int(asked)
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), SIZE, persons)
        rounds(Path(name), persons)
        one_thread()
        parts(Path(name), persons)


if __name__ == "__main__":
    command(main)
