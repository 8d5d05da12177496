"""Servers that freeze, die, come back, or let nobody in: one sentence, soon, and then as before."""

import os
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from consortium.errors import ConsortiumError, ExchangeError
from consortium.exchange import open_exchange
from tests.support import patience
from tests.support.exchange_servers import BucketServer, FileServer, Server, free_port
from tests.support.venues import FileVenue, Venue

PATIENCE = 1.0
LARGE = bytes(24 << 20)  # more than any buffer between the parties takes
served_kind = pytest.mark.parametrize("kind", ["s3", "sftp"])


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


def told(act: Callable[[], object], within: float) -> str:
    """The sentence that an act ends in, soon."""
    start = time.monotonic()
    with pytest.raises(ConsortiumError) as caught:
        act()
    assert time.monotonic() - start < within
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def in_time(act: Callable[[], object]) -> object:
    """What an act ends in, once the machine has time for it within `PATIENCE`."""
    end = time.monotonic() + patience.PATIENCE
    while True:
        try:
            return act()
        except ExchangeError:
            if time.monotonic() > end:
                raise


@served_kind
def test_a_frozen_server_is_given_up_soon_and_used_again(venue: Venue) -> None:
    exchange = venue.open(PATIENCE)
    in_time(lambda: exchange.put("runs/a", b"1"))
    with frozen(venue.server):
        for act in (
            lambda: exchange.get("runs/a", 1),
            lambda: exchange.children("runs"),
            lambda: exchange.put("runs/b", b"2"),
            lambda: exchange.put("runs/large", LARGE),
        ):
            assert "Check the server" in told(act, 20 * PATIENCE)
    assert in_time(lambda: exchange.get("runs/a", 1)) == b"1"
    in_time(lambda: exchange.put("runs/b", b"2"))
    assert in_time(lambda: exchange.get("runs/large", len(LARGE))) in (None, LARGE)
    in_time(lambda: exchange.put("runs/large", LARGE))
    assert in_time(lambda: exchange.children("runs")) == ["a", "b", "large"]


@served_kind
def test_a_server_that_freezes_within_a_message_leaves_no_part_of_it(venue: Venue) -> None:
    import threading

    exchange, other = venue.open(PATIENCE), venue.open()
    exchange.put("runs/a", b"1")
    ends: list[BaseException | None] = []

    def write() -> None:
        try:
            exchange.put("runs/large", LARGE)
            ends.append(None)
        except ExchangeError as error:
            ends.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.05)
    with frozen(venue.server):
        writer.join(6 * PATIENCE)
    writer.join()
    assert other.get("runs/large", len(LARGE)) in ([None, LARGE] if ends[0] else [LARGE])
    assert set(other.children("runs")) <= {"a", "large"}


@served_kind
def test_a_server_that_dies_and_comes_back_is_used_again(venue: Venue) -> None:
    exchange = venue.open(PATIENCE)
    in_time(lambda: exchange.put("runs/a", b"1"))
    with stopped(venue.server):
        assert "Check the server" in told(lambda: exchange.get("runs/a", 1), 20 * PATIENCE)
        assert "Check the server" in told(lambda: exchange.put("runs/b", b""), 20 * PATIENCE)
        assert "Check the server" in told(lambda: exchange.children("runs"), 20 * PATIENCE)
    in_time(lambda: exchange.put("runs/b", b"2"))
    assert in_time(lambda: exchange.get("runs/b", 1)) == b"2"


@pytest.mark.parametrize("kind", ["sftp"])
def test_a_connection_that_was_lost_is_made_again_unseen(venue: FileVenue) -> None:
    exchange = venue.open()
    exchange.put("runs/a", b"1")
    for _ in range(2):
        for pid in venue.server.pids()[1:]:
            os.kill(pid, signal.SIGKILL)
        assert exchange.get("runs/a", 1) == b"1"
    for pid in venue.server.pids()[1:]:
        os.kill(pid, signal.SIGKILL)
    exchange.put("runs/b", b"2")
    assert exchange.children("runs") == ["a", "b"]


@pytest.mark.parametrize("kind", ["sftp"])
def test_a_draft_that_a_crash_left_is_not_listed(venue: FileVenue) -> None:
    exchange = venue.open()
    exchange.put("runs/a", b"")
    (venue.root / "runs" / ".0123abcd").write_bytes(b"half")
    assert exchange.children("runs") == ["a"]


