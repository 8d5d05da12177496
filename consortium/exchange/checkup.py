"""What a doctor finds out about an exchange: whether it serves, and what time it has."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from consortium.base.checkup import Check
from consortium.exchange.base import Exchange
from consortium.exchange.probe import fault_of, take_away

SLOW, WRONG = 60.0, 600.0
"""Seconds by which a clock may differ before it is told, and before it is a fault."""
SET_IT = "Set the clock, best by a time service."


def check_probe(exchange: Exchange, party: str, token: str) -> Check:
    """Put, list and fetch a probe, and see that it can't be written over."""
    fault = fault_of(exchange, party, token)
    if fault:
        return Check("exchange", "fail", fault, "Ask whoever runs the exchange.")
    return Check("exchange", "ok", "It can be written, read and listed; a name is kept.")


def compared_clock(
    exchange: Exchange,
    place: str,
    party: str,
    token: str,
    now: Callable[[], float],
    arrival: Callable[[str], float] | None = None,
) -> Check:
    """Compare the clock with the exchange's.

    Parameters
    ----------
    place : str
        Address of the exchange.
    party, token : str
        Whose probe it is, and a fresh random lower-case word.
    now : callable
        Seconds since 1970.
    arrival : callable, optional
        When the exchange stored a name, by its own clock. A directory needs none.
    """
    arrival = arrival or _arrival(place)
    if arrival is None:
        message = (
            "This kind of exchange does not tell its time, so there is nothing to compare with."
        )
        return Check("clock", "warn", message, "Compare the clock with another one.")
    name, before = f"probes/{party}/{token}-clock", now()
    exchange.put(name, token.encode())
    try:
        stored, after = arrival(name), now()
    finally:
        take_away(exchange, name)
    off = max(before - stored, stored - after, 0.0)
    state = "ok" if off <= SLOW else "warn" if off <= WRONG else "fail"
    message = f"The clock and the exchange's differ by {off:.0f} s."
    return Check("clock", state, message, "" if state == "ok" else SET_IT)  # type: ignore[arg-type]


def _arrival(place: str) -> Callable[[str], float] | None:
    """How to learn when a directory's file was made, by the clock of the disk's host."""
    root = directory_of(place)
    return None if root is None else lambda name: (root / name).stat().st_mtime


def directory_of(place: str) -> Path | None:
    """Where an exchange is, if it is a directory."""
    url = urlsplit(place)
    if "://" in place and url.scheme != "file":
        return None
    return Path(unquote(url.path) if "://" in place else place)
