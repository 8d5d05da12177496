"""What the event loop of an S3 exchange says, and what not."""

import asyncio
import logging

import pytest

from consortium.exchange.s3 import _event_loop


@pytest.mark.parametrize(
    ("message", "said"), [("Unclosed client session", False), ("a task was destroyed", True)]
)
def test_connections_that_end_with_the_process_are_no_message(caplog, message, said):
    loop = _event_loop()

    async def happen() -> None:
        loop.call_exception_handler({"message": message})

    with caplog.at_level(logging.ERROR):
        asyncio.run_coroutine_threadsafe(happen(), loop).result(10)
    assert (message in caplog.text) is said
