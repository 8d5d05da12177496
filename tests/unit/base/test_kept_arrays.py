"""The user's caches: what can't be trusted is worked out again, in every one of them."""

import hashlib
import json
import multiprocessing
import os
import time
from collections import namedtuple
from copy import deepcopy
from functools import cache as cache_calls
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from consortium.base import kept_arrays as caches
from consortium.base.kept_arrays import cache_folder, kept_arrays
from consortium.space import grid, study_space
from consortium.space.grid import Grid, template_grid
from consortium.space.mesh import Hemisphere, Mesh
from consortium.space.study_space import Space, surface_places
from tests.support.surfaces import sphere

Cache = namedtuple("Cache", "ask made files")
EDGE = 9.0


_brain = cache_calls(grid._brain)


def _template(watch):
    watch(grid, "_brain", lambda *places: deepcopy(_brain(*places)))
    return lambda: (template_grid.__wrapped__(EDGE).mask,)


def _basis(watch):
    watch(study_space.KeptBasis, "at")
    mask = np.ones((6, 6, 6), dtype=bool)

    def ask():
        places = Space(Grid(mask, np.diag([8.0, 8.0, 8.0, 1.0]))).places
        basis = places.basis(places.coordinates, 30.0)
        return basis.centres, basis.factor, basis.for_series

    return ask


def _modes(watch):
    watch(study_space, "surface_modes")
    points, triangles = sphere(300)
    left = Hemisphere("L", points, triangles, np.ones(300, dtype=bool))

    def ask():
        study_space._side_modes.cache_clear()
        modes = surface_places(Mesh("fsaverage5", left, left)).modes
        return modes[0].values, modes[0].vectors, modes[0].anchors, np.array(modes[0].area)

    return ask


CACHES = {"template": (_template, 1), "basis": (_basis, 3), "modes": (_modes, 1)}


def test_these_are_all_caches():
    users = {grid.__name__, study_space.__name__, study_space.__name__}
    root = Path(__file__).parents[3]
    code = [
        path
        for name in ("consortium", "site_agent", "flows")
        for path in root.glob(f"{name}/**/*.py")
    ]
    found = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in code
        if "kept_arrays(" in path.read_text(encoding="utf-8")
    }
    assert found - {caches.__name__} == users


