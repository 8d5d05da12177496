"""The cache of blocks: what it keeps, what it makes again, and who may read it."""

import ast
import os
import stat

import numpy as np
import pytest

from consortium.errors import ConfigurationError, DataError
from consortium.space.atlas import Target
from consortium.space.grid import Grid
from consortium.study.data_section import DataSection
from site_agent.data.cache import BlockCache, block_key
from site_agent.data.survey import RecordingRun, Subject
from tests.support.tiny_images import save_subject, tiny_grid, tiny_series

SHAPE = (7, 5)


class Maker:
    """Makes the same block and counts how often."""

    def __init__(self) -> None:
        self.calls = 0
        self.block = np.asfortranarray(np.arange(35, dtype=np.float32).reshape(SHAPE))

    def __call__(self) -> np.ndarray:
        self.calls += 1
        return self.block


@pytest.fixture
def cache(tmp_path) -> BlockCache:
    return BlockCache(tmp_path / "cache")


def test_a_block_is_made_once_and_comes_back_equal(cache):
    make = Maker()
    for _ in range(3):
        block = cache.get("key", SHAPE, make)
        np.testing.assert_array_equal(block, make.block)
        assert block.flags.f_contiguous
    assert make.calls == 1
    np.testing.assert_array_equal(np.load(cache.folder / "key.npy"), make.block)


@pytest.mark.parametrize("shape", [(7, 5), (1, 5), (7, 1), (1, 1)])
def test_a_block_is_read_without_a_syntax_tree(cache, shape, monkeypatch):
    """To build one in threads fails up to CPython 3.11.7, and NumPy's reader does."""
    block = np.ones(shape, np.float32)
    cache.store("key", block)
    np.testing.assert_array_equal(np.load(cache.folder / "key.npy"), block)

    def build(*_):
        raise SystemError("AST constructor recursion depth mismatch")

    with monkeypatch.context() as patch:
        patch.setattr(ast, "parse", build)
        found = cache.find("key", shape)
    np.testing.assert_array_equal(found, block)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "header", "longer", "other shape"])
def test_a_damaged_file_is_made_again(cache, damage):
    make = Maker()
    cache.get("key", SHAPE, make)
    path = cache.folder / "key.npy"
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-60] ^= 1
    elif damage == "cut":
        content = content[:-1]
    elif damage == "empty":
        content = bytearray()
    elif damage == "header":
        content[:80] = b"x" * 80
    elif damage == "longer":
        content += b"x"
    else:
        content = bytearray(bytes(content).replace(b"(7, 5)", b"(5, 7)"))
    path.write_bytes(content)
    np.testing.assert_array_equal(cache.get("key", SHAPE, make), make.block)
    assert make.calls == 2
    cache.get("key", SHAPE, make)
    assert make.calls == 2


def test_a_stored_block_is_mapped_and_its_digest_compared_once(cache, monkeypatch):
    make, compared = Maker(), []
    cache.get("key", SHAPE, make)
    from site_agent.data import cache as module

    digest = module._digest
    monkeypatch.setattr(module, "_digest", lambda block: compared.append(1) or digest(block))
    blocks = [cache.get("key", SHAPE, make) for _ in range(3)]
    assert len(compared) == 1
    assert not blocks[-1].flags.writeable
    os.utime(cache.folder / "key.npy", ns=(1, 1))
    cache.get("key", SHAPE, make)
    assert (len(compared), make.calls) == (2, 1)


def test_nobody_else_can_read_and_no_half_file_stays(cache):
    cache.get("key", SHAPE, Maker())
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache.folder / "key.npy").stat().st_mode) == 0o600
    assert [path.name for path in cache.folder.iterdir()] == ["key.npy"]


def test_a_maker_that_fails_leaves_nothing(cache):
    def fails():
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        cache.get("key", SHAPE, fails)
    assert not cache.folder.exists() or not list(cache.folder.iterdir())


def test_another_length_than_counted_is_refused(cache):
    with pytest.raises(DataError, match="5 volumes, 6 when"):
        cache.get("key", (7, 6), Maker())


def test_a_folder_that_can_not_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file/cache"):
        BlockCache(tmp_path / "file" / "cache").get("key", SHAPE, Maker())


def test_key_depends_on_all_that_the_block_depends_on(tmp_path):
    grid = tiny_grid()
    bold = save_subject(tmp_path, "secret", tiny_series())
    table = tmp_path / "table.tsv"
    table.write_text("a\n")
    subject = Subject("secret", (RecordingRun(bold, table),))
    data = DataSection()
    first = block_key(subject, data, Target(grid))
    keys = {first, block_key(subject, DataSection(smoothing=4), Target(grid))}
    keys.add(block_key(subject, data, Target(Grid(~grid.mask, grid.affine))))
    keys.add(block_key(Subject("secret", (RecordingRun(bold),)), data, Target(grid)))
    os.utime(table, ns=(1, 1))
    keys.add(block_key(subject, data, Target(grid)))
    os.utime(bold, ns=(1, 1))
    keys.add(block_key(subject, data, Target(grid)))
    assert len(keys) == 6
    assert block_key(subject, data, Target(grid)) == block_key(subject, data, Target(tiny_grid()))
    assert all("secret" not in key for key in keys)
    bold.unlink()
    with pytest.raises(DataError, match="gone"):
        block_key(subject, data, Target(grid))


def test_a_touched_json_file_makes_a_new_key_and_a_choice_does_not(tmp_path):
    bold, target = save_subject(tmp_path, "01", tiny_series()), Target(tiny_grid())
    above = tmp_path / "task-rest_bold.json"
    above.write_text('{"RepetitionTime": 2}')
    subject = Subject("01", (RecordingRun(bold, sidecars=(above, tmp_path / "gone.json")),))
    first = block_key(subject, DataSection(), target)
    chosen = DataSection(description="preproc", entities={"res": "2"})
    assert block_key(subject, chosen, target) == first
    os.utime(above, ns=(1, 1))
    assert block_key(subject, DataSection(), target) != first


def test_a_link_to_another_file_of_equal_size_and_time_makes_a_new_key(tmp_path):
    """Archives and git-annex give many files one time of modification."""
    link, target = tmp_path / "sub-01" / "x_bold.nii", Target(tiny_grid())
    link.parent.mkdir()
    keys = set()
    for name in ("a.nii", "b.nii"):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (1e9, 1e9))
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        keys.add(block_key(Subject("01", (RecordingRun(link),)), DataSection(), target))
    other = tmp_path / "c.nii"
    other.write_bytes(bytes(10))
    os.utime(other, (1e9, 1e9))
    other.replace(tmp_path / "b.nii")
    keys.add(block_key(Subject("01", (RecordingRun(link),)), DataSection(), target))
    assert len(keys) == 3
