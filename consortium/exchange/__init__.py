"""Where messages are put and fetched.

Folder, S3, SFTP and memory behind one interface; addresses, credentials, time limits, probes.
"""

from consortium.exchange.address import open_exchange
from consortium.exchange.base import Exchange
from consortium.exchange.directory import DirectoryExchange
from consortium.exchange.memory import MemoryExchange

__all__ = ["DirectoryExchange", "Exchange", "MemoryExchange", "open_exchange"]
