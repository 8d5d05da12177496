"""Faults made to happen to one party at one of its writes, while a whole run is played.

A run is played in one process with a clock that passes when somebody waits (see `village`). A
`Stage` stands between the parties and all that they write and read; a fault is told of each.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from consortium.coordinator import run_folder
from consortium.engine import transcript, wait_file
from consortium.errors import ConsortiumError, ExchangeError, OutputError
from consortium.exchange import DirectoryExchange, directory
from site_agent.data.cache import BlockCache
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.run.message_store import MessageStore
from tests.support.local_consortium import LocalConsortium, conduct

CENTRE = "centre"
_PACE = 0.4
"""Seconds between two looks at the exchange: with fewer looks a run is played sooner."""
_T = TypeVar("_T")


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


NAMED = Write(CENTRE, "folder", "run.json")


class Fault:
    """Something that goes wrong once, at one write."""

    sleeps = False
    """Whether it leaves a party asleep in the middle of its work."""

    def __init__(self, at: Write) -> None:
        self.at = at
        self.over = False

    def begin(self, stage: Stage) -> None:
        """The run has its name, and nothing of it is on the exchange yet."""

    def before(self, stage: Stage, data: bytes) -> None:
        """The write is about to be made."""

    def after(self, stage: Stage, data: bytes) -> None:
        """The write was made."""

    def read(self, stage: Stage, name: str, data: bytes) -> bytes | None:
        """Return what a reader of the exchange gets."""
        return data


class Stage:
    """All disks of a village, and who is at work.

    Parameters
    ----------
    patch : MonkeyPatch
        Undone when the run was played.
    village : FaultyVillage
    faults : tuple of Fault
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, village: FaultyVillage, faults: tuple[Fault, ...] = ()
    ) -> None:
        self.village, self.faults = village, faults
        village.sleepers = {fault.at.who: Sleeper() for fault in faults if fault.sleeps}
        self.writes: dict[Write, None] = {}
        self.sent: dict[tuple[str, str], set[bytes]] = defaultdict(set)
        self.full_until: dict[str, float] = {}
        self.gone: set[str] = set()
        self._local = threading.local()
        village.stage = self
        self._watch_exchange(patch)
        self._watch_disks(patch)
        self._limit_disks(patch)

    @property
    def now(self) -> float:
        return self.village.ticks.now

    @property
    def at_work(self) -> str:
        """The party whose code runs, in this thread."""
        return getattr(self._local, "who", CENTRE)

    @at_work.setter
    def at_work(self, who: str) -> None:
        self._local.who = who

    def path(self, name: str) -> Path:
        """Where the exchange keeps a message."""
        return Path(self.village.place.files.exchange) / name

    def spare(self, seconds: float) -> None:
        """Leave the party at work asleep; the others go on."""
        self.village.sleep(self.at_work, seconds)

    # -- the party's writes, one by one -----------------------------------------------------

    def write(self, where: str, what: str, data: bytes, act: Callable[[], _T]) -> _T:
        """Make a write of the party at work, and let the faults that wait for it happen."""
        write = Write(self.at_work, where, what)
        self.writes.setdefault(write)
        due = [f for f in self.faults if f.at == write and not f.over]
        for fault in due:
            fault.over = True
            fault.before(self, data)
        result = act()
        if where == "exchange":
            self.sent[write.who, what].add(data)
        for fault in due:
            fault.after(self, data)
        if write == NAMED:
            for fault in self.faults:
                fault.begin(self)
        return result

    def _watch_exchange(self, patch: pytest.MonkeyPatch) -> None:
        put, get = DirectoryExchange.put, DirectoryExchange.get

        def watched_put(exchange: DirectoryExchange, name: str, data: bytes) -> None:
            self.write("exchange", name, bytes(data), lambda: put(exchange, name, data))

        def watched_get(exchange: DirectoryExchange, name: str, limit: int) -> bytes | None:
            found = get(exchange, name, limit)
            for fault in self.faults:
                found = found if found is None else fault.read(self, name, found)
            return found

        patch.setattr(DirectoryExchange, "pace", _PACE)
        patch.setattr(DirectoryExchange, "put", watched_put)
        patch.setattr(DirectoryExchange, "get", watched_get)

    def _watch_disks(self, patch: pytest.MonkeyPatch) -> None:
        save, real = (
            MessageStore.save_all,
            {name: getattr(Ledger, name) for name in ("reserve", "spend")},
        )
        cache, atomically = BlockCache._write, transcript.write_bytes

        def watched_save(store: MessageStore, run: str, messages: Mapping[str, bytes]) -> None:
            what = f"{run}/{list(messages)[-1]}"
            self.write("store", what, b"", lambda: save(store, run, messages))

        def watched(event: str) -> Callable[..., Any]:
            def act(ledger: Ledger, charge: Charge, *rest: Any) -> Any:
                what = f"{charge.run}/{charge.round}/{event}"
                return self.write("ledger", what, b"", lambda: real[event](ledger, charge, *rest))

            return act

        def watched_write(path: Path, data: bytes) -> None:
            self.write("folder", path.name, data, lambda: atomically(path, data))

        def watched_cache(folder: BlockCache, path: Path, block: Any) -> None:
            def act() -> None:
                self.check_space()
                cache(folder, path, block)

            self.write("cache", "block", b"", act)

        patch.setattr(MessageStore, "save_all", watched_save)
        patch.setattr(Ledger, "reserve", watched("reserve"))
        patch.setattr(Ledger, "spend", watched("spend"))
        patch.setattr(BlockCache, "_write", watched_cache)
        for module in (transcript, wait_file, run_folder):
            patch.setattr(module, "write_bytes", watched_write)

    # -- disks that can be full -------------------------------------------------------------

    def check_space(self) -> None:
        """Fail as a full disk does, if that of the party at work is full now."""
        if self.now < self.full_until.get(self.at_work, -1.0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _limit_disks(self, patch: pytest.MonkeyPatch) -> None:
        stage, write_bytes, fsync = self, Path.write_bytes, os.fsync
        place = directory._place

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                if sql.startswith(("INSERT", "COMMIT")):
                    self._check_space()
                return super().execute(sql, *parameters)

            def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
                self._check_space()
                return super().executemany(sql, rows)

            def _check_space(self) -> None:
                try:
                    stage.check_space()
                except OSError:
                    raise sqlite3.OperationalError("database or disk is full") from None

        def limited_write(path: Path, data: bytes) -> int:
            stage.check_space()
            return write_bytes(path, data)

        def limited_place(folder: int, target: str, data: bytes) -> None:
            stage.check_space()
            place(folder, target, data)

        def limited_fsync(handle: int) -> None:
            stage.check_space()
            fsync(handle)

        connect = sqlite3.connect
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Connection, **k))
        patch.setattr(Path, "write_bytes", limited_write)
        patch.setattr(directory, "_place", limited_place)
        patch.setattr(os, "fsync", limited_fsync)


