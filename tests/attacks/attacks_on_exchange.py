"""Whoever runs the exchange, or may write to it, against those who read there."""

import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from consortium.engine.names import MOST_NOTICE
from consortium.engine.queries import MOST_ARRAY, decode_query
from consortium.errors import ExchangeError
from consortium.exchange import DirectoryExchange, MemoryExchange
from consortium.membership.keys import create_identity
from site_agent.ledger.anchor import LedgerAnchor
from site_agent.ledger.ledger import Ledger
from tests.attacks.attack_kinds import Stage, attack
from tests.support.forgery import settle
from tests.support.local_consortium import SITES, LocalConsortium

_PLACE = "runs/small-0001/end"
_SOON = 1.0  # s


def _exchange(stage: Stage) -> DirectoryExchange:
    (stage.root / "exchange").mkdir()
    exchange = DirectoryExchange(stage.root / "exchange")
    (stage.root / "exchange" / _PLACE).parent.mkdir(parents=True)
    return exchange


@attack(
    "hub",
    guard="consortium.exchange.directory:check_name",
    without="a file outside the exchange is read and sent on",
    stops="lower-case words",
    instead=lambda real: lambda name: name,
)
def name_that_leads_out(stage: Stage) -> bool:
    """Names a message '../secret'."""
    (stage.root / "secret").write_bytes(b"secret")
    return _exchange(stage).get("../secret", 100) == b"secret"


def _linked(stage: Stage, place: str) -> tuple[DirectoryExchange, Path]:
    """Plant a link in an exchange to the site's data set; returns both."""
    scans, link = stage.root / "bids", stage.root / "exchange" / place
    scans.mkdir()
    (stage.root / "exchange").mkdir()
    exchange = DirectoryExchange(stage.root / "exchange")
    link.parent.mkdir(parents=True)
    link.symlink_to(scans)
    return exchange, scans


_NO_LINKS = "consortium.exchange.directory:_HERE"


@attack(
    "exchange",
    guard=_NO_LINKS,
    without="a site's agent writes into its own data set",
    stops="can't be written",
    instead=lambda real: 0,
)
def folder_that_is_a_link(stage: Stage) -> bool:
    """Plants a link to a site's data set where the site is going to put a message."""
    exchange, scans = _linked(stage, "runs/small-0001/present")
    try:
        exchange.put("runs/small-0001/present/north", b"here")
    except ExchangeError as error:
        stage.said.append(str(error))
    return any(scans.iterdir())


@attack(
    "exchange",
    guard=_NO_LINKS,
    without="a site reads its own files as if another party had sent them",
    stops="can't be read",
    instead=lambda real: 0,
)
def message_that_is_a_link(stage: Stage) -> bool:
    """Replaces a message by a link to a file of a site."""
    exchange = _exchange(stage)
    (stage.root / "secret").write_bytes(b"secret")
    (stage.root / "exchange" / _PLACE).symlink_to(stage.root / "secret")
    return exchange.get(_PLACE, 100) == b"secret"


def _whole(_real: object) -> Callable[..., bytes]:
    def get(exchange: DirectoryExchange, name: str, limit: int) -> bytes:
        data = (exchange._root / name).read_bytes()
        if len(data) > limit:
            raise ExchangeError("It is too large.")
        return data

    return get


@attack(
    "exchange",
    guard="consortium.exchange.directory:DirectoryExchange.get",
    without="an endless file fills the reader's memory before it is refused",
    stops="must have at most 65536 bytes",
    instead=_whole,
)
def oversized_message(stage: Stage) -> bool:
    """Replaces a notice by a file of a hundred megabytes."""
    exchange = _exchange(stage)
    with (stage.root / "exchange" / _PLACE).open("wb") as file:
        file.truncate(100 << 20)
    tracemalloc.start()
    try:
        exchange.get(_PLACE, MOST_NOTICE)
    except ExchangeError as error:
        stage.said.append(str(error))
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak > 50 << 20


@attack(
    "exchange",
    guard="consortium.exchange.directory:_without_waiting",
    without="the reader hangs for ever, without a message",
    stops="is not a file",
    instead=lambda real: os.open,
)
def slow_loris(stage: Stage) -> bool:
    """Replaces a message by a pipe without a writer."""
    exchange, pipe = _exchange(stage), stage.root / "exchange" / _PLACE
    os.mkfifo(pipe)

    def read() -> None:
        try:
            exchange.get(_PLACE, MOST_NOTICE)
        except ExchangeError as error:
            stage.said.append(str(error))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(_SOON)
    hangs = reader.is_alive()
    if hangs:
        pipe.open("wb").close()  # lets it go
        reader.join()
    return hangs


@attack(
    "exchange",
    guard="site_agent.ledger.anchor:MOST_READ",
    without="a site reads invented files for hours",
    stops="reads 16",
    instead=lambda real: 1 << 40,
)
def flood_of_names(stage: Stage) -> bool:
    """Adds five hundred false heads of a site's ledger to the real one."""
    identity = create_identity(stage.root, bytes(range(64)))
    exchange, ledger = _Counting(), Ledger(stage.root / "ledger.sqlite")
    for number in range(500):
        exchange.put(f"ledgers/north/{number + 2:09d}", b"false")
    LedgerAnchor(exchange, identity, "north", ledger).check()
    stage.said.append(f"reads {exchange.read}")
    return exchange.read > 100


class _Counting(MemoryExchange):
    """Counts what is fetched."""

    read = 0

    def get(self, name: str, limit: int) -> bytes | None:
        self.read += 1
        return super().get(name, limit)


class _PatienceError(Exception):
    """The test has seen enough."""


def _endless(_real: object) -> Callable[..., Iterator[float]]:
    def polls(clock: LocalConsortium, seconds: float, *_: float, **__: float) -> Iterator[float]:
        while True:
            yield seconds
            clock.pause(1.0)  # type: ignore[attr-defined]

    return polls


@attack(
    "site",
    guard="consortium.engine.clock:Clock.polls",
    without="one silent site blocks all the others for ever",
    stops="not there within 4 s",
    instead=_endless,
)
def silence(stage: Stage) -> bool:
    """Sends no message at all."""
    local = LocalConsortium(settle(stage.root / "place"))
    local.absent = set(SITES)

    def give_up() -> None:
        if local.ticks.now > 1000:
            raise _PatienceError

    local.ticks.others = give_up
    try:
        local.centre().open()
    except _PatienceError:
        return True
    return False


@attack(
    "hub",
    guard="consortium.engine.queries:_sound_shape",
    without="a site fetches terabytes, or fails to, before it checks the query",
    stops="can't have the shape",
    instead=lambda real: lambda shape: shape,
)
def endless_array_in_a_query(stage: Stage) -> bool:
    """Names in its query an array of a thousand terabytes."""
    array = {"type": "named", "shape": [1 << 20, 1 << 27], "digest": "0" * 64}
    body = {"stage": "ica", "statistic": "rotation", "arguments": {"whitening": array}}
    asked: list[int] = []

    def fetch(_digest: str, size: int) -> bytes:
        asked.append(size)
        raise ExchangeError("The test has seen enough.")

    try:
        decode_query(msgspec.msgpack.encode(body), fetch)
    except ExchangeError:
        return asked[0] > MOST_ARRAY
    return False
