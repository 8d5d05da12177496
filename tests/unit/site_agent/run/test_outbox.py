"""What a site fetches of a query's public arrays."""

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from consortium.engine.names import Names
from consortium.errors import ExchangeError
from consortium.exchange.memory import MemoryExchange
from site_agent.run.outbox import Outbox

DATA = b"numbers!"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def exchange() -> MemoryExchange:
    return MemoryExchange()


@pytest.fixture
def outbox(exchange: MemoryExchange) -> Outbox:
    context: Any = SimpleNamespace(run="small-0001", keys={})
    return Outbox(context, None, exchange)  # type: ignore[arg-type]


def place(exchange: MemoryExchange, digest: str, data: bytes) -> None:
    exchange.put(Names("small-0001").array(digest), data)


def test_an_array_of_the_query_before_is_not_fetched_again(
    exchange: MemoryExchange, outbox: Outbox
) -> None:
    place(exchange, DIGEST, DATA)
    assert outbox.arrays()(DIGEST, len(DATA)) == DATA
    exchange.__init__()  # type: ignore[misc]
    assert outbox.arrays()(DIGEST, len(DATA)) == DATA
    outbox.arrays()  # of a query without arrays, after which nothing is known
    with pytest.raises(ExchangeError, match="missing or altered"):
        outbox.arrays()(DIGEST, len(DATA))


def test_an_altered_array_is_not_kept(exchange: MemoryExchange, outbox: Outbox) -> None:
    place(exchange, DIGEST, b"nothing!")
    for _ in range(2):
        with pytest.raises(ExchangeError, match="missing or altered"):
            outbox.arrays()(DIGEST, len(DATA))
