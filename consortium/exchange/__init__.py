"""Places to put and fetch bytes."""

from consortium.exchange.address import open_exchange
from consortium.exchange.base import Exchange
from consortium.exchange.directory import DirectoryExchange
from consortium.exchange.memory import MemoryExchange

__all__ = ["DirectoryExchange", "Exchange", "MemoryExchange", "open_exchange"]
