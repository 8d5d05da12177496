"""Several processes and threads on one ledger: together they never pass the limit."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from consortium.errors import BudgetError, LedgerError
from site_agent.ledger import limits as limits_module
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits
from site_agent.ledger.limits import Sums
from tests.support.charges import up_to
from tests.support.patience import PATIENCE

SITE, CENTRE, QUERY = "5a" * 32, "ce" * 32, "9e" * 32
CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *(SITE, CENTRE, QUERY, 0.05),
)


def _reserve(path: str, run: str, results: multiprocessing.Queue[tuple[int, int]]) -> None:
    ledger, taken, refused = Ledger(Path(path)), 0, 0
    for number in range(1, 41):
        try:
            charge = replace(CHARGE, run=run, round=number, mu=0.1)
            ledger.reserve(charge, up_to(0.8), "now")
            taken += 1
            ledger.spend(charge, "now")
        except BudgetError:
            refused += 1
    results.put((taken, refused))


def test_racing_processes_never_pass_the_limit(tmp_path: Path) -> None:
    """64 charges of 0.1 make 0.8; four processes ask for 160, and make the file besides."""
    path = tmp_path / "ledger.sqlite"
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[tuple[int, int]] = context.Queue()
    racers = [
        context.Process(target=_reserve, args=(str(path), f"{r}-0001", results)) for r in "abcd"
    ]
    for racer in racers:
        racer.start()
    found = [results.get(timeout=PATIENCE) for _ in racers]
    for racer in racers:
        racer.join()
    ledger = Ledger(path)
    assert sum(taken for taken, _ in found) == 64
    assert sum(refused for _, refused in found) == 160 - 64
    assert ledger.total("data", "subject") == pytest.approx(0.8)
    assert [e.event for e in ledger.entries()].count("spend") == 64


def test_nobody_reserves_between_anothers_sum_and_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents with a ledger object each meet where the sum is compared, if nothing locks."""
    path, meeting, outcomes = tmp_path / "ledger.sqlite", threading.Barrier(2), []
    real = limits_module._check_accounts

    def check(sums: Sums, charge: Charge, limits: LedgerLimits, asked: float) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.5)
        real(sums, charge, limits, asked)

    def reserve(ledger: Ledger, run: str) -> None:
        try:
            outcomes.append(ledger.reserve(replace(CHARGE, run=run), up_to(0.8), "now"))
        except (BudgetError, LedgerError) as error:
            outcomes.append(type(error))

    monkeypatch.setattr(limits_module, "_check_accounts", check)
    racers = [
        threading.Thread(target=reserve, args=(Ledger(path), run)) for run in ("a-0001", "b-0001")
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert meeting.broken
    assert set(outcomes) == {True, BudgetError}


def test_a_forked_process_opens_the_file_anew(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.reserve(CHARGE, up_to(9.0), "now")
    child = os.fork()  # what multiprocessing does around it fails where Prefect was used before
    if child == 0:
        try:
            ledger.reserve(replace(CHARGE, round=2), up_to(9.0), "now")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert ledger.reserve(replace(CHARGE, round=3), up_to(9.0), "now")
    assert [e.charge.round for e in ledger.entries()] == [1, 2, 3]
