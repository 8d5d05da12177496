"""A client of an S3-compatible store, and what its errors mean."""

import asyncio
import contextlib
import functools
import os
import re
import socket
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

import aiohttp
from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own
    HTTPClientError,
    SSLError,
)
from botocore.handlers import add_expect_header  # type: ignore[import-untyped]

from consortium.exchange.credentials import S3Credentials
from consortium.exchange.timeouts import drop_when_stuck, transfer_timeout

_Found = TypeVar("_Found")

TROUBLE = (OSError, BotoCoreError, ClientError, aiohttp.ClientError)
"""All that a request can raise."""


class S3Client:
    """A client that keeps nothing in mind and tries once: its callers try again.

    Raises TROUBLE, ValueError if the credentials are none that the libraries know to use; nobody is
    asked.

    Parameters
    ----------
    patience : float
        Seconds until a silent server counts as gone, beyond what the bytes take on a slow link.
    """

    def __init__(self, credentials: S3Credentials, patience: float) -> None:
        self._patience, self._loop = patience, _event_loop()
        stack = contextlib.AsyncExitStack()
        made = stack.enter_async_context(_session(credentials, patience))
        self._client = asyncio.run_coroutine_threadsafe(made, self._loop).result()
        weakref.finalize(self, _close, stack, self._loop).atexit = False

    def request(self, method: str, size: int = 0, **arguments: Any) -> Any:
        """Send a request that carries so many bytes, and return the store's answer."""
        sent = getattr(self._client, method)(**arguments)
        return self._wait(sent, transfer_timeout(self._patience, size))

    def take(self, body: Any, most: int) -> bytes:
        """Read at most so many bytes of an answer's body, whatever the server sends."""
        return self._wait(_read(body, most), transfer_timeout(self._patience, most))

    def _wait(self, work: Coroutine[Any, Any, _Found], seconds: float) -> _Found:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise


def _session(credentials: S3Credentials, patience: float) -> Any:
    """The library's client, not yet entered."""

    def opened(address: tuple[Any, ...]) -> socket.socket:
        connection = socket.socket(*address[:3])
        drop_when_stuck(connection, patience / 2)
        return connection

    config: dict[str, object] = {
        "connect_timeout": patience / 2,
        "read_timeout": patience,
        "connector_args": {"socket_factory": opened},
        "retries": {"total_max_attempts": 1},  # but a connection found closed is opened again
        # Many stores know no trailing checksums; every message is signed anyway.
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
    """One for all clients of this process."""
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
    """Return the store's word for what is wrong, or nothing if the store did not speak."""
    answer = getattr(error, "response", None)
    if not isinstance(answer, dict):
        return ""
    return re.sub(r"[^A-Za-z0-9]", "", str(answer.get("Error", {}).get("Code")))[:40]


def error_cause(error: BaseException) -> str:
    """Say why the store did not speak."""
    if isinstance(error, SSLError):
        return "its certificate is not trusted"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, HTTPClientError | ConnectionError | aiohttp.ClientError):
        return "it can't be reached"
    return type(error).__name__


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what goes wrong in the loop; that a connection ends with its process does not."""
    if not str(context.get("message")).startswith("Unclosed"):
        loop.default_exception_handler(context)