@pytest.mark.parametrize("kind", ["sftp"])
def test_a_folder_in_a_message_s_place_is_told_and_leaves_no_draft(venue: FileVenue) -> None:
    exchange = venue.open()
    exchange.put("runs/a", b"")
    (venue.root / "runs" / "b").mkdir()  # what a rename can't replace
    with pytest.raises(ExchangeError, match="runs/b"):
        exchange.put("runs/b", b"x")
    assert [path.name for path in (venue.root / "runs").iterdir() if path.is_file()] == ["a"]


# -- not let in ------------------------------------------------------------------------------


def refused(place: str, credentials: Path, *secrets: str) -> str:
    """The sentence that an attempt to enter ends in; no secret is in it, or in its traceback."""
    with pytest.raises(ConsortiumError) as caught:
        open_exchange(place, credentials)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert not [secret for secret in secrets if secret in shown]
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def test_a_bucket_lets_nobody_in_without_the_right_key(
    bucket_server: BucketServer, tmp_path: Path
) -> None:
    place, wrong = f"s3://{bucket_server.bucket}/x", "a-secret-that-is-wrong"
    credentials = bucket_server.credentials(tmp_path, secret=wrong)
    assert "Check key, secret" in refused(place, credentials, wrong, bucket_server.key)
    credentials = bucket_server.credentials(tmp_path, key="AKIANOBODY", secret=wrong)
    assert "Check key, secret" in refused(place, credentials, wrong, "AKIANOBODY")
    credentials = bucket_server.credentials(tmp_path)
    assert "the bucket 'no-such' does not exist" in refused(
        "s3://no-such/x", credentials, bucket_server.secret
    )
    nobody = f"http://127.0.0.1:{free_port()}"
    credentials = bucket_server.credentials(tmp_path, endpoint=nobody)
    assert "can't be reached" in refused(place, credentials, bucket_server.secret)
    assert bucket_server.secret not in repr(
        open_exchange(place, bucket_server.credentials(tmp_path))
    )


def test_an_sftp_server_must_be_known_and_know_the_user(
    file_server: FileServer, tmp_path: Path
) -> None:
    place, other = file_server.place(tmp_path / "place"), file_server.make_key("other")
    key = (file_server.folder / "user_key").read_text().splitlines()[2]
    hosts = tmp_path / "hosts"
    credentials = file_server.credentials(tmp_path, known_hosts=str(hosts))
    hosts.write_text("")
    assert "has no host key in" in refused(place, credentials, key)
    hosts.write_text(f"[127.0.0.1]:{file_server.port} {other}\n")
    assert "shows another host key" in refused(place, credentials, key)
    assert not (tmp_path / "place").exists()
    stranger = str(file_server.folder / "other")
    credentials = file_server.credentials(tmp_path, key_file=stranger)
    assert "refuses this user" in refused(place, credentials, key)
    credentials = file_server.credentials(tmp_path)
    nowhere = file_server.place(tmp_path / "no" / "such")
    assert "can't be used as an exchange" in refused(nowhere, credentials, key)
    assert "can't be reached" in refused("sftp://a@127.0.0.1:1/x", credentials, key)


def test_a_private_key_is_kept_private(file_server: FileServer, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as ssh

    known = (file_server.folder / "user_key").read_bytes()
    key, lock = ssh.load_ssh_private_key(known, None), ssh.BestAvailableEncryption(b"open sesame")
    locked = tmp_path / "locked"
    locked.touch(mode=0o600)
    locked.write_bytes(key.private_bytes(ssh.Encoding.PEM, ssh.PrivateFormat.OpenSSH, lock))
    place = file_server.place(tmp_path / "place")

    def entry(**changes: str) -> Path:
        return file_server.credentials(tmp_path, key_file=str(locked), **changes)

    assert "Check it and its passphrase" in refused(place, entry())
    wrong = entry(passphrase="sesame open")
    assert "Check it and its passphrase" in refused(place, wrong, "sesame open")
    open_exchange(place, entry(passphrase="open sesame")).put("a", b"1")
    locked.chmod(0o640)
    assert "chmod 600" in refused(place, entry(passphrase="open sesame"), "open sesame")


def test_silence_at_the_door_is_given_up(file_server: FileServer, tmp_path: Path) -> None:
    from consortium.exchange.credentials import SftpCredentials, load_credentials
    from consortium.exchange.sftp import Address, connect

    entry = load_credentials(file_server.credentials(tmp_path), SftpCredentials)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = Address("a", "127.0.0.1", mute.getsockname()[1])
        assert "can't be reached" in told(lambda: connect(address, entry, PATIENCE), 3 * PATIENCE)
