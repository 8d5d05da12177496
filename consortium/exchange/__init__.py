"""Places to put and fetch bytes."""

from consortium.exchange.base import Exchange
from consortium.exchange.directory import DirectoryExchange
from consortium.exchange.memory import MemoryExchange
from consortium.exchange.place import open_exchange

__all__ = ["DirectoryExchange", "Exchange", "MemoryExchange", "open_exchange"]
