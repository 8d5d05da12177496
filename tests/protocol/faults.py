"""Faults made to happen to one party at one of its writes, while a whole run is played.

A `Stage` stands between the parties and all that they write and read; a fault is told of each.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from consortium.errors import ConsortiumError, ExchangeError, OutputError
from consortium.exchange import DirectoryExchange, directory
from tests.protocol.watched import CENTRE, Died, Watcher, Write
from tests.support.local_consortium import LocalConsortium, conduct

SELDOM = 0.4
"""Seconds between two looks at the exchange: with fewer looks a run is played sooner."""
_Done = TypeVar("_Done")


NAMED = Write(CENTRE, "folder", "run.json")


class Fault:
    """Something that goes wrong once, at one write."""

    sleeps = False
    """Whether it leaves a party asleep in the middle of its work."""

    def __init__(self, at: Write) -> None:
        self.at = at
        self.over = False

    def strikes(self, write: Write) -> bool:
        """Whether it happens at this write; it does so once."""
        due = self.at == write and not self.over
        self.over = self.over or due
        return due

    def begin(self, stage: Stage) -> None:
        """The run has its name, and nothing of it is on the exchange yet."""

    def before(self, stage: Stage, data: bytes) -> None:
        """The write is about to be made."""

    def after(self, stage: Stage, data: bytes) -> None:
        """The write was made."""

    def read(self, stage: Stage, name: str, data: bytes) -> bytes | None:
        """Return what a reader of the exchange gets."""
        return data


class Stage(Watcher):
    """All disks of a consortium, and who is at work.

    Parameters
    ----------
    patch : MonkeyPatch
        Undone when the run was played.
    parties : FaultyConsortium
    faults : tuple of Fault
    pace : float
        Seconds between two looks at the exchange.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        parties: FaultyConsortium,
        faults: tuple[Fault, ...] = (),
        pace: float = SELDOM,
    ) -> None:
        self.parties, self.faults = parties, faults
        parties.sleepers = {fault.at.who: Sleeper() for fault in faults if fault.sleeps}
        self.writes: dict[Write, None] = {}
        self.sent: dict[tuple[str, str], set[bytes]] = defaultdict(set)
        self.full_until: dict[str, float] = {}
        self.gone: set[str] = set()
        parties.stage = self
        super().__init__(patch)
        patch.setattr(DirectoryExchange, "pace", pace)
        self._limit_disks(patch)

    @property
    def now(self) -> float:
        return self.parties.ticks.now

    def path(self, name: str) -> Path:
        """Where the exchange keeps a message."""
        return Path(self.parties.place.files.exchange) / name

    def spare(self, seconds: float) -> None:
        """Leave the party at work asleep; the others go on."""
        self.parties.sleep(self.at_work, seconds)

    # -- the party's writes, one by one -----------------------------------------------------

    def write(self, write: Write, data: bytes, act: Callable[[], _Done]) -> _Done:
        """Make a write of the party at work, and let the faults that wait for it happen."""
        self.writes.setdefault(write)
        due = [fault for fault in self.faults if fault.strikes(write)]
        for fault in due:
            fault.before(self, data)
        result = act()
        if write.where == "exchange":
            self.sent[write.who, write.what].add(data)
        for fault in due:
            fault.after(self, data)
        if write == NAMED:
            for fault in self.faults:
                fault.begin(self)
        return result

    def read(self, name: str, data: bytes | None) -> bytes | None:
        """Return what the faults make of a message."""
        for fault in self.faults:
            data = data if data is None else fault.read(self, name, data)
        return data

    def fill(self) -> None:
        """Fail as a full disk does."""
        self.check_space()

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

        def limited_place(folder: int, target: str, *rest: Any) -> None:
            stage.check_space()
            place(folder, target, *rest)

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
class FaultyConsortium(LocalConsortium):
    """Parties that die, sleep, stay away and come back."""

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
