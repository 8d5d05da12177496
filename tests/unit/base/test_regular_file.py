"""Only what is a regular file is opened, and what it unpacks to is counted without keeping it."""

import os
import socket
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.base.regular_file import regular, sizes_unpacked, text_of
from consortium.errors import DataError


def test_a_file_and_a_link_to_one_are_regular(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"")
    link.symlink_to(path)
    assert (regular(path), regular(link)) == (path, link)


def test_pipes_folders_sockets_and_devices_are_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in (tmp_path, *tmp_path.iterdir()):
            for act in (regular, text_of):
                with pytest.raises(DataError, match=f"^{path} is not a regular file"):
                    act(path)


def test_what_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        regular(tmp_path / "a")


def test_a_text_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfabc")
    assert text_of(tmp_path / "a", 6) == "abc"
    with pytest.raises(DataError, match="has more than 5 bytes"):
        text_of(tmp_path / "a", 5)


@given(st.binary(), st.integers(0, 3 << 20))
def test_sizes_add_up_to_what_was_packed(data: bytes, zeros: int) -> None:
    whole = data + bytes(zeros)
    assert sum(sizes_unpacked(zlib.compress(whole))) == len(whole)


def test_what_is_not_packed_is_an_error() -> None:
    with pytest.raises(zlib.error):
        list(sizes_unpacked(b"not packed"))
