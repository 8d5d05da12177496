"""The ledger: check, reserve, spend; each round once, each consortium for itself."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import BudgetError, LedgerError
from site_agent.ledger.ledger import Charge, Ledger
from tests.support.charges import up_to

SITE, CENTRE, QUERY = "5a" * 32, "ce" * 32, "9e" * 32
CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *(SITE, CENTRE, QUERY, 0.05),
)


@pytest.mark.parametrize("field", ["site", "centre", "run"])
def test_a_run_of_the_same_name_elsewhere_pays_for_itself(tmp_path: Path, field: str) -> None:
    """Two consortia may name their runs alike; two agents may answer the same run."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    # Alike in the first 16 digits, as somebody who makes keys can arrange.
    other = replace(CHARGE, **{field: getattr(CHARGE, field)[:16] + "0" * 48})
    assert ledger.reserve(CHARGE, up_to(2.0), "now")
    assert ledger.reserve(other, up_to(2.0), "now")
    assert ledger.total("data", "subject") == pytest.approx(math.hypot(0.6, 0.6))
    ledger.spend(other, "now")
    assert [e.event for e in ledger.entries()] == ["reserve", "reserve", "spend"]


def test_studies_and_runs_are_told_apart_by_consortium(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    other = replace(CHARGE, centre="0" * 64, run="small-0002", mu=0.8)
    again = replace(CHARGE, round=2, mu=0.8)
    for charge in (CHARGE, other, again):
        ledger.reserve(charge, up_to(9.0), "now")
    both = {(CENTRE, "small-0001"), ("0" * 64, "small-0002")}
    assert ledger.runs("small", [CENTRE, "0" * 64]) == both
    assert ledger.runs("small", [CENTRE]) == {(CENTRE, "small-0001")}
    assert ledger.runs("other", [CENTRE]) == set()
    for centres, mu in (([CENTRE], 1.0), (["0" * 64], 0.8), ([CENTRE, "0" * 64], 1.64**0.5)):
        assert ledger.study_total("data", "subject", "small", centres) == pytest.approx(mu)
    assert ledger.study_total("data", "subject", "other", [CENTRE]) == 0.0


def test_a_round_is_charged_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.reserve(CHARGE, up_to(1.0), "now")
    assert not ledger.reserve(CHARGE, up_to(1.0), "later")
    for _ in range(2):
        ledger.spend(CHARGE, "later")
    assert [e.event for e in ledger.entries()] == ["reserve", "spend"]
    assert ledger.total("data", "subject") == 0.6


CHANGES = ({"mu": 0.1}, {"statistic": "x"}, {"stage": "ica"}, {"query": "0" * 64}, {"unit": "x"})


@pytest.mark.parametrize("change", CHANGES)
def test_a_round_has_one_price_and_one_question(tmp_path: Path, change: dict[str, object]) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.reserve(CHARGE, up_to(1.0), "now")
    with pytest.raises(LedgerError, match="reserved at another price"):
        ledger.reserve(replace(CHARGE, **change), up_to(1.0), "now")  # type: ignore[arg-type]
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
            ledger.reserve(replace(CHARGE, round=number, mu=mu), up_to(limit), "now")
            taken += mu * mu
            assert fits or math.isclose(taken, limit * limit)
        except BudgetError:
            assert not fits
    assert ledger.total("data", "subject") == pytest.approx(math.sqrt(taken))


@pytest.mark.parametrize("mu", [math.nan, math.inf, -0.1])
def test_a_price_that_is_no_price_is_refused(tmp_path: Path, mu: float) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(BudgetError, match="is no price"):
        ledger.reserve(replace(CHARGE, mu=mu), up_to(1.0), "now")
    assert ledger.entries() == []


def test_head_and_digests_are_those_of_the_lines(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert (ledger.head().seq, ledger.digest_at(1)) == (0, None)
    ledger.reserve(CHARGE, up_to(9.0), "now")
    ledger.spend(CHARGE, "now")
    first, last = ledger.entries()
    assert (last.previous, ledger.head()) == (first.digest, last.head)
    assert [ledger.digest_at(seq) for seq in (1, 2, 3)] == [first.digest, last.digest, None]


def test_what_is_taken_back_counts_nowhere_and_is_never_paid_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    first, second = replace(CHARGE, round=1), replace(CHARGE, round=2, mu=0.1)
    ledger.reserve(second, up_to(9), "now")
    ledger.reserve(first, up_to(9), "now")
    ledger.take_back(first, "now")
    ledger.take_back(first, "now")  # as after a crash
    ledger.verify()
    assert [line.event for line in ledger.entries()] == ["reserve", "reserve", "void"]
    for book in (ledger, Ledger(ledger.path)):
        assert book.total(CHARGE.dataset, CHARGE.unit) == second.mu  # to the last bit
        assert book.outsider_total(CHARGE.unit) == second.outsider
        with pytest.raises(LedgerError, match="is not paid for again"):
            book.reserve(first, up_to(9), "now")
        with pytest.raises(LedgerError, match="was taken back and can't be answered"):
            book.spend(first, "now")


def test_a_run_that_was_taken_back_whole_never_was(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.reserve(CHARGE, up_to(9), "now")
    assert ledger.runs(CHARGE.study, [CHARGE.centre])
    ledger.take_back(CHARGE, "now")
    assert ledger.runs(CHARGE.study, [CHARGE.centre]) == set()


def test_what_was_answered_is_not_taken_back(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(LedgerError, match="can't be taken back"):
        ledger.take_back(CHARGE, "now")
    ledger.reserve(CHARGE, up_to(9), "now")
    ledger.spend_soon(CHARGE, "now")
    with pytest.raises(LedgerError, match="can't be taken back"):
        ledger.take_back(CHARGE, "now")
    assert ledger.total(CHARGE.dataset, CHARGE.unit) == CHARGE.mu


def test_a_refusal_undoes_no_mark_and_the_ledger_goes_on(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.reserve(CHARGE, up_to(9), "now")
    ledger.spend_soon(CHARGE, "now")
    with pytest.raises(BudgetError):
        ledger.reserve(replace(CHARGE, round=2), up_to(CHARGE.mu), "now")
    ledger.reserve(replace(CHARGE, round=3), up_to(9), "now")
    assert [line.event for line in ledger.entries()] == ["reserve", "spend", "reserve"]
