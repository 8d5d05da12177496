"""Files of open cohorts: what was written is read, and a hostile file is refused."""

import hashlib
import io
import os
import zipfile

import numpy as np
import pytest

from consortium.algorithms.open_cohort import OpenDirections, OpenTable
from consortium.errors import DataError, TableError
from consortium.space.open_cohort import (
    FEWEST,
    CohortBasis,
    read_open_cohort,
    write_directions,
)

ROWS = "of these voxels"
BASIS = CohortBasis(ROWS, 30.0, "keep")
SIZE, KEPT = 12, 3
PARTS = "directions", "sites", "rows", "cutoff", "global_signal", "source"


def directions(persons=FEWEST, seed=0):
    generator = np.random.default_rng(seed)
    return [np.linalg.qr(generator.standard_normal((SIZE, KEPT)))[0] for _ in range(persons)]


def sites(persons=FEWEST):
    return [f"site {k % 4}" for k in range(persons)]


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "cohort.npz"
    write_directions(found, directions(), sites(), BASIS, "Example, CC0")
    return found


def parts_of(path):
    with np.load(path, allow_pickle=False) as kept:
        return {name: kept[name] for name in PARTS}


def rewrite(path, **changed):
    """Write the file with other parts; a part of None is missing."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(f"{name}.npy") for name in PARTS}
    for name, value in changed.items():
        if isinstance(value, bytes) or value is None:
            contents[name] = value
        else:
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=True)
            contents[name] = buffer.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(f"{name}.npy", content)


def test_directions_are_read_as_they_were_written(path):
    cohort = read_open_cohort(path, ROWS)
    assert isinstance(cohort, OpenDirections)
    assert (cohort.persons, cohort.cutoff, cohort.global_signal) == (FEWEST, 30.0, "keep")
    assert cohort.source == "Example, CC0"
    assert cohort.sites.tolist() == sites()
    for own, written in zip(cohort.values, directions(), strict=True):
        assert np.allclose(own @ own.T, written @ written.T, atol=1e-6)
        assert np.allclose(own.T @ own, np.eye(KEPT), atol=1e-6)


def test_the_same_directions_make_the_same_file(path, tmp_path):
    other = tmp_path / "again.npz"
    write_directions(other, directions(), sites(), BASIS, "Example, CC0")
    assert other.read_bytes() == path.read_bytes()


def test_a_file_for_other_voxels_is_refused(path):
    with pytest.raises(DataError, match="made for others"):
        read_open_cohort(path, "of other voxels")


def header_of(shape, descr="<f4"):
    """Return the header of an array of any shape, followed by few bytes."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue() + b"\0" * 64


