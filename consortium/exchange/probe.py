"""Whether a place can be what a consortium's messages lie in: tried with a few random letters."""

from contextlib import suppress

from consortium.errors import ExchangeError
from consortium.exchange.base import Exchange, RemovableExchange


def fault_of(exchange: Exchange, party: str, token: str) -> str:
    """Put, list and fetch a probe, and see that it can't be written over.

    Parameters
    ----------
    party : str
        Whose probe it is.
    token : str
        A fresh random lower-case word, for the probe's name.

    Returns
    -------
    str
        What is wrong, in a sentence; empty if nothing is.

    Raises
    ------
    ExchangeError
        If the place can't be used.
    """
    place, data = f"probes/{party}", token.encode()
    exchange.put(f"{place}/{token}", data)
    try:
        if exchange.get(f"{place}/{token}", len(data)) != data:
            return "A probe came back altered or not at all."
        if token not in exchange.children(place):
            return "A probe is there and not listed."
        try:
            exchange.put(f"{place}/{token}", data[::-1] + b"!")
        except ExchangeError:
            return ""
        return "A message can be written over by another."
    finally:
        take_away(exchange, f"{place}/{token}")


def take_away(exchange: Exchange, name: str) -> None:
    """Remove a probe; where nobody may remove anything, which is no fault, it stays."""
    if isinstance(exchange, RemovableExchange):
        with suppress(ExchangeError):
            exchange.remove(name)