class Sleeper:
    """A party's work in a thread that can be left asleep in its middle; it never runs unseen."""

    def __init__(self) -> None:
        self.until = 0.0
        self.asleep = False
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._failure: BaseException | None = None

    def run(self, act: Callable[[], object]) -> None:
        """Start the work, or go on with it if it sleeps; return when it ends or falls asleep."""
        if self.asleep:
            self.asleep = False
            self._turn.release()
        else:
            threading.Thread(target=self._work, args=(act,), daemon=True).start()
        self._back.acquire()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def sleep(self, until: float) -> None:
        """Fall asleep; called by the work itself."""
        self.until, self.asleep = until, True
        self._back.release()
        self._turn.acquire()

    def _work(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as failure:  # it is raised where the work is looked at
            self._failure = failure
        self._back.release()


@dataclass
class FaultyVillage(LocalConsortium):
    """A village in which parties die, sleep and come back."""

    stage: Stage = field(init=False)
    sleepers: dict[str, Sleeper] = field(default_factory=dict)

    def pump(self) -> None:
        """Let every agent that is there and awake work until it has nothing to do."""
        for name in self.study.sites:
            if name not in self.absent | self.stage.gone:
                self._let_work(name)
        self.stage.at_work = CENTRE

    def _let_work(self, name: str) -> None:
        sleeper = self.sleepers.get(name)
        try:
            if sleeper is None:
                self._work(name)
            elif not sleeper.asleep or self.ticks.now >= sleeper.until:
                sleeper.run(lambda: self._work(name))
        except Died:
            self.agents.pop(name, None)  # built again from its folder at the next look

    def _work(self, name: str) -> None:
        self.stage.at_work = name
        try:
            if name not in self.agents:
                self.agent(name)._begin()
        except ConsortiumError as error:  # the service ends and is started again
            self.log.append((name, str(error)))
            self.agents.pop(name, None)
            return
        while self.agents[name].round_trip():
            pass

    def sleep(self, who: str, seconds: float) -> None:
        """Put the party at work to sleep."""
        until = self.ticks.now + seconds
        if who != CENTRE:
            self.sleepers[who].sleep(until)
        while who == CENTRE and self.ticks.now < until:
            self.ticks.pause(1.0)

    def wake_all(self) -> None:
        """Let the sleeping finish what they were about."""
        for name, sleeper in self.sleepers.items():
            if sleeper.asleep:
                sleeper.until = 0.0
                self._let_work(name)
        self.sleepers.clear()
        self.stage.at_work = CENTRE

    def restart(self) -> None:
        """Build every party again from its disk, those that were gone, too."""
        self.wake_all()
        self.stage.gone.clear()
        self.agents.clear()

    def carry_out(self) -> dict[str, bytes] | ConsortiumError:
        """Do what the command ``run`` does, given again whenever the centre was killed."""
        while True:
            self.stage.at_work = CENTRE
            try:
                return self._conduct()
            except Died:
                if CENTRE in self.stage.gone:
                    raise
            except ConsortiumError as error:
                return error

    def _conduct(self) -> dict[str, bytes]:
        centre = self.centre()
        try:
            return conduct(centre)
        except (ExchangeError, OutputError):  # the same command takes the run up again
            raise
        except ConsortiumError as error:
            centre.abort(error)
            raise