def header_with(text):
    """Return the header of an array with any text as its description."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "changed",
    [
        {"directions": np.full((FEWEST, SIZE, KEPT), np.nan, np.float32)},
        {"directions": np.zeros((FEWEST, SIZE, KEPT), np.float32)},
        {"directions": np.ones((FEWEST, SIZE), np.float32)},
        {"directions": np.ones((FEWEST, KEPT, SIZE), np.float32)},
        {"directions": np.array([{"an": "object"}], dtype=object)},
        {"directions": header_of((10**9, 10**6, 10))},
        {"directions": header_of((-1, SIZE, KEPT))},
        {"directions": b"no array"},
        {"directions": None},
        {"directions": np.array(directions(), np.float32) * np.float32(1e30)},
        {"directions": np.repeat(np.array(directions(), np.float32)[:, :, :1], KEPT, axis=2)},
        {"directions": np.array(directions(), np.float16)},
        {"directions": header_with(b"-" * 9000)},
        {"directions": header_with(b"{'descr': '<f4', 'fortran_order': (")},
        {"source": header_of((), "<U1")[:-64] + b"\xff" * 4},
        {"source": np.array(["two", "lines"])},
        {"cutoff": np.array(np.nan)},
        {"cutoff": np.array(np.inf)},
        {"cutoff": np.array(-1.0)},
        {"sites": np.array(["one"])},
        {"sites": np.arange(FEWEST)},
        {"cutoff": np.array("fine")},
        {"global_signal": np.array("maybe")},
        {"rows": None},
        {"source": None},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_file_that_is_not_whole_is_refused(path, changed):
    rewrite(path, **changed)
    with pytest.raises(DataError, match="Make it again"):
        read_open_cohort(path, ROWS)


def test_a_compressed_file_is_refused_before_it_is_unpacked(path):
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(f"{name}.npy") for name in PARTS}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    with pytest.raises(DataError, match="Make it again"):
        read_open_cohort(path, ROWS)


@pytest.mark.parametrize("start", [6, 8, 10], ids=["version", "flags", "method"])
def test_an_archive_with_other_headers_is_refused(path, start):
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + start
    content[place : place + 2] = b"\xff\xff"
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="Make it again"):
        read_open_cohort(path, ROWS)


def test_the_source_is_one_printable_line_for_hospitals(path):
    rewrite(path, source=np.array("ABIDE\x1b[2J\nThis run costs nothing." + "x" * 10_000))
    source = read_open_cohort(path, ROWS).source
    assert source.isprintable()
    assert len(source) == 500


@pytest.mark.parametrize("size", range(0, 4000, 371))
def test_a_file_that_is_cut_is_refused(path, size):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DataError):
        read_open_cohort(path, ROWS)


def test_too_few_participants_are_refused(tmp_path):
    path = tmp_path / "few.npz"
    write_directions(path, directions(FEWEST - 1), sites(FEWEST - 1), BASIS, "")
    with pytest.raises(DataError, match="at least 30"):
        read_open_cohort(path, ROWS)


@pytest.mark.parametrize("turn", [np.eye(KEPT), -np.eye(KEPT), np.eye(KEPT)[::-1]])
def test_a_copy_of_a_participant_is_refused(tmp_path, turn):
    path = tmp_path / "copies.npz"
    drawn = directions()
    drawn[7] = drawn[2] @ turn
    write_directions(path, drawn, sites(), BASIS, "")
    with pytest.raises(DataError, match="number 8 has the directions of number 3"):
        read_open_cohort(path, ROWS)


def test_a_table_is_read_with_all_its_cells(tmp_path):
    path = tmp_path / "cohort.tsv"
    rows = [f"{k}\t{20 + k}\t1.5" for k in range(FEWEST)]
    path.write_text("\n".join(["participant_id\tage\tthickness", *rows]) + "\n")
    cohort = read_open_cohort(path, ROWS)
    assert isinstance(cohort, OpenTable)
    assert cohort.names == ("participant_id", "age", "thickness")
    assert len(cohort.cells) == FEWEST
    assert cohort.cells[3] == ("3", "23", "1.5")
    assert cohort.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_table_in_utf_16_is_refused_and_a_mark_of_utf_8_is_not_a_cell(tmp_path):
    path = tmp_path / "cohort.csv"
    text = "\r\n".join(["participant_id,age", *(f"{k},{20 + k}" for k in range(FEWEST))])
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(TableError, match="UTF-8"):
        read_open_cohort(path, ROWS)
    path.write_bytes(text.encode("utf-8-sig"))
    cohort = read_open_cohort(path, ROWS)
    assert cohort.names == ("participant_id", "age")
    assert cohort.cells[-1] == (str(FEWEST - 1), str(19 + FEWEST))


@pytest.mark.parametrize("name", ["cohort.nii.gz", "cohort", "cohort.npy"])
def test_another_kind_of_file_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(DataError, match=r"analysis\.open"):
        read_open_cohort(tmp_path / name, ROWS)


def test_a_missing_file_or_a_folder_is_refused(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    for name in ("missing.npz", "folder.npz"):
        with pytest.raises(DataError):
            read_open_cohort(tmp_path / name, ROWS)


def test_a_table_that_would_fill_the_memory_is_refused_by_its_size(tmp_path):
    path = tmp_path / "cohort.tsv"
    path.touch()
    os.truncate(path, 100_000_001)
    with pytest.raises(DataError, match="at most 100,000,000 bytes"):
        read_open_cohort(path, ROWS)
