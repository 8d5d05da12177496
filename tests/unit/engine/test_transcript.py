"""The record on disk: an inverse, crashes between two files, and damage."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from consortium.engine.kept_round import Kept
from consortium.engine.transcript import Transcript, write_bytes
from consortium.errors import OutputError


def a_round(number, seed=0):
    ring = np.random.default_rng(seed + number).integers(0, 2**64, 5, np.uint64)
    return Kept(number, "ica", "rotation", (0, 2), ring, bytes([number]) * 32)


def same(one, other):
    assert (one.number, one.stage, one.statistic) == (other.number, other.stage, other.statistic)
    assert (one.survivors, one.query) == (other.survivors, other.query)
    assert one.ring.dtype == other.ring.dtype
    assert np.array_equal(one.ring, other.ring)


@pytest.fixture
def folder(tmp_path):
    transcript = Transcript(tmp_path / "transcript")
    for number in (1, 2, 3):
        transcript.append(a_round(number))
    return tmp_path / "transcript"


@given(
    ring=st.sampled_from((np.uint32, np.uint64)).flatmap(lambda t: arrays(t, st.integers(0, 6))),
    survivors=st.lists(st.integers(0, 50)),
    stage=st.text(max_size=5),
)
def test_reading_undoes_writing(tmp_path_factory, ring, survivors, stage):
    folder = tmp_path_factory.mktemp("transcript")
    done = Kept(1, stage, "statistic", tuple(survivors), ring, bytes(32))
    Transcript(folder).append(done)
    (again,) = Transcript(folder).rounds()
    same(again, done)


def test_rounds_come_in_order_with_their_queries(folder):
    rounds = list(Transcript(folder).rounds())
    assert [r.number for r in rounds] == [1, 2, 3]
    for again, number in zip(rounds, (1, 2, 3), strict=True):
        same(again, a_round(number))
    assert json.loads((folder / "round-00002.json").read_text())["query"] == "02" * 32


def test_an_empty_folder_holds_no_rounds(tmp_path):
    assert list(Transcript(tmp_path / "new" / "transcript").rounds()) == []


def test_a_round_without_its_json_file_did_not_happen(folder):
    (folder / "round-00003.json").unlink()
    assert [r.number for r in Transcript(folder).rounds()] == [1, 2]
    Transcript(folder).append(a_round(3, seed=9))
    same(list(Transcript(folder).rounds())[2], a_round(3, seed=9))


@pytest.mark.parametrize("content", [b"", b"x", b"{}", b"[]", b"null", b'{"stage": 1}', b"\xff"])
def test_a_damaged_record_is_told(folder, content):
    (folder / "round-00002.json").write_bytes(content)
    rounds = Transcript(folder).rounds()
    assert next(rounds).number == 1
    with pytest.raises(OutputError, match="round-00002"):
        next(rounds)


@pytest.mark.parametrize("length", [0, 1, 8, 64, 130, None])
def test_a_damaged_or_missing_array_is_told(folder, length):
    array = folder / "round-00001.npy"
    if length is None:
        array.unlink()
    else:
        array.write_bytes(array.read_bytes()[:length])
    with pytest.raises(OutputError, match="round-00001"):
        next(Transcript(folder).rounds())


def test_numbers_that_are_no_integers_of_a_ring_are_told(folder):
    np.save(folder / "round-00001.npy", np.arange(5.0))
    with pytest.raises(OutputError, match="damaged"):
        next(Transcript(folder).rounds())


def test_no_pickle_is_opened(folder):
    np.save(folder / "round-00001.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(OutputError, match="damaged"):
        next(Transcript(folder).rounds())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "replace", full)
    with pytest.raises(OutputError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_folder_that_can_t_be_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="disk space and rights"):
        write_bytes(tmp_path / "file" / "below", b"")
