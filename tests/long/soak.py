"""``python -m tests.long.soak [ROUNDS [SEED]]``: one long run under random faults.

A study of so many rounds (2000 if not given) with faults that are drawn at random. After each tenth
of them a line tells the faults so far, the memory and the open files of the process, and the time
that a round took. Exits with 1 if the run ended early, a ledger charged a round twice, a name was
given two messages, a secret stands in a log, an agent failed, the result is not that of the
transcript, or the memory or the open files grew.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from consortium.errors import ConsortiumError, ExchangeError, OutputError

if TYPE_CHECKING:
    from consortium.engine.centre import Centre
    from tests.long.random_faults import RandomFaults
    from tests.long.restarting_consortium import RestartingConsortium

ROUNDS, SAMPLES = 2000, 10
MOST_FILES = 4
MOST_OBJECTS = 45
"""A round, in the second half. Five parties must remember of each round that they answered it and
what: 35 objects, 2.5 kB. It is the median of the steps between two samples, since what is kept of
every round shows in all of them and what a restart leaves for a while in one."""
MOST_GROWTH = 12.0
"""kB a round, in the median step: objects, and the pages that restarts in this one process leave in
part. Python's own table of names, which holds the parts of each path that was ever opened, grows by
4 MB and more in one step, and not again for long."""


class Sample(NamedTuple):
    """The process after some rounds; memory in MB, time of a round in ms."""

    rounds: int
    faults: int
    memory: float
    objects: int
    files: int
    milliseconds: float


class Growth(NamedTuple):
    """What was added: memory in MB and, in the median step, kB and objects a round; open files."""

    memory: float
    median: float
    objects: float
    files: int

    def problems(self) -> list[str]:
        """What is too much of it."""
        found = {
            f"memory grew by {self.median:.1f} kB a round": self.median > MOST_GROWTH,
            f"{self.objects:.0f} objects stay of each round": self.objects > MOST_OBJECTS,
            f"{self.files} more files are open": self.files > MOST_FILES,
        }
        return [problem for problem, there in found.items() if there]


class Soak:
    """One consortium, and what was seen of it.

    Parameters
    ----------
    parties : RestartingConsortium
    faults : RandomFaults
    secrets : dict
        Filled by those who make them; emptied here after each round.
    every : int
        Rounds between two looks at the process.
    out : Console
    """

    def __init__(
        self,
        parties: RestartingConsortium,
        faults: RandomFaults,
        secrets: dict[str, list[bytes]],
        every: int,
        out: Console,
    ) -> None:
        self.problems: list[str] = []
        self.samples: list[Sample] = []
        self.missed = self.restarts = 0
        self._parties, self._faults, self._secrets, self._out = parties, faults, secrets, out
        self._every, self._since = every, time.monotonic()

    def play(self) -> dict[str, bytes]:
        """Run the study to its end, the centre taken up again whenever it stopped."""
        from tests.protocol.watched import Died

        while True:
            try:
                centre = self._parties.centre()
                return self._rounds(centre)
            except Died:
                self.restarts += 1
            except (ExchangeError, OutputError):  # the same command takes the run up again
                self.restarts += 1
                self._parties.ticks.pause(0.25)

    def _rounds(self, centre: Centre) -> dict[str, bytes]:
        centre.open()
        session = centre.session
        assert session is not None
        while session.pending is not None:
            self._faults.turn()
            done = centre.step()
            complete = len(done.survivors) == len(self._parties.study.sites)
            self.missed += not complete
            self._faults.cleared(complete)
            self._look(done.number)
        return {name: array.tobytes() for name, array in centre.finish().arrays.items()}

    def _look(self, number: int) -> None:
        """Read what was told in a round, and forget it."""
        from tests.protocol.fault_cells import leaks

        parties = self._parties
        self.problems += leaks(parties, self._secrets, "")
        self.problems += [line for _, line in parties.log if "fault of the software" in line]
        self.problems += [line for _, line in parties.log if "no further" in line]
        parties.log.clear()
        self._secrets.clear()
        if number % self._every == 0:
            self._sample(number)

    def _sample(self, number: int) -> None:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what restarts in this one process have freed
        now = time.monotonic()
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names, not paths
        spent = 1e3 * (now - self._since) / self._every
        objects = sys.getallocatedblocks()
        sample = Sample(number, self._faults.counts.total(), memory(), objects, files, spent)
        self.samples.append(sample)
        self._out.print(
            f"{sample.rounds:6d} rounds {sample.faults:5d} faults {sample.memory:7.1f} MB "
            f"{sample.files:4d} files {sample.milliseconds:7.1f} ms a round"
        )
        self._since = time.monotonic()


def growth(samples: list[Sample]) -> Growth:
    """What the second half of a run added."""
    later = [s for s in samples if 2 * s.rounds >= samples[-1].rounds]
    steps = [
        (1e3 * (b.memory - a.memory) / rounds, (b.objects - a.objects) / rounds)
        for a, b in pairwise(later)
        if (rounds := b.rounds - a.rounds)
    ]
    memory, objects = (median(each) for each in zip(*steps, strict=True))
    last, first = later[-1], later[0]
    return Growth(last.memory - first.memory, memory, objects, last.files - first.files)


def memory() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def judge(parties: RestartingConsortium, result: dict[str, bytes], rounds: int) -> list[str]:
    """What is wrong with the end: the result, or a ledger."""
    from tests.support.local_consortium import conduct

    again = parties.centre()
    found = [] if conduct(again) == result else ["the transcript gives another result"]
    assert again.session is not None
    done = again.session.rounds
    found += [] if len(done) == rounds else [f"{len(done)} rounds in the transcript"]
    for number, site in enumerate(parties.study.sites):
        found += books(parties, site, {r.number for r in done if number in r.survivors})
    return found


def books(parties: RestartingConsortium, site: str, summed: set[int]) -> list[str]:
    """What is wrong in a ledger: a round twice, or a sum with the site that was not charged."""
    from tests.support.forgery import ledger

    lines = [(e.charge.round, e.event) for e in ledger(parties.place, site)]
    found = [f"{site} was charged twice"] if len(set(lines)) < len(lines) else []
    missing = {(number, event) for number in summed for event in ("reserve", "spend")} - {*lines}
    return found + ([f"{site}: not charged for {sorted(missing)[:4]}"] if missing else [])


def settle(root: Path, rounds: int) -> RestartingConsortium:
    """Build a consortium with a study of so many rounds, of which one site may be missing."""
    from tests.long.restarting_consortium import RestartingConsortium
    from tests.support.local_consortium import SITES, STUDY, build, limit

    text = STUDY.replace("rounds: 2", f"rounds: {rounds - 1}").replace("epsilon: 8", "epsilon: 90")
    text = text.replace("answer: 4", "answer: 4, late: 1")
    place = build(root / "place", dropouts=1, text=text)
    for site in SITES:
        limit(place, site, 100)
    return RestartingConsortium(place)


def play(rounds: int, seed: int, out: Console) -> list[str]:
    """Play a run; returns what was wrong."""
    import pytest

    from tests.long.random_faults import RandomFaults
    from tests.support.exchange_operator import note_secrets

    secrets: dict[str, list[bytes]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        parties = settle(Path(folder), rounds)
        said = Path(folder) / "said"
        said.mkdir()
        note_secrets(patch, secrets)
        faults = RandomFaults(patch, parties, random.Random(seed), said)
        soak = Soak(parties, faults, secrets, max(1, rounds // SAMPLES), out)
        try:
            result = soak.play()
        except ConsortiumError as error:
            return [*soak.problems, f"the run ended early: {error}"]
        patch.undo()
        parties.away.clear()
        for _ in range(3):
            parties.pump()  # the sites hear of the end
        out.print(dict(faults.counts))
        out.print(f"{soak.missed} rounds without a site, {soak.restarts} restarts of the centre")
        problems = [*soak.problems, *(f"{name} was said twice" for name in faults.twice)]
        more = growth(soak.samples)
        out.print(
            f"second half: {more.memory:+.1f} MB, {more.median:+.1f} kB and {more.objects:+.0f} "
            f"objects a round in the median step, {more.files:+d} files"
        )
        return problems + judge(parties, result, rounds) + more.problems()


def main(rounds: int = ROUNDS, seed: int = 1) -> int:
    """Play and judge; returns the exit code."""
    out = Console(width=max(120, Console().width))
    out.print(f"{rounds} rounds, seed {seed}")
    problems = play(rounds, seed, out)
    for problem in problems:
        out.print(problem)
    out.print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
