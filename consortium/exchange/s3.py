"""An exchange in a bucket of an S3-compatible object store.

A message is one object, put by one conditional request: the server itself refuses a name that is
taken, and an object is complete or absent.

The client obstore was also tried. It has one deadline for a whole request. If a server stops within
a large request, obstore detects it only at that deadline, and this module after a second.
"""

import asyncio
import contextlib
import functools
import os
import re
import socket
import threading
import weakref
from collections.abc import Collection, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import aiohttp
from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own
    HTTPClientError,
    NoCredentialsError,
    SSLError,
)
from botocore.handlers import add_expect_header  # type: ignore[import-untyped]

from consortium.errors import ConfigurationError, ExchangeError
from consortium.exchange.base import check_name, name_taken, oversized_message
from consortium.exchange.credentials import S3Credentials
from consortium.exchange.timeouts import drop_when_stuck, transfer_timeout

_Found = TypeVar("_Found")

TROUBLE = (OSError, BotoCoreError, ClientError, aiohttp.ClientError)
"""All that a request can raise."""
PATIENCE = 10.0
_MOST_PAGES = 1_000
_TOGETHER = 8  # messages under way at a time
_TOGETHER_BYTES = 64 << 20  # of all messages under way
_PROBE = ".written-once"  # no message can have this name
_EXISTS = {"PreconditionFailed", "412"}
_BUSY = {"ConditionalRequestConflict", "OperationAborted", "409"}  # another writer, just now
_MISSING = {"NoSuchKey", "404"}
_EMPTY = {"InvalidRange", "416"}  # no byte of an empty object can be asked for
_REFUSED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "403"}
_ELSEWHERE = {"AuthorizationHeaderMalformed", "PermanentRedirect", "301"}


class S3Client:
    """A client without state that tries once. Its callers try again.

    Raises TROUBLE, or ValueError if the libraries can't use the credentials. It asks no user.

    Parameters
    ----------
    patience : float
        Seconds until a silent server counts as gone, plus the bytes' time on a slow link.
    """

    def __init__(self, credentials: S3Credentials, patience: float) -> None:
        self._patience = patience
        self._loop = _event_loop()
        stack = contextlib.AsyncExitStack()
        made = stack.enter_async_context(_session(credentials, patience))
        self._client = asyncio.run_coroutine_threadsafe(made, self._loop).result()
        weakref.finalize(self, _close, stack, self._loop).atexit = False

    def request(self, method: str, size: int = 0, **arguments: Any) -> Any:
        """Send a request with a number of bytes, and return the store's answer."""
        sent = getattr(self._client, method)(**arguments)
        return self._wait(sent, transfer_timeout(self._patience, size))

    def take(self, body: Any, most: int) -> bytes:
        """Read an answer's body up to a number of bytes, whatever the server sends."""
        return self._wait(_read(body, most), transfer_timeout(self._patience, most))

    def _wait(self, work: Coroutine[Any, Any, _Found], seconds: float) -> _Found:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise


