"""Several agents in processes of their own on one ledger: together they never pass the limit."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import threading
from collections import defaultdict
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from site_agent.ledger.file import LedgerFile
from site_agent.ledger.ledger import Charge, Ledger, LedgerEntry
from tests.support.charges import held, up_to, whole_run
from tests.support.patience import PATIENCE

SITE, CENTRE, QUERY = "5a" * 32, "ce" * 32, "9e" * 32
CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *(SITE, CENTRE, QUERY, 0.05),
)
EVERYBODY = ["01", "02", "03", "04"]
LIMIT, WHOLE, ROUND = 1.0, 0.4, 0.2
# A forked copy of a process that has used Prefect ends with exit code 1 whatever it did.
CONTEXT = multiprocessing.get_context("spawn")
AGENTS = [(site * 32, centre * 32) for site in ("1a", "2b") for centre in ("c1", "c2")]


def _take_part(path: str, which: int, together: Barrier) -> None:
    """Take part in six runs of two rounds, each at the same time as another run of every agent.

    The second round of every other run is made void.
    """
    site, centre = AGENTS[which]
    ledger, drawn = Ledger(Path(path)), random.Random(which)
    for number in range(6):
        # All consortia and agents give their runs the same names.
        charge = replace(CHARGE, site=site, centre=centre, run=f"small-{number:04}", mu=ROUND)
        people = drawn.sample(EVERYBODY, 3)
        together.wait(PATIENCE)
        group, _ = ledger.hold(whole_run(charge, WHOLE), people, up_to(LIMIT), "now")
        together.wait(PATIENCE)
        for each in (1, 2):
            charge = replace(charge, round=each, persons=group)
            assert ledger.reserve(charge, "now")
            if each == 2 and number % 2:
                ledger.take_back(charge, "now")
            else:
                ledger.spend_soon(charge, "now")
        ledger.settle()
        together.wait(PATIENCE)
        if which % 2:  # with one centre's agent the release comes before the other's next hold
            ledger.release(charge.run, site, "now")
    for number in range(6):
        ledger.release(f"small-{number:04}", site, "now")


def _losses(entries: list[LedgerEntry], ledger: Ledger) -> list[dict[str, float]]:
    """Compute the squared loss of each participant after each line, without the ledger's sums."""
    held: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    ended: list[tuple[str, float]] = []
    found = []
    for entry in entries:
        charge = entry.charge
        key, loss = (charge.site, charge.centre, charge.run), (charge.persons, charge.mu**2)
        if entry.event == "hold":
            held[key] = [loss]
        elif entry.event == "reserve":
            held[key].append(loss)  # an error for a round without a hold
        elif entry.event == "void":
            held[key].remove(loss)
        elif entry.event == "release":
            ended += held.pop(key)[1:]
        spent: dict[str, float] = defaultdict(float)
        for group, square in (*(whole[0] for whole in held.values()), *ended):
            for label in ledger.members(group, EVERYBODY):
                spent[label] += square
        found.append(spent)
    assert not held
    return found


def _open(folder: str, together: Barrier) -> None:
    for number in range(20):
        together.wait(PATIENCE)
        Ledger(Path(folder) / f"{number}.sqlite").entries()


def test_processes_that_open_a_new_ledger_at_once_all_succeed(tmp_path: Path) -> None:
    """Of the earlier code, one process in a hundred failed with a locked database."""
    together = CONTEXT.Barrier(6)
    openers = [CONTEXT.Process(target=_open, args=(str(tmp_path), together)) for _ in range(6)]
    for each in openers:
        each.start()
    for each in openers:
        each.join(PATIENCE)
    assert [each.exitcode for each in openers] == [0] * len(openers)


def test_agents_of_two_sites_and_two_consortia_never_pass_the_limit(tmp_path: Path) -> None:
    """Four processes make the file, hold, charge and release in any order."""
    path = tmp_path / "ledger.sqlite"
    together = CONTEXT.Barrier(len(AGENTS))
    agents = [
        CONTEXT.Process(target=_take_part, args=(str(path), n, together))
        for n in range(len(AGENTS))
    ]
    for agent in agents:
        agent.start()
    for agent in agents:
        agent.join(PATIENCE)
    assert [agent.exitcode for agent in agents] == [0] * len(AGENTS)
    ledger = Ledger(path)
    entries = ledger.entries()
    assert [entry.event for entry in entries].count("hold") == 6 * len(AGENTS)
    courses = _losses(entries, ledger)
    highest = max(max(spent.values(), default=0.0) for spent in courses)
    assert LIMIT**2 - WHOLE**2 < highest <= LIMIT**2 + 1e-9  # the limit has left somebody out
    for label in EVERYBODY:
        assert ledger.total("data", "subject", [label]) ** 2 == pytest.approx(courses[-1][label])


def test_nobody_holds_between_anothers_sum_and_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents with a ledger object each meet where the sum is compared, if nothing locks."""
    path, meeting = tmp_path / "ledger.sqlite", threading.Barrier(2)
    outcomes: list[list[str]] = []
    real = LedgerFile.over_limit

    def compare(*arguments: object) -> list[str]:
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.5)
        return real(*arguments)  # type: ignore[arg-type]

    def hold(ledger: Ledger, run: str) -> None:
        charge = whole_run(replace(CHARGE, run=run), 0.6)
        outcomes.append(ledger.hold(charge, ["01"], up_to(0.8), "now")[1])

    monkeypatch.setattr(LedgerFile, "over_limit", compare)
    racers = [
        threading.Thread(target=hold, args=(Ledger(path), run)) for run in ("a-0001", "b-0001")
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert meeting.broken
    assert sorted(outcomes) == [[], ["01"]]


def test_a_forked_process_opens_the_file_anew(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    first = held(ledger, CHARGE, loss=2.0)
    ledger.reserve(first, "now")
    child = os.fork()  # what multiprocessing does around it fails where Prefect was used before
    if child == 0:
        try:
            ledger.reserve(replace(first, round=2), "now")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert ledger.reserve(replace(first, round=3), "now")
    assert [e.charge.round for e in ledger.entries()] == [0, 1, 2, 3]
