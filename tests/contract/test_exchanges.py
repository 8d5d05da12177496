"""One suite for every exchange: written once, whole or not at all, within its own walls."""

import os
import resource
import stat
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ExchangeError, OversizedError
from consortium.exchange import DirectoryExchange
from consortium.exchange.base import DatedExchange, RemovableExchange, check_name

WORD = st.from_regex(r"[a-z0-9][a-z0-9-]{0,10}", fullmatch=True)
NAME = st.lists(WORD, min_size=1, max_size=6).map("/".join)
HOSTILE = [
    "",
    "/",
    "/etc/passwd",
    "..",
    "../escape",
    "runs/../../escape",
    "runs/./a",
    "runs//a",
    "runs/a/",
    ".hidden",
    "runs/.hidden",
    "-dash",
    "Upper",
    "runs/A",
    "white space",
    "line\n",
    "nul\0",
    "a\0b",
    "back\\slash",
    "c:drive",
    "tilde~",
    "dot.ted",
    "under_score",
    "ümlaut",
    "a/b/c/d/e/f/g",
    "a" * 301,
    "%2e%2e",
]


every_kind = pytest.mark.parametrize("kind", ["memory", "directory", "s3", "sftp"])


@pytest.fixture
def exchange(venue):
    return venue.open()


@every_kind
def test_what_was_put_is_got(exchange):
    exchange.put("runs/one/study", b"bytes")
    exchange.put("runs/one/empty", b"")
    assert exchange.get("runs/one/study", 5) == b"bytes"
    assert exchange.get("runs/one/empty", 0) == b""
    assert exchange.get("runs/one/other", 5) is None
    assert exchange.get("runs/one/study/below", 5) is None


@pytest.mark.parametrize("kind", ["directory", "s3", "sftp"])
def test_a_message_is_dated(exchange):
    assert isinstance(exchange, DatedExchange)
    assert exchange.stored_at("runs/one/study") is None
    exchange.put("runs/one/study", b"bytes")
    assert exchange.stored_at("runs/one/study") == pytest.approx(time.time(), abs=10)
    assert exchange.stored_at("runs/one/study/below") is None
    with pytest.raises(ExchangeError, match="lower-case"):
        exchange.stored_at("../escape")


@every_kind
def test_a_name_is_written_once(exchange):
    exchange.put("runs/a", b"first")
    exchange.put("runs/a", b"first")
    for other in (b"second", b"", b"first and more", b"firs"):
        with pytest.raises(ExchangeError, match="runs/a"):
            exchange.put("runs/a", other)
    assert exchange.get("runs/a", 100) == b"first"
    assert exchange.children("runs") == ["a"]


@pytest.mark.parametrize("kind", ["directory", "s3", "sftp"])
def test_a_probe_is_taken_away_with_the_folders_it_leaves_empty(exchange):
    assert isinstance(exchange, RemovableExchange)
    exchange.put("probes/east/a", b"1")
    exchange.put("probes/west/a", b"1")
    exchange.remove("probes/east/a")
    assert exchange.get("probes/east/a", 1) is None
    assert exchange.children("probes") == ["west"]
    exchange.put("probes/east/a", b"2")  # the name is free again
    exchange.remove("probes/east/a")
    exchange.remove("probes/west/a")
    assert exchange.children("probes") == []
    for name in ("../escape", "probes/../a"):
        with pytest.raises(ExchangeError, match="lower-case"):
            exchange.remove(name)


