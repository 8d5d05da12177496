"""Checks of an exchange: whether it works, and which time it has."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from consortium.base.checkup import Check
from consortium.errors import ExchangeError
from consortium.exchange.base import DatedExchange, Exchange, RemovableExchange

SLOW = 60.0
WRONG = 600.0
"""Seconds by which a clock may differ before it is reported, and before it is a fault."""
SET_IT = "Set the clock, best by a time service."


def check_probe(exchange: Exchange, party: str, token: str) -> Check:
    """Put, list and fetch a probe, and check that it can't be overwritten."""
    fault = fault_of(exchange, party, token)
    if fault:
        return Check("exchange", "fail", fault, "Ask whoever runs the exchange.")
    return Check("exchange", "ok", "It can be written, read and listed; a name is kept.")


def compared_clock(exchange: Exchange, party: str, token: str, now: Callable[[], float]) -> Check:
    """Compare this machine's clock with that of the exchange.

    Parameters
    ----------
    party, token : str
        Whose probe it is, and a fresh random lower-case word.
    now : callable
        Seconds since 1970.
    """
    name = f"probes/{party}/{token}-clock"
    before = now()
    exchange.put(name, token.encode())
    try:
        stored = exchange.stored_at(name) if isinstance(exchange, DatedExchange) else None
        after = now()
    finally:
        take_away(exchange, name)
    if stored is None:
        message = "The exchange does not report its time, so nothing can be compared."
        return Check("clock", "warn", message, "Compare the clock with another one.")
    off = max(before - stored, stored - after, 0.0)
    state = "ok" if off <= SLOW else "warn" if off <= WRONG else "fail"
    message = f"The clock and the exchange's differ by {off:.0f} s."
    return Check("clock", state, message, "" if state == "ok" else SET_IT)  # type: ignore[arg-type]


def directory_of(place: str) -> Path | None:
    """Return the path of an exchange that is a directory, for its check-up."""
    url = urlsplit(place)
    if "://" in place and url.scheme != "file":
        return None
    return Path(unquote(url.path) if "://" in place else place)


def fault_of(exchange: Exchange, party: str, token: str) -> str:
    """Put, list and fetch a probe, and check that it can't be overwritten.

    Raises ExchangeError if the place can't be used.

    Parameters
    ----------
    party : str
        Owner of the probe.
    token : str
        A fresh random lower-case word, for the probe's name.

    Returns
    -------
    str
        The fault in a sentence, empty if there is none.
    """
    place = f"probes/{party}"
    data = token.encode()
    exchange.put(f"{place}/{token}", data)
    try:
        if exchange.get(f"{place}/{token}", len(data)) != data:
            return "A probe came back altered or not at all."
        if token not in exchange.children(place):
            return "A probe exists and is not listed."
        try:
            exchange.put(f"{place}/{token}", data[::-1] + b"!")
        except ExchangeError:
            return ""
        return "A message can be written over by another."
    finally:
        take_away(exchange, f"{place}/{token}")


def take_away(exchange: Exchange, name: str) -> None:
    """Remove a probe, unless the exchange allows no removal, which is not a fault."""
    if isinstance(exchange, RemovableExchange):
        with suppress(ExchangeError):
            exchange.remove(name)
