"""Connections of other users of the machine: none keeps the staff's browser out."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from site_agent.inbox import connections, server
from site_agent.inbox.guard import Door, Guard
from tests.support.patience import PATIENCE

SOON = 0.5
STARTS = {
    "idle": b"",
    "half a head": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "no body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n",
}


@contextlib.contextmanager
def _served() -> Iterator[int]:
    """Serve with the inbox's settings, without pages: each request is refused or answered."""
    listening = server._socket(0)
    port = int(listening.getsockname()[1])
    settings = server.server_settings(Guard(PlainTextResponse("here"), Door(port, print)))
    running = server._Server(settings)
    thread = threading.Thread(target=lambda: running.run(sockets=[listening]))
    thread.start()
    try:
        yield port
    finally:
        running.should_exit = True
        running.force_exit = True
        thread.join(PATIENCE)


def _ask(port: int) -> bytes:
    """Return the first line of the answer to an honest request."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as mine:
        mine.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return mine.recv(100).split(b"\r\n")[0]


def _is_closed(other: socket.socket) -> bool:
    other.settimeout(SOON / 10)
    try:
        while other.recv(1000):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_many_connections_of_others_keep_nobody_out(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)
    with _served() as port, contextlib.ExitStack() as stack:
        others = []
        for _ in range(120):
            other = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            with contextlib.suppress(OSError):
                other.sendall(start)
            others.append(other)
        assert _ask(port) == b"HTTP/1.1 421 Misdirected Request"
        until = time.monotonic() + PATIENCE
        while sum(not _is_closed(each) for each in others) > 20:
            assert time.monotonic() < until
        assert not _is_closed(others[-1])  # those that waited longest were closed
        assert _is_closed(others[0])


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_request_that_does_not_come_is_not_waited_for(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PATIENCE", SOON)
    with _served() as port, socket.create_connection(("127.0.0.1", port)) as other:
        other.sendall(start)
        until = time.monotonic() + PATIENCE
        while not _is_closed(other):
            with contextlib.suppress(OSError):
                other.sendall(b"a" if start else b"")  # a byte now and then extends nothing
            assert time.monotonic() < until


def test_an_answer_that_takes_long_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", SOON)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 1)

    async def slow(_: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(4 * SOON)
        await PlainTextResponse("here")(scope, receive, send)

    monkeypatch.setattr(Guard, "__call__", slow)
    with _served() as port, contextlib.ExitStack() as stack:
        connect = partial(socket.create_connection, ("127.0.0.1", port), timeout=PATIENCE)
        mine = stack.enter_context(connect())
        mine.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(SOON)
        stack.enter_context(connect())  # one more than are allowed
        assert mine.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_requests_that_are_no_http_are_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with _served() as port:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as other:
                other.sendall(b"\0\r\n\r\n")
                assert other.recv(100).startswith(b"HTTP/1.1 400")
    assert "Invalid" not in capfd.readouterr().err


def test_connections_leave_files_for_the_pages() -> None:
    settings = server.server_settings(Guard(PlainTextResponse("here"), Door(1, print)))
    assert connections.MOST_CONNECTIONS + settings.backlog < 1000  # 1024 on most systems