@pytest.fixture(params=sorted(CACHES))
def cache(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    made = []

    def watch(owner, name, true=None):
        true = true or getattr(owner, name)

        def counted(*args, **options):
            made.append(name)
            return true(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    maker, files = CACHES[request.param]
    yield Cache(maker(watch), made, files)
    study_space._side_modes.cache_clear()


def _same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _files():
    return sorted(cache_folder().glob("*.arrays"))


def test_it_is_made_once(cache):
    first = cache.ask()
    assert len(_files()) == cache.files
    before, cache.made[:] = [path.read_bytes() for path in _files()], []
    again = cache.ask()
    assert _same(first, again)
    assert not cache.made
    assert [path.read_bytes() for path in _files()] == before
    assert not [path for path in cache_folder().iterdir() if path not in _files()]


def _threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_blas_makes_it_on_one_thread_whoever_comes_first(tmp_path, monkeypatch):
    """Modes of one thread and of two differ in their last bits, and all share what is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with threadpool_limits(2, user_api="blas"):
        kept = kept_arrays("threads", "any", __file__, lambda: {"all": np.array([*_threads()])})
        assert _threads() == {2}
    assert kept["all"].tolist() == [1]


def _cut(content):
    return content[: len(content) // 2]


def _bit(content):
    return content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]


def _whole_but_false(content):
    """Another's file with a digest that is right."""
    length = int.from_bytes(content[32:64], "little")
    told = json.loads(content[64 : 64 + length])
    told["name"] = "0" * 64
    header = json.dumps(told).encode()
    rest = content[32:64] + header + content[64 + length :]
    return hashlib.sha256(rest).digest() + rest


def _other_shape(content):
    """Right in name and digest, and of arrays that can't be in it."""
    length = int.from_bytes(content[32:64], "little")
    told = json.loads(content[64 : 64 + length])
    told["arrays"] = [[name, kind, [1 << 40]] for name, kind, _ in told["arrays"]]
    header = json.dumps(told).encode()
    rest = len(header).to_bytes(32, "little") + header + content[64 + length :]
    return hashlib.sha256(rest).digest() + rest


@pytest.mark.parametrize(
    "spoil",
    [lambda _: b"", lambda _: b"x", _cut, _bit, _whole_but_false, _other_shape, lambda c: c * 2],
    ids=["empty", "short", "half", "bit", "foreign", "impossible", "twice"],
)
def test_what_is_damaged_or_foreign_is_made_again(cache, spoil):
    first = cache.ask()
    sound = [path.read_bytes() for path in _files()]
    for path, content in zip(_files(), sound, strict=True):
        path.unlink()
        path.write_bytes(spoil(content))
    cache.made.clear()
    assert _same(first, cache.ask())
    assert cache.made
    assert [path.read_bytes() for path in _files()] == sound


def test_another_users_file_is_not_taken(cache, monkeypatch):
    first = cache.ask()
    cache.made.clear()
    monkeypatch.setattr(os, "geteuid", lambda: _files()[0].stat().st_uid + 1)
    assert _same(first, cache.ask())
    assert cache.made


def test_a_pipe_with_a_files_name_is_not_waited_for(cache):
    first = cache.ask()
    for path in _files():
        path.unlink()
        os.mkfifo(path)
    cache.made.clear()
    assert _same(first, cache.ask())
    assert cache.made
    assert all(path.is_file() for path in _files())  # the pipe's place is the file's again


@pytest.mark.parametrize("place", ["a file", "no space"])
def test_where_nothing_can_be_kept_it_is_made_every_time(cache, place, tmp_path, monkeypatch):
    if place == "a file":
        (tmp_path / "caches").write_text("")
    else:
        disk = namedtuple("Disk", "free")(10)
        monkeypatch.setattr(caches.shutil, "disk_usage", lambda _: disk)
    first = cache.ask()
    cache.made.clear()
    assert _same(first, cache.ask())
    assert cache.made


def test_other_code_makes_it_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    code = tmp_path / "code.py"
    code.write_text("1")
    one = kept_arrays("some", "key", str(code), lambda: {"a": np.arange(3)})
    code.write_text("2")
    other = kept_arrays("some", "key", str(code), lambda: {"a": np.arange(4)})
    assert (len(one["a"]), len(other["a"])) == (3, 4)


def test_files_that_nobody_uses_make_room(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(caches, "_MOST_KEPT", 3500)

    def ask(key):
        return kept_arrays("some", key, __file__, lambda: {"a": np.zeros(100)})["a"]

    for key in ("one", "two"):
        ask(key)
        for path in _files():
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 100))
    ask("one")  # is used, and stays
    stray = cache_folder() / ".dead.part"
    stray.write_bytes(b"half")
    os.utime(stray, (time.time() - 4000,) * 2)
    ask("three")
    ask("four")
    assert sum(path.stat().st_size for path in _files()) <= 3500
    assert len(_files()) == 3
    assert not stray.exists()


def _write_often(seed):
    for turn in range(30):
        for path in _files():
            path.unlink(missing_ok=True)
        numbers = kept_arrays("some", "key", __file__, lambda: {"a": np.arange(50_000.0)})["a"]
        assert np.array_equal(numbers, np.arange(50_000.0)), (seed, turn)


def test_many_may_write_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(_write_often, range(4))
    assert len(_files()) <= 1
    assert not list(cache_folder().glob(".*.part"))


def _make_slowly(log):
    def make():
        with log.open("a") as file:
            file.write("made\n")
        time.sleep(0.5)
        return {"a": np.arange(5.0)}

    return kept_arrays("some", "key", __file__, make)["a"].sum()


@pytest.mark.parametrize("kept", [True, False])
def test_who_comes_while_it_is_made_waits_for_it(kept, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    log = tmp_path / "log"
    if not kept:
        (tmp_path / "caches").write_text("a file where a folder should be")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(_make_slowly, [log] * 3, chunksize=1) == [10.0] * 3
    assert log.read_text().count("made") == (1 if kept else 3)
    assert not list(cache_folder().glob("*.lock"))


def test_what_was_read_is_not_written_to(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    for _ in range(2):
        numbers = kept_arrays("some", "key", __file__, lambda: {"a": np.arange(3)})["a"]
    with pytest.raises(ValueError, match="read-only"):
        numbers[0] = 1
