"""The ledger: check, reserve, spend; one of two wins; an edit shows."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import BudgetError, LedgerError
from site_agent.ledger import Charge, Ledger

CHARGE = Charge("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6)


def _reserve(path: str, run: str, results: multiprocessing.Queue[str]) -> None:
    try:
        Ledger(Path(path)).reserve(replace(CHARGE, run=run), 0.8, "now")
        results.put("reserved")
    except BudgetError:
        results.put("refused")


def test_two_processes_reserve_and_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path)
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = context.Queue()
    runs = ("a-0001", "b-0001")
    racers = [context.Process(target=_reserve, args=(str(path), r, results)) for r in runs]
    for racer in racers:
        racer.start()
    found = sorted(results.get(timeout=30) for _ in racers)
    for racer in racers:
        racer.join()
    assert found == ["refused", "reserved"]
    assert Ledger(path).total("data", "subject") == 0.6


def test_nobody_reserves_between_anothers_sum_and_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, meeting = Ledger(tmp_path / "ledger.sqlite"), threading.Barrier(2)
    real, outcomes = Ledger._total, []

    def total(connection: sqlite3.Connection, dataset: str, unit: str) -> float:
        found = real(connection, dataset, unit)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.5)  # both get here at once only if nothing locks
        return found

    def reserve(run: str) -> None:
        try:
            outcomes.append(ledger.reserve(replace(CHARGE, run=run), 0.8, "now"))
        except (BudgetError, LedgerError) as error:
            outcomes.append(type(error))

    monkeypatch.setattr(Ledger, "_total", staticmethod(total))
    racers = [threading.Thread(target=reserve, args=(run,)) for run in ("a-0001", "b-0001")]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert meeting.broken
    assert set(outcomes) == {True, BudgetError}


def test_a_round_is_charged_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.reserve(CHARGE, 1.0, "now")
    assert not ledger.reserve(CHARGE, 1.0, "later")
    for _ in range(2):
        ledger.spend(CHARGE, "later")
    assert [e.event for e in ledger.entries()] == ["reserve", "spend"]
    assert ledger.total("data", "subject") == 0.6


@pytest.mark.parametrize("change", [{"mu": 0.1}, {"statistic": "x"}, {"stage": "ica"}])
def test_a_round_has_one_price(tmp_path: Path, change: dict[str, object]) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.reserve(CHARGE, 1.0, "now")
    with pytest.raises(LedgerError, match="reserved at another price"):
        ledger.reserve(replace(CHARGE, **change), 1.0, "now")  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="not reserved"):
        ledger.spend(replace(CHARGE, **change), "now")  # type: ignore[arg-type]


def test_what_was_not_reserved_is_not_spent(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="reserve it first"):
        Ledger(tmp_path / "ledger.sqlite").spend(CHARGE, "now")


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), st.floats(0.1, 2.0))
def test_total_never_exceeds_the_limit(tmp_path_factory, prices, limit) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    taken = 0.0
    for number, mu in enumerate(prices, start=1):
        fits = taken + mu * mu <= limit * limit
        try:
            ledger.reserve(replace(CHARGE, round=number, mu=mu), limit, "now")
            taken += mu * mu
            assert fits or math.isclose(taken, limit * limit)
        except BudgetError:
            assert not fits
    assert ledger.total("data", "subject") == pytest.approx(math.sqrt(taken))


@pytest.mark.parametrize("mu", [math.nan, math.inf, -0.1])
def test_a_price_that_is_no_price_is_refused(tmp_path: Path, mu: float) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(BudgetError):
        ledger.check("data", "subject", mu, 1.0)
    with pytest.raises(BudgetError):
        ledger.reserve(replace(CHARGE, mu=mu), 1.0, "now")
    assert ledger.entries() == []


def test_data_sets_and_units_are_apart(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.reserve(CHARGE, 0.7, "now")
    ledger.check("other", "subject", 0.6, 0.7)
    ledger.check("data", "timepoint", 0.6, 0.7)
    with pytest.raises(BudgetError):
        ledger.check("data", "subject", 0.6, 0.7)


EDITS = {
    "cheaper": "UPDATE entries SET mu = 0 WHERE seq = 2",
    "removed": "DELETE FROM entries WHERE seq = 1",
    "renumbered": "UPDATE entries SET seq = 9 WHERE seq = 4",
    "other data set": "UPDATE entries SET dataset = 'x' WHERE seq = 3",
    "other time": "UPDATE entries SET at = 'x' WHERE seq = 3",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_shows_and_allows_nothing(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    for number in (1, 2):
        charge = replace(CHARGE, round=number)
        ledger.reserve(charge, 9.0, "now")
        ledger.spend(charge, "now")
    ledger.check("data", "subject", 0.1, 9.0)
    with sqlite3.connect(path) as connection:
        connection.execute(EDITS[edit])
    with pytest.raises(LedgerError, match="was altered"):
        ledger.entries()
    with pytest.raises(LedgerError, match="was altered"):
        ledger.check("data", "subject", 0.1, 9.0)


def test_written_ahead_and_synchronised(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_is_no_ledger_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"no database" * 500)
    with pytest.raises(LedgerError, match=str(path)):
        Ledger(path)
    with pytest.raises(LedgerError, match="can't be opened"):
        Ledger(tmp_path / "missing" / "ledger.sqlite")
