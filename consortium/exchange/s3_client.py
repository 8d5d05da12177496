"""A client of an S3-compatible store, and what its errors mean."""

from __future__ import annotations

import re
import socket
from typing import Any

import aiohttp
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ConnectionError,  # noqa: A004 - botocore's own
    HTTPClientError,
    SSLError,
)
from botocore.handlers import add_expect_header  # type: ignore[import-untyped]
from s3fs import S3FileSystem

from consortium.exchange.credentials import S3Credentials
from consortium.exchange.timeouts import drop_when_stuck

TROUBLE = (OSError, BotoCoreError, aiohttp.ClientError)
"""All that a request can raise."""


def connect(credentials: S3Credentials, patience: float) -> S3FileSystem:
    """Make a file system that keeps nothing in mind and tries once: its callers try again."""

    def opened(address: tuple[Any, ...]) -> socket.socket:
        connection = socket.socket(*address[:3])
        drop_when_stuck(connection, patience / 2)
        return connection

    client: dict[str, object] = {}
    if credentials.region is not None:
        client["region_name"] = credentials.region
    if credentials.ca_bundle is not None:
        client["verify"] = str(credentials.ca_bundle)
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
    files = S3FileSystem(
        session=session,
        endpoint_url=credentials.endpoint,
        key=credentials.key and credentials.key.get_secret_value(),
        secret=credentials.secret and credentials.secret.get_secret_value(),
        client_kwargs=client,
        config_kwargs=config,
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    files.retries = 1
    files.connect()  # takes half a second, and asks nobody
    return files


def code_of(error: BaseException) -> str:
    """Return the store's word for what is wrong, or nothing if the store did not speak."""
    answer = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    if not isinstance(answer, dict):
        return ""
    return re.sub(r"[^A-Za-z0-9]", "", str(answer.get("Error", {}).get("Code")))[:40]


def cause_of(error: BaseException) -> str:
    """Say why the store did not speak."""
    if isinstance(error, SSLError):
        return "its certificate is not trusted"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, HTTPClientError | ConnectionError | aiohttp.ClientError):
        return "it can't be reached"
    return type(error).__name__
