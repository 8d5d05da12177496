"""The one thing that sites and centre share: a place to put and fetch bytes.

An exchange is not trusted. Its owner can delay and delete messages. Signatures detect all other
changes, which end in an error. A name is written once.

Examples
--------
>>> from consortium.exchange.memory import MemoryExchange
>>> shared = MemoryExchange()
>>> shared.put("runs/small/present/north", b"here")
>>> shared.put("runs/small/present/north", b"here")
>>> shared.get("runs/small/present/north", limit=100)
b'here'
>>> shared.children("runs/small/present")
['north']
>>> shared.put("runs/small/present/north", b"gone")  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
consortium.errors.TakenError: ...
"""

import re
from collections.abc import Collection, Iterator
from typing import Protocol, runtime_checkable

from consortium.errors import ExchangeError, OversizedError, TakenError

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*(/[a-z0-9][a-z0-9-]*){0,5}")


class Exchange(Protocol):
    """Bytes by name; names are slash-separated lower-case words."""

    pace: float
    """Seconds between two looks that are worth their cost here; whoever waits for a message looks
    no more often."""

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Store bytes; storing the same bytes again changes nothing.

        Raises ExchangeError if the name has other bytes already, or the place can't be written.
        """

    def get(self, name: str, limit: int) -> bytes | None:
        """Fetch bytes, or None if nothing was stored.

        Raises ExchangeError if there are more than ``limit`` bytes, or the place can't be read.
        """

    def children(self, prefix: str) -> list[str]:
        """Return the last words of all names directly below ``prefix``, sorted."""


@runtime_checkable
class RemovableExchange(Protocol):
    """An exchange from which a party may remove its own probes, but never a message."""

    def remove(self, name: str) -> None:
        """Take bytes away, and folders that this leaves empty.

        Raises ExchangeError if this party may not.
        """


@runtime_checkable
class FetchesTogether(Protocol):
    """An exchange that has several messages under way at a time."""

    def get_together(
        self, names: Collection[str], limit: int
    ) -> Iterator[tuple[str, bytes | ExchangeError | None]]:
        """Fetch each as `Exchange.get`, in any order; what that would raise is in its place."""


@runtime_checkable
class DatedExchange(Protocol):
    """An exchange that tells when it stored a message."""

    def stored_at(self, name: str) -> float | None:
        """Return when a message was stored, or None if there is none.

        The time is in seconds since 1970, by the exchange's own clock, which may be wrong. Raises
        ExchangeError if the place can't be read.
        """


def get_each(
    exchange: Exchange, names: Collection[str], limit: int
) -> Iterator[tuple[str, bytes | ExchangeError | None]]:
    """Fetch messages of one kind, several at a time where the exchange can.

    Yields
    ------
    name : str
    found : bytes, ExchangeError or None
        What `Exchange.get` returns or raises.
    """
    if isinstance(exchange, FetchesTogether) and len(names) > 1:
        yield from exchange.get_together(names, limit)
        return
    for name in names:
        try:
            yield name, exchange.get(name, limit)
        except ExchangeError as error:
            yield name, error


def check_name(name: str) -> str:
    """Refuse names that could lead out of the exchange.

    Raises ExchangeError if the name is not made of lower-case words with slashes between them.
    """
    if len(name) > 300 or not _NAME.fullmatch(name):
        raise ExchangeError(
            f"A message's name must be lower-case words with '/', got {name[:80]!r}."
        )
    return name


def name_taken(name: str) -> ExchangeError:
    """Return the error for a name on the exchange that has other bytes."""
    return TakenError(f"{name} already has another message, and each is written only once.")


def oversized_message(name: str, limit: int) -> ExchangeError:
    """Return the error for a message on the exchange with too many bytes."""
    return OversizedError(
        f"{name} must have at most {limit} bytes, and it has more. It was not read."
    )