@every_kind
def test_names_that_could_lead_out_are_refused(exchange, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    for name in HOSTILE:
        for attempt in (
            lambda: exchange.put(name, b"x"),  # noqa: B023 - called in this turn
            lambda: exchange.get(name, 1),  # noqa: B023
            lambda: exchange.children(name),  # noqa: B023
        ):
            with pytest.raises(ExchangeError, match="lower-case"):
                attempt()
    assert sorted(tmp_path.rglob("*")) == before


@given(NAME)
def test_names_of_plain_words_are_accepted(name):
    assert check_name(name) == name


@given(st.text(max_size=30))
def test_an_accepted_name_stays_inside(name):
    try:
        parts = check_name(name).split("/")
    except ExchangeError:
        return
    assert all(part.strip(".") and part == part.lower() and part.isascii() for part in parts)


@every_kind
def test_more_than_the_limit_is_refused(exchange):
    exchange.put("a", b"12345")
    assert exchange.get("a", 5) == b"12345"
    with pytest.raises(OversizedError, match="4 bytes"):
        exchange.get("a", 4)


@every_kind
def test_children_are_the_next_words(exchange):
    for name in ("runs/b/one", "runs/a/one", "runs/a/two", "runs-2/c", "runs/c"):
        exchange.put(name, b"")
    assert exchange.children("runs") == ["a", "b", "c"]
    assert exchange.children("runs/a") == ["one", "two"]
    assert exchange.children("runs/c") == []
    assert exchange.children("nothing") == []


@every_kind
def test_all_children_of_a_large_folder_are_told(venue, exchange):
    venue.fill("runs/large", 1234)
    assert exchange.children("runs/large") == sorted(f"n{number}" for number in range(1234))


def test_a_failed_write_leaves_nothing_that_shows(tmp_path):
    exchange = DirectoryExchange(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, hard))  # a file of more bytes fails in its midst
    try:
        with pytest.raises(ExchangeError, match="File too large"):
            exchange.put("runs/a", b"bytes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert exchange.get("runs/a", 5) is None
    assert list((tmp_path / "runs").iterdir()) == []
    exchange.put("runs/a", b"bytes")


def test_no_link_below_the_root_is_followed(tmp_path):
    inside, outside = tmp_path / "exchange", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "a").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(inside)
    exchange = DirectoryExchange(inside)
    for name, target in (("runs", outside), ("file", outside / "a"), ("gone", outside / "b")):
        (inside / name).symlink_to(target)
    assert exchange.children("runs") == []
    assert exchange.get("runs/a", 9) is None
    for name in ("file", "gone"):
        with pytest.raises(ExchangeError, match="that it is not a link"):
            exchange.get(name, 9)
    for name in ("runs/b", "runs/deeper/b", "gone/b"):
        with pytest.raises(ExchangeError, match="can't be written"):
            exchange.put(name, b"bytes")
    with pytest.raises(ExchangeError):
        exchange.put("gone", b"bytes")
    assert [path.name for path in outside.iterdir()] == ["a"]
    DirectoryExchange(tmp_path / "link").put("own", b"bytes")  # the root is what its owner says
    assert exchange.get("own", 5) == b"bytes"


def test_what_a_crash_left_is_not_listed(tmp_path):
    exchange = DirectoryExchange(tmp_path)
    exchange.put("runs/a", b"")
    (tmp_path / "runs" / ".0123abcd").write_bytes(b"half")
    assert exchange.children("runs") == ["a"]


@every_kind
def test_what_one_party_puts_the_others_see_at_once(venue):
    one, other = venue.open(), venue.open()
    assert other.children("runs") == []
    assert other.get("runs/a", 1) is None
    one.put("runs/a", b"1")
    assert other.get("runs/a", 1) == b"1"
    assert other.children("runs") == ["a"]
    with pytest.raises(ExchangeError, match="runs/a"):
        other.put("runs/a", b"2")


@every_kind
def test_megabytes_come_back_as_they_were(exchange):
    data = bytes(range(256)) * 20_000
    exchange.put("runs/large", data)
    assert exchange.get("runs/large", len(data)) == data
    with pytest.raises(OversizedError, match=f"runs/large.* {len(data) - 1} bytes"):
        exchange.get("runs/large", len(data) - 1)


@every_kind
def test_pace_is_what_a_look_is_worth(exchange):
    assert 0 < exchange.pace <= 0.05


@pytest.mark.parametrize("act", ["put", "get"])
def test_a_directory_under_a_message_s_name_is_told(tmp_path, act):
    exchange = DirectoryExchange(tmp_path)
    exchange.put("runs/a/b", b"")
    with pytest.raises(ExchangeError, match="runs/a"):
        exchange.put("runs/a", b"x") if act == "put" else exchange.get("runs/a", 1)


def test_a_share_that_is_not_mounted_is_told_and_not_made(tmp_path):
    with pytest.raises(ExchangeError, match="must be an existing folder"):
        DirectoryExchange(tmp_path / "share")
    assert not (tmp_path / "share").exists()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ExchangeError, match="must be an existing folder"):
        DirectoryExchange(tmp_path / "file")


@pytest.mark.parametrize("act", ["put", "get", "children"])
def test_a_share_that_goes_away_is_not_an_empty_one(tmp_path, act):
    (tmp_path / "share").mkdir()
    exchange = DirectoryExchange(tmp_path / "share")
    exchange.put("a", b"1")
    (tmp_path / "share").rename(tmp_path / "elsewhere")
    arguments = {"put": ("b", b"2"), "get": ("a", 1), "children": ("runs",)}[act]
    with pytest.raises(ExchangeError, match=r"is gone. Mount the share again"):
        getattr(exchange, act)(*arguments)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_lies_in_a_shared_folder_is_for_all_its_users_whatever_the_umask(tmp_path, umask):
    (tmp_path / "share").mkdir()
    (tmp_path / "share").chmod(0o2770)
    before = os.umask(umask)
    try:
        DirectoryExchange(tmp_path / "share").put("runs/a-0001/00001/query", b"1")
    finally:
        os.umask(before)
    made = sorted((tmp_path / "share").rglob("*"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o2770] * 3 + [0o660]
    assert {path.stat().st_gid for path in made} == {(tmp_path / "share").stat().st_gid}
