"""Engines in other processes: order, faults, and sums that are equal to the last bit."""

import gc
import os
import signal
import sys
import time
from functools import partial

import numpy as np
import pytest

from consortium.algorithms.base import Query
from consortium.algorithms.over_persons import CHUNK, sum_over_persons
from consortium.base.one_thread import one_thread
from consortium.errors import ConfigurationError, DataError, EngineError, SoftwareError
from consortium.privacy.bounds import Bound
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.config import SiteConfig
from site_agent.engines import remote
from site_agent.engines.base import Threads
from site_agent.engines.open import open_engine
from site_agent.engines.remote import LostError, Processes, RemoteEngine
from site_agent.images.series import SiteDataset
from tests.support.cases import plan_of
from tests.support.clusters import dask_cluster, free_port, ray_cluster
from tests.support.tiny_images import save_subject, tiny_grid, tiny_series

PERSONS = 2 * CHUNK + 3


@pytest.fixture(scope="module")
def processes():
    engine = RemoteEngine("processes", partial(Processes, 2))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def bids(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "bids"
    for number in range(PERSONS):
        save_subject(folder, f"{number:03}", tiny_series(number, volumes=24 + number % 3))
    return folder


def square(number):
    return number * number


def refuse(number):
    raise DataError(f"{number} can't be used. Put it right.")


def die_once(flag, number):
    """Kill the worker that is the first to come to number 3."""
    if number == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(_number):
    os.kill(os.getpid(), signal.SIGKILL)


def statistics(bids, cache, unit, engine):
    """Every statistic that is a sum over persons' series, as bytes."""
    grid = tiny_grid()
    data = SiteDataset(bids, DataSection(), Space(grid), unit, cache, engine)
    draws, size = np.random.default_rng(1), data.features
    basis = np.linalg.qr(draws.standard_normal((size, 3)))[0]
    arguments = {
        ("ica", "second_moment"): {},
        ("ica", "power"): {"basis": basis},
        ("average", "mean_volume"): {},
        ("ica", "maps"): {"whitening": basis, "unmixing": np.eye(3)},
        ("ica", "rotation"): {"whitening": basis, "unmixing": np.eye(3)},
    }
    if unit == "subject":
        arguments["group_ica", "projectors"] = {}
        arguments["ica", "variances"] = {"basis": basis}
    analyses = {"ica": {"components": 3, "score": "tanh"}, "average": {}}
    analyses["group_ica"] = {"components": 3, "basis": "voxels"}
    plans = {name: plan_of(name, analysis, [data]) for name, analysis in analyses.items()}
    return {
        f"{algorithm} {name}": plans[algorithm]
        .statistics[name](plans[algorithm], data, Query("", name, each), Bound(0.3))
        .tobytes()
        for (algorithm, name), each in arguments.items()
    }


@pytest.mark.parametrize("unit", ["subject", "timepoint"])
def test_sums_are_equal_to_the_last_bit_whatever_the_workers(bids, tmp_path, unit, processes):
    one_thread()
    first = statistics(bids, tmp_path / "a", unit, Threads(1))  # blocks are made meanwhile
    assert statistics(bids, tmp_path / "a", unit, Threads(1)) == first  # and mapped
    assert statistics(bids, tmp_path / "a", unit, Threads(3)) == first
    assert statistics(bids, tmp_path / "a", unit, processes) == first
    assert statistics(bids, tmp_path / "b", unit, processes) == first


def test_another_order_of_adding_changes_the_last_bits(bids, tmp_path, monkeypatch):
    """Or else the test before could not fail."""
    first = statistics(bids, tmp_path, "subject", Threads(1))
    monkeypatch.setattr("consortium.algorithms.over_persons.CHUNK", 3)
    other = statistics(bids, tmp_path, "subject", Threads(1))
    assert all(other[name] != first[name] for name in first if name != "ica rotation")


def test_results_and_errors_come_in_order(processes):
    assert list(processes.map(square, range(20))) == [n * n for n in range(20)]
    assert list(processes.map(square, [])) == []
    with pytest.raises(DataError, match=r"^0 can't be used. Put it right.$"):
        list(processes.map(refuse, range(5)))


def test_a_killed_worker_costs_nothing_but_time(processes, tmp_path):
    work = partial(die_once, tmp_path / "died")
    assert list(processes.map(work, range(8))) == [n * n for n in range(8)]
    assert (tmp_path / "died").exists()


def test_work_that_kills_every_worker_is_given_up_in_a_sentence(processes):
    with pytest.raises(EngineError, match=r"lost its workers 3 times .*[Nn]othing is charged"):
        list(processes.map(die, [0]))
    assert list(processes.map(square, [3])) == [9]


def test_a_worker_of_another_kind_is_refused(processes, monkeypatch):
    monkeypatch.setattr(remote, "one_thread", lambda: "OpenBLAS for a Prescott")
    with pytest.raises(EngineError, match="same software and processor"):
        list(processes.map(square, [1]))


class Counted:
    """Processes of which is known what was cancelled."""

    def __init__(self, cancelled):
        self._inside, self._cancelled = Processes(1), cancelled
        self.count, self.submit, self.collect = 1, self._inside.submit, self._inside.collect

    def cancel(self, handle):
        self._cancelled.append(handle)
        self._inside.cancel(handle)

    def close(self):
        self._inside.close()


def test_work_that_nobody_waits_for_is_cancelled():
    cancelled: list[object] = []
    engine = RemoteEngine("processes", partial(Counted, cancelled))
    assert next(engine.map(square, range(8))) == 0  # and the rest is let go of
    gc.collect()
    assert cancelled
    with pytest.raises(DataError):
        list(engine.map(refuse, range(8)))
    assert len(cancelled) > 1
    done = len(cancelled)
    assert list(engine.map(square, range(4))) == [0, 1, 4, 9]
    assert len(cancelled) == done
    engine.close()


def test_workers_that_are_not_there_are_not_looked_for_at_once_again(monkeypatch):
    now, looks = [0.0], []
    monkeypatch.setattr("site_agent.engines.remote.time.monotonic", lambda: now[0])

    def start():
        looks.append(now[0])
        now[0] += 10.0  # how long it took to find nobody
        raise LostError("nobody answers")

    engine = RemoteEngine("dask", start)
    for at in (0.0, 11.0, 39.0, 41.0):
        now[0] = at
        with pytest.raises(EngineError, match=r"can't be used now \(nobody answers\)"):
            list(engine.map(square, [1]))
    assert looks == [0.0, 41.0]


def raise_unsendable(_number):
    raise _UnsendableError


class _UnsendableError(Exception):
    """An error that can be pickled and not made again."""

    def __init__(self):
        super().__init__("a", "b")


def test_an_error_that_cannot_be_sent_is_told_by_its_name(processes):
    with pytest.raises(SoftwareError, match="_UnsendableError"):
        list(processes.map(raise_unsendable, [1]))


@pytest.mark.long
def test_a_dask_cluster_sums_alike_and_survives_a_worker(bids, tmp_path, monkeypatch):
    from site_agent.engines.dask import DaskCluster

    one_thread()
    with dask_cluster(tmp_path / "dask") as address:
        engine = RemoteEngine("dask", partial(DaskCluster, address))
        _check_cluster(engine, bids, tmp_path)
    with pytest.raises(EngineError, match="engine dask can't be used now"):
        list(engine.map(square, range(3)))
    monkeypatch.setattr(engine, "_again", 0.0)  # the rest between two looks is over
    with dask_cluster(tmp_path / "dask", int(address.rpartition(":")[2])):
        assert list(engine.map(square, range(3))) == [0, 1, 4]
    engine.close()


@pytest.mark.long
def test_a_ray_cluster_sums_alike_and_survives_a_worker(bids, tmp_path):
    from site_agent.engines.ray import RayCluster

    one_thread()
    with ray_cluster() as address:
        engine = RemoteEngine("ray", partial(RayCluster, address))
        _check_cluster(engine, bids, tmp_path)
    with pytest.raises(EngineError, match="engine ray"):
        list(engine.map(square, range(3)))
    engine.close()


def _check_cluster(engine, bids, folder):
    assert list(engine.map(square, range(20))) == [n * n for n in range(20)]
    for unit in ("subject", "timepoint"):
        here = statistics(bids, folder / "here", unit, Threads(1))
        assert statistics(bids, folder / "there", unit, engine) == here
    work = partial(die_once, folder / "died")
    assert list(engine.map(work, range(8))) == [n * n for n in range(8)]
    assert (folder / "died").exists()
    with pytest.raises(DataError, match="can't be used"):
        list(engine.map(refuse, [0]))
    with pytest.raises(EngineError, match="nothing is charged"):
        list(engine.map(die, [0]))


def test_a_cluster_that_is_not_there_is_told_in_a_sentence():
    pytest.importorskip("distributed")
    from site_agent.engines import dask

    engine = RemoteEngine("dask", partial(dask.DaskCluster, f"tcp://127.0.0.1:{free_port()}"))
    begin = time.monotonic()
    with pytest.raises(EngineError, match=r"can't be used now .* the agent tries again"):
        list(engine.map(square, [1]))
    assert time.monotonic() - begin < 300


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    config = SiteConfig.create("east", tmp_path, "mail").model_copy(
        update={"engine": "dask", "engine_address": "tcp://here:1"}
    )
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "site_agent.engines.dask", raising=False)
    with pytest.raises(ConfigurationError, match=r"Install cape-consortium\[dask\]"):
        open_engine(config)


def test_a_part_that_is_no_sum_is_refused(bids, tmp_path):
    data = SiteDataset(bids, DataSection(), Space(tiny_grid()), "subject", tmp_path, Threads(1))
    for made in (np.zeros(3), np.zeros(2, np.float32), np.array([1.0, np.nan]), None):
        with pytest.raises(SoftwareError, match="finite numbers"):
            sum_over_persons(data, lambda _blocks, made=made: made, (2,))
