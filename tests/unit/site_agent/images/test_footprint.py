"""What is counted as memory beside what is allocated, how much fits, and what lies on disk."""

import threading
import tracemalloc
from functools import partial

import numpy as np
import pytest

from consortium.algorithms.base import Query
from consortium.base.one_thread import one_thread
from consortium.errors import ConfigurationError
from consortium.privacy.bounds import Bound
from consortium.space.grid import Grid
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.engines.base import Threads, most_at_once
from site_agent.engines.remote import Processes, RemoteEngine
from site_agent.images import preprocess
from site_agent.images.preprocess import scratch_space
from site_agent.images.series import SiteDataset
from tests.support.cases import plan_of
from tests.support.tiny_images import AFFINE, save_subject, tiny_series

SHAPE, VOLUMES, PERSONS = (20, 20, 20), 120, 3
DATA = DataSection(standardize="voxel", detrend="linear")


@pytest.fixture(scope="module")
def bids(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "bids"
    for number in range(PERSONS):
        save_subject(folder, f"{number}", tiny_series(number, VOLUMES, SHAPE))
    return folder


def dataset(bids, cache, unit="subject", engine=None, data=DATA, edge=SHAPE[0]):
    mask = np.zeros(SHAPE, dtype=bool)
    mask[:edge, :edge, :edge] = True
    space = Space(Grid(mask, AFFINE))
    return SiteDataset(bids, data, space, unit, cache, engine or Threads())


def allocated(act):
    """Bytes that were in use at one time, more than before."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def questions(size, unit):
    """Every statistic that is a sum over chunks of persons."""
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((size, 3)))[0]
    unmix = {"whitening": basis, "unmixing": np.eye(3)}
    yield "ica", Query("", "power", {"basis": basis})
    yield "average", Query("", "mean_volume")
    yield "ica", Query("", "rotation", unmix)
    yield "ica", Query("", "maps", unmix)
    if size < 1000:
        yield "ica", Query("", "second_moment")
    if unit == "subject":
        yield "ica", Query("", "variances", {"basis": basis})
        if size < 1000:
            yield "group_ica", Query("", "projectors")


ANALYSES = {
    "average": {},
    "ica": {"components": 3, "score": "tanh"},
    "group_ica": {"components": 3, "basis": "voxels"},
}


def answer(data, algorithm, query):
    plan = plan_of(algorithm, ANALYSES[algorithm], [data])
    return plan.statistics[query.statistic](plan, data, query, Bound(0.3)).tobytes()


@pytest.mark.parametrize("smoothing", [None, 6.0])
def test_a_person_is_prepared_in_what_is_counted(bids, tmp_path, smoothing):
    data = dataset(bids, tmp_path, data=DATA.model_copy(update={"smoothing": smoothing}))
    counted = data.largest
    used = allocated(lambda: data.prepare(0))
    assert counted / 3 < used <= counted


@pytest.mark.parametrize("edge", [8, SHAPE[0]])
@pytest.mark.parametrize("unit", ["subject", "timepoint"])
def test_sums_stay_within_what_is_counted(bids, tmp_path, unit, edge):
    counted: list[int] = []

    class Watched(Threads):
        def map(self, work, items, each=0):
            counted.append(each)
            return super().map(work, items, each)

    data = dataset(bids, tmp_path, unit, Watched(), edge=edge)
    for number in range(PERSONS):
        data.prepare(number)
    block = 4 * data.features * VOLUMES  # mapped: it is counted, and not allocated
    for algorithm, query in questions(data.features, unit):
        counted.clear()
        used = allocated(lambda: answer(data, algorithm, query))  # noqa: B023 - called in this turn
        assert used + block <= max(counted), query.statistic


def test_answers_are_equal_to_the_last_bit_whatever_the_memory(bids, tmp_path, monkeypatch):
    one_thread()
    monkeypatch.setattr("consortium.algorithms.over_persons.CHUNK", 1)
    free = dataset(bids, tmp_path)
    short = dataset(bids, tmp_path, engine=Threads(4, 1000))
    for algorithm, query in questions(free.features, "subject"):
        assert answer(short, algorithm, query) == answer(free, algorithm, query)


@pytest.mark.parametrize("memory", [None, 100, 35, 10, 0])
def test_no_more_is_worked_on_at_a_time_than_fits(memory):
    at_work, most, lock = 0, 0, threading.Lock()
    together = threading.Event()

    def work(_number):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        together.wait(0.02)
        with lock:
            at_work -= 1

    list(Threads(4, memory).map(work, range(12), 10))
    assert most == {None: 4, 100: 4, 35: 3, 10: 1, 0: 1}[memory]


def test_what_waits_for_other_processes_is_bounded_too():
    sent, engine = [], RemoteEngine("processes", partial(Processes, 2), 30)
    results = engine.map(abs, (sent.append(n) or n for n in range(12)), 10)
    assert next(results) == 0
    assert len(sent) == 3
    assert list(results) == list(range(1, 12))
    engine.close()


def test_an_item_of_unknown_size_bounds_nothing():
    assert most_at_once(7, 100, 0) == 7


def test_what_is_kept_between_rounds_lies_on_disk_where_memory_is_short(tmp_path):
    room = scratch_space((20, 4000), 1_000_000, tmp_path / "cache")
    room[:] = np.arange(4000)
    assert isinstance(room.base, np.memmap)
    assert not list((tmp_path / "cache").iterdir())  # it has no name: nothing is left of it
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    np.testing.assert_array_equal(room[7], np.arange(4000, dtype=np.float32))
    for memory in (None, 10**9):
        assert scratch_space((20, 4000), memory, tmp_path / "none").base is None
    assert not (tmp_path / "none").exists()


def test_a_full_disk_is_told_before_anything_is_mapped(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preprocess.os, "posix_fallocate", full)
    with pytest.raises(ConfigurationError, match=r"has no 0 MB left .* Free space"):
        scratch_space((20, 4000), 1000, tmp_path)


def test_a_second_study_with_the_same_preparation_reads_prepared_blocks_only(
    bids, tmp_path, monkeypatch
):
    first = dataset(bids, tmp_path, "subject")
    assert list(first.load())[-1] == f"{PERSONS} of {PERSONS}"

    def fail(*_args):
        raise AssertionError("a scan was read")

    monkeypatch.setattr("site_agent.images.preprocess.iterate_volumes", fail)
    second = dataset(bids, tmp_path, "subject")  # asked other questions
    list(second.load())
    for algorithm, query in questions(second.features, "subject"):
        answer(second, algorithm, query)
    other = DATA.model_copy(update={"detrend": "constant"})
    with pytest.raises(AssertionError, match="a scan was read"):
        list(dataset(bids, tmp_path, data=other).load())
