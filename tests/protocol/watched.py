"""Whoever stands between the parties and all that they write and read.

A run is played in one process with a clock that passes when somebody waits (see
`tests.support.local_consortium`). What writes and reads is patched in one place, here; who derives
from `Watcher` says what goes wrong.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from consortium.coordinator import run_folder
from consortium.engine import clock, transcript
from consortium.exchange import DirectoryExchange
from site_agent.data.cache import BlockCache
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.run.message_store import MessageStore

CENTRE = "centre"
_Done = TypeVar("_Done")


class Died(BaseException):
    """The process is gone; nothing of ours catches this."""


@dataclass(frozen=True)
class Write:
    """One write of a party, known by what is written: ``where`` is 'exchange' or a local place."""

    who: str
    where: str
    what: str

    def __str__(self) -> str:
        return self.what if self.where == "exchange" else f"{self.where}: {self.what}"


class Watcher:
    """Sees every write of the party at work, and every reading of the exchange."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._local = threading.local()
        self._watch_exchange(patch)
        self._watch_disks(patch)

    @property
    def at_work(self) -> str:
        """The party whose code runs, in this thread."""
        return getattr(self._local, "who", CENTRE)

    @at_work.setter
    def at_work(self, who: str) -> None:
        self._local.who = who

    def write(self, write: Write, data: bytes, act: Callable[[], _Done]) -> _Done:
        """Make a write."""
        return act()

    def read(self, name: str, data: bytes | None) -> bytes | None:
        """Return what a reader of the exchange gets."""
        return data

    def visit(self) -> None:
        """Somebody is about to use the exchange."""

    def fill(self) -> None:
        """The cache is about to be written to."""

    def _write(self, where: str, what: str, act: Callable[[], _Done], data: bytes = b"") -> _Done:
        return self.write(Write(self.at_work, where, what), data, act)

    def _watch_exchange(self, patch: pytest.MonkeyPatch) -> None:
        put, get = DirectoryExchange.put, DirectoryExchange.get
        children = DirectoryExchange.children

        def watched_put(exchange: DirectoryExchange, name: str, data: bytes) -> None:
            self.visit()
            data = bytes(data)
            self._write("exchange", name, lambda: put(exchange, name, data), data)

        def watched_get(exchange: DirectoryExchange, name: str, limit: int) -> bytes | None:
            self.visit()
            return self.read(name, get(exchange, name, limit))

        def watched_children(exchange: DirectoryExchange, prefix: str) -> list[str]:
            self.visit()
            return children(exchange, prefix)

        patch.setattr(DirectoryExchange, "put", watched_put)
        patch.setattr(DirectoryExchange, "get", watched_get)
        patch.setattr(DirectoryExchange, "children", watched_children)

    def _watch_disks(self, patch: pytest.MonkeyPatch) -> None:
        save, real = MessageStore.save_all, {n: getattr(Ledger, n) for n in ("reserve", "spend")}
        cache, atomically = BlockCache._write, transcript.write_bytes

        def watched_save(store: MessageStore, run: str, messages: Mapping[str, bytes]) -> None:
            what = f"{run}/{list(messages)[-1]}"
            self._write("store", what, lambda: save(store, run, messages))

        def watched(event: str) -> Callable[..., Any]:
            def act(ledger: Ledger, charge: Charge, *rest: Any) -> Any:
                what = f"{charge.run}/{charge.round}/{event}"
                return self._write("ledger", what, lambda: real[event](ledger, charge, *rest))

            return act

        def watched_file(path: Any, data: bytes) -> None:
            self._write("folder", path.name, lambda: atomically(path, data), data)

        def watched_cache(folder: BlockCache, path: Any, block: Any) -> None:
            def act() -> None:
                self.fill()
                cache(folder, path, block)

            self._write("cache", "block", act)

        patch.setattr(MessageStore, "save_all", watched_save)
        patch.setattr(Ledger, "reserve", watched("reserve"))
        patch.setattr(Ledger, "spend", watched("spend"))
        patch.setattr(BlockCache, "_write", watched_cache)
        for module in (transcript, clock, run_folder):
            patch.setattr(module, "write_bytes", watched_file)