def _session(credentials: S3Credentials, patience: float) -> Any:
    """Return the library's client, not yet entered."""

    def opened(address: tuple[Any, ...]) -> socket.socket:
        connection = socket.socket(*address[:3])
        drop_when_stuck(connection, patience / 2)
        return connection

    config: dict[str, object] = {
        "connect_timeout": patience / 2,
        "read_timeout": patience,
        "connector_args": {"socket_factory": opened},
        "retries": {"total_max_attempts": 1},  # but a connection found closed is opened again
        # Many stores don't support trailing checksums, and every message is signed.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    if credentials.endpoint is not None:
        config["s3"] = {"addressing_style": "path"}  # own servers seldom have a name per bucket
    session = get_session()
    # A server that never says "100 Continue" would be waited for without end.
    session.unregister("before-call.s3", add_expect_header)
    return session.create_client(
        "s3",
        endpoint_url=credentials.endpoint,
        region_name=credentials.region,
        aws_access_key_id=credentials.key and credentials.key.get_secret_value(),
        aws_secret_access_key=credentials.secret and credentials.secret.get_secret_value(),
        verify=None if credentials.ca_bundle is None else str(credentials.ca_bundle),
        config=AioConfig(**config),
    )


def _close(stack: contextlib.AsyncExitStack, loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(stack.aclose(), loop)


@functools.cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of all clients of this process."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_told)
    threading.Thread(target=loop.run_forever, name="s3", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # a child has no part in its parent's threads
    os.register_at_fork(after_in_child=_event_loop.cache_clear)


async def _read(body: Any, most: int) -> bytes:
    data = bytearray()
    async with body:
        while len(data) < most and (part := await body.read(most - len(data))):
            data += part
    return bytes(data)


def error_code(error: BaseException) -> str:
    """Return the store's code of the fault, or nothing if the store did not answer."""
    answer = getattr(error, "response", None)
    if not isinstance(answer, dict):
        return ""
    return re.sub(r"[^A-Za-z0-9]", "", str(answer.get("Error", {}).get("Code")))[:40]


def error_cause(error: BaseException) -> str:
    """Return why the store did not answer."""
    if isinstance(error, SSLError):
        return "its certificate is not trusted"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, HTTPClientError | ConnectionError | aiohttp.ClientError):
        return "it can't be reached"
    return type(error).__name__


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of the loop, except for connections that end with their process."""
    if not str(context.get("message")).startswith("Unclosed"):
        loop.default_exception_handler(context)


class S3Exchange:
    """One object per message below a prefix of a bucket.

    Raises ConfigurationError if the server does not honour conditional writes. Raises ExchangeError
    if the bucket can't be written to.

    Parameters
    ----------
    prefix : str
        Without a slash at its ends; may be empty.
    patience : float
        Seconds until a silent server counts as gone, plus the bytes' time on a slow link.
    """

    pace = 0.02

    def __init__(
        self, bucket: str, prefix: str, credentials: S3Credentials, patience: float = PATIENCE
    ) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        what = f"s3://{bucket}/{self._prefix} can't be used as an exchange"
        try:
            self._client = S3Client(credentials, patience)
        except (*TROUBLE, ValueError) as error:
            raise self._trouble(what, error) from None
        self._check_conditions(what)

    def __repr__(self) -> str:
        return f"S3Exchange('s3://{self._bucket}/{self._prefix}')"

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Follow `Exchange.put`."""
        if self._create(check_name(name), bytes(data), f"{name} can't be written"):
            return
        if self.get(name, len(data)) != data:
            raise name_taken(name)

    def get(self, name: str, limit: int) -> bytes | None:
        """Follow `Exchange.get`."""
        key = self._prefix + check_name(name)
        try:
            answer = self._request("get_object", Key=key, Range=f"bytes=0-{limit}")
            data = self._client.take(answer["Body"], limit + 1)
        except TROUBLE as error:
            code = error_code(error)
            if code in _MISSING:
                return None
            if code in _EMPTY:
                return b""
            raise self._trouble(f"{name} can't be read", error) from None
        if len(data) > limit:
            raise oversized_message(name, limit)
        return data

    def get_together(
        self, names: Collection[str], limit: int
    ) -> Iterator[tuple[str, bytes | ExchangeError | None]]:
        """Follow `FetchesTogether.get_together`."""

        def fetch(name: str) -> bytes | ExchangeError | None:
            try:
                return self.get(name, limit)
            except ExchangeError as error:
                return error

        many = max(1, min(_TOGETHER, _TOGETHER_BYTES // max(1, limit)))
        waiting = list(names)
        with ThreadPoolExecutor(many, "s3-get") as threads:
            while waiting:
                some = waiting[:many]
                waiting = waiting[many:]
                yield from zip(some, threads.map(fetch, some), strict=True)

    def children(self, prefix: str) -> list[str]:
        """Follow `Exchange.children`."""
        start = f"{self._prefix}{check_name(prefix)}/"
        found: set[str] = set()
        more: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            try:
                page = self._request("list_objects_v2", Prefix=start, Delimiter="/", **more)
            except TROUBLE as error:
                raise self._trouble(f"{prefix} can't be listed", error) from None
            keys = [item["Key"] for item in page.get("Contents", ())]
            keys += [item["Prefix"] for item in page.get("CommonPrefixes", ())]
            found.update(key[len(start) :].rstrip("/") for key in keys)
            if not page.get("IsTruncated"):
                return sorted(name for name in found if name and not name.startswith("."))
            more = {"ContinuationToken": page["NextContinuationToken"]}
        raise ExchangeError(f"{prefix} has too many names to list. Empty the bucket's prefix.")

    def stored_at(self, name: str) -> float | None:
        """Follow `DatedExchange.stored_at`; the store gives whole seconds."""
        try:
            answer = self._request("head_object", Key=self._prefix + check_name(name))
            return float(answer["LastModified"].timestamp())
        except TROUBLE as error:
            if error_code(error) in _MISSING:
                return None
            raise self._trouble(f"{name} can't be read", error) from None
        except (KeyError, AttributeError, ValueError, OverflowError):  # a store that gives no time
            return None

    def remove(self, name: str) -> None:
        """Follow `Removes.remove`."""
        try:
            self._request("delete_object", Key=self._prefix + check_name(name))
        except TROUBLE as error:
            raise self._trouble(f"{name} can't be removed", error) from None

    def _create(self, name: str, data: bytes, what: str) -> bool:
        """Write an object if its name is free; False if it is not."""
        for attempt in range(3):
            try:
                self._request(
                    "put_object",
                    size=len(data),
                    Key=self._prefix + name,
                    Body=data,
                    IfNoneMatch="*",
                )
            except TROUBLE as error:
                code = error_code(error)
                if code in _EXISTS:
                    return False
                if code not in _BUSY or attempt == 2:
                    raise self._trouble(what, error) from None
            else:
                return True
        raise AssertionError("unreachable")

    def _check_conditions(self, what: str) -> None:
        """Test that the store refuses to overwrite, which keeps users from losing messages.

        Raises ConfigurationError if it ignores the condition.
        """
        if self._create(_PROBE, b"1", what) and self._create(_PROBE, b"2", what):
            raise ConfigurationError(
                f"The server of bucket {self._bucket} ignores conditional writes (If-None-Match), "
                "so messages could be lost. Use a store that honours them."
            )

    def _request(self, method: str, size: int = 0, **arguments: Any) -> Any:
        return self._client.request(method, size, Bucket=self._bucket, **arguments)

    def _trouble(self, what: str, error: BaseException) -> ExchangeError:
        """Make one sentence of an answer, without the server's own words, which may quote a key."""
        code = error_code(error)
        if code == "NoSuchBucket":
            return ExchangeError(
                f"{what}: the bucket '{self._bucket}' does not exist. Create it, or correct its "
                "name."
            )
        if code in _REFUSED or isinstance(error, NoCredentialsError):
            reason = code or "no key and secret"
            return ExchangeError(
                f"{what} ({reason}). Check key, secret and rights to list, read and write the "
                f"bucket '{self._bucket}'."
            )
        if code in _ELSEWHERE:
            return ExchangeError(f"{what} ({code}). Name the bucket's region in the credentials.")
        reason = code or error_cause(error)
        return ExchangeError(f"{what} ({reason}). Check the server and the network.")
