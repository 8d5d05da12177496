"""An S3 server whose owner means harm: it is found out, or its users wait; they take no damage."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("aiobotocore", reason="aiobotocore is not installed")

from consortium.errors import ConfigurationError, ExchangeError, OversizedError, TakenError
from consortium.exchange import s3
from consortium.exchange.credentials import S3Credentials

Answer = Callable[[BaseHTTPRequestHandler], None]
TAKEN = b"<Error><Code>PreconditionFailed</Code></Error>"
SPY = b"<Error><Code>Odd\x1b[2J</Code><Message>your secret is open-sesame</Message></Error>"


def say(request: BaseHTTPRequestHandler, status: int, body: bytes = b"") -> None:
    request.send_response(status)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def flood(request: BaseHTTPRequestHandler) -> None:
    """Send for ever, whatever range was asked for; counts what was taken."""
    request.send_response(200)
    request.send_header("Content-Length", str(1 << 40))
    request.end_headers()
    try:
        while True:
            request.server.sent += request.wfile.write(bytes(1 << 16))  # type: ignore[attr-defined]
    except OSError:
        request.server.closed.set()  # type: ignore[attr-defined]


def break_off(request: BaseHTTPRequestHandler) -> None:
    """Promise ten bytes and send three."""
    request.send_response(206)
    request.send_header("Content-Length", "10")
    request.end_headers()
    request.wfile.write(b"abc")
    request.close_connection = True


@contextmanager
def store(get: Answer, put: Answer = lambda r: say(r, 412, TAKEN)) -> Iterator[ThreadingHTTPServer]:
    """A server that answers every reading and every writing in one way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            get(self)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            put(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.sent, server.closed = 0, threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def enter(server: ThreadingHTTPServer) -> s3.S3Exchange:
    fields = {"key": "key", "secret": "open-sesame", "region": "us-east-1"}
    url = f"http://127.0.0.1:{server.server_port}"
    entry = S3Credentials.model_validate({"endpoint": url, **fields})
    return s3.S3Exchange("bucket", "", entry, 2.0)


def test_a_store_that_ignores_conditions_is_not_used() -> None:
    with (
        store(lambda r: say(r, 404), put=lambda r: say(r, 200)) as server,
        pytest.raises(ConfigurationError, match="ignores conditional writes"),
    ):
        enter(server)


def test_no_more_than_the_limit_is_taken() -> None:
    with store(flood) as server:
        with pytest.raises(OversizedError, match="1000 bytes"):
            enter(server).get("runs/a", 1000)
        assert server.closed.wait(5), "the connection was left open"  # type: ignore[attr-defined]
        assert server.sent < 64 << 20  # type: ignore[attr-defined]


def test_a_message_that_breaks_off_is_not_taken() -> None:
    with store(break_off) as server, pytest.raises(ExchangeError, match="runs/a can't be read"):
        enter(server).get("runs/a", 1000)


@pytest.mark.parametrize("status", [200, 403, 404, 503])
def test_a_strange_answer_is_told_without_its_words(status: int) -> None:
    with store(lambda r: say(r, status, SPY), put=lambda r: say(r, 412, TAKEN)) as server:
        exchange = enter(server)
        with pytest.raises(ExchangeError) as caught:
            exchange.children("runs")
        assert "open-sesame" not in str(caught.value)
        assert str(caught.value).isprintable()


def test_a_writer_that_loses_its_answer_finds_its_own_bytes() -> None:
    with store(lambda r: say(r, 206, b"mine")) as server:
        exchange = enter(server)
        exchange.put("runs/a", b"mine")
        with pytest.raises(TakenError, match="runs/a"):
            exchange.put("runs/a", b"thin")


def test_two_writers_at_the_same_moment_try_again() -> None:
    busy = b"<Error><Code>ConditionalRequestConflict</Code></Error>"
    answers = [(412, TAKEN), (409, busy), (200, b"")]
    with store(lambda r: say(r, 404), put=lambda r: say(r, *answers.pop(0))) as server:
        enter(server).put("runs/a", b"mine")
    assert not answers


def test_a_store_that_sends_elsewhere_is_a_matter_of_the_region() -> None:
    moved = b"<Error><Code>PermanentRedirect</Code></Error>"
    with (
        store(lambda r: say(r, 404), put=lambda r: say(r, 301, moved)) as server,
        pytest.raises(ExchangeError, match="bucket's region"),
    ):
        enter(server)


def test_nobody_s_key_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "nowhere")
    entry = S3Credentials(endpoint="http://127.0.0.1:9", region="here")
    with pytest.raises(ExchangeError, match="no key and secret"):
        s3.S3Exchange("bucket", "", entry, 2.0)


def test_a_list_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    more = b"<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
    page = b"<ListBucketResult>%b</ListBucketResult>" % more
    monkeypatch.setattr(s3, "_MOST_PAGES", 5)
    with (
        store(lambda r: say(r, 200, page)) as server,
        pytest.raises(ExchangeError, match="too many names"),
    ):
        enter(server).children("runs")
