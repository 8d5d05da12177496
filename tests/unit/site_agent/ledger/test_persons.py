"""Losses are kept by person: whose data they are decides, not where they lie."""

import math
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.errors import LedgerError
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits, accounts
from site_agent.ledger.limits import OneStudy
from site_agent.ledger.persons import exact_root, exact_square, key_path
from site_agent.policy.policy import Policy
from tests.support.charges import charged, held, up_to, write_lines

PRICES = st.floats(0, 1e150, allow_subnormal=True)
SITE, CENTRE, QUERY = "5a" * 32, "ce" * 32, "9e" * 32
CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *(SITE, CENTRE, QUERY, 0.5),
)
EVERYBODY = ["01", "02", "03", "04"]


@given(st.lists(PRICES, max_size=8), PRICES)
def test_what_is_added_is_taken_away_to_the_last_bit(prices: list[float], other: float) -> None:
    before = sum(map(exact_square, prices))
    assert before + exact_square(other) - exact_square(other) == before
    assert before == sum((Fraction(mu) ** 2 for mu in prices), Fraction()) * 2**2148


@given(PRICES)
def test_one_price_is_its_own_sum(mu: float) -> None:
    square = exact_square(mu)
    assert exact_root(square) == pytest.approx(mu, rel=1e-15) or mu < 1e-150  # squares underflow


def test_what_no_double_holds_is_more_than_any_limit() -> None:
    assert exact_root(2 * exact_square(1.7e308)) == math.inf


@pytest.mark.parametrize("mu", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_price(mu: float) -> None:
    with pytest.raises(LedgerError, match="not a privacy loss"):
        exact_square(mu)


def _reserve(ledger: Ledger, people: list[str], number: int, **more: object) -> Charge:
    """Charge a run of its own."""
    run = replace(CHARGE, run=f"small-{number:04}", **more)  # type: ignore[arg-type]
    return charged(ledger, run, people)


def _charged_of(ledger: Ledger, people: list[str], limits: LedgerLimits, **more: object):
    """Return those of some participants whose budget covers another run."""
    run = replace(CHARGE, run="another", **more)  # type: ignore[arg-type]
    return ledger.members(held(ledger, run, people, limits=limits).persons, people)


def test_what_people_read_is_of_whoever_was_charged_most(tmp_path: Path) -> None:
    """A copy of the data is the same persons; those who came later have not paid for the first."""
    ledger, policy = Ledger(tmp_path / "ledger.sqlite"), Policy()
    _reserve(ledger, ["01", "02"], 1, mu=0.6, outsider=0.3)
    _reserve(ledger, ["02", "03"], 2, mu=0.8, outsider=0.4, dataset="copy")
    _reserve(ledger, ["03", "04"], 3, mu=0.5, outsider=0.2)
    (account,) = accounts(ledger, policy)
    assert account.spent.mu == pytest.approx(1.0)  # of 02, and more than anybody else's
    assert account.outsider.mu == pytest.approx(0.5)
    assert ledger.outsider_total("subject", ["04"]) == pytest.approx(0.2)
    assert ledger.outsider_total("subject", ["99"]) == 0.0


@pytest.mark.parametrize("people", [EVERYBODY, ["02"], ["02", "77"]], ids=str)
def test_a_copy_a_subset_and_another_name_start_no_new_account(
    tmp_path: Path, people: list[str]
) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, EVERYBODY, 1)
    found = _charged_of(ledger, people, up_to(0.7), dataset="/elsewhere/copy", study="other")
    assert found == [each for each in people if each not in EVERYBODY]


def test_new_patients_bring_a_fresh_account(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, EVERYBODY, 1)
    assert _charged_of(ledger, ["05", "06"], up_to(0.7)) == ["05", "06"]
    assert ledger.total("data", "subject", ["05"]) == 0.6
    assert ledger.total("data", "subject", ["09"]) == 0.0


def test_limits_hold_for_who_was_charged_most(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, ["01", "02"], 1, mu=0.3)
    _reserve(ledger, ["02", "03"], 2, mu=0.4)
    assert ledger.total("data", "subject", ["02", "04"]) == pytest.approx(0.5, rel=1e-15)
    assert ledger.total("data", "subject", ["01", "03"]) == pytest.approx(0.4, rel=1e-15)
    assert ledger.over_limit(EVERYBODY, {"subject": 0.5}, "subject", 0.3) == ["02"]
    assert ledger.over_limit(EVERYBODY, {"subject": 0.5}, "subject", 0.31) == ["02", "03"]
    own = OneStudy(CHARGE.study, [CHARGE.centre], 0.45)
    assert ledger.over_limit(EVERYBODY, {"subject": 9.0}, "subject", 0.3, own) == ["02", "03"]
    other = OneStudy("another", [CHARGE.centre], 0.45)
    assert ledger.over_limit(EVERYBODY, {"subject": 9.0}, "subject", 0.3, other) == []


def test_lines_of_before_count_for_everybody(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    write_lines(ledger.path, CHARGE, "reserve")
    assert ledger.total("elsewhere", "subject", ["99"]) == 0.6
    assert _charged_of(ledger, ["99"], up_to(0.7)) == []
    assert ledger.over_limit(["99"], {"subject": 0.7}, "subject", 0.6) == ["99"]


def test_what_a_study_costs_is_counted_by_person_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, ["01", "02"], 1)
    assert _charged_of(ledger, ["02", "03"], replace(up_to(9), study=0.7)) == ["03"]


def test_a_copy_of_the_ledger_names_nobody(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, ["anna-1970"], 1)
    ledger.settle()
    ledger.close()
    content = b"".join(path.read_bytes() for path in tmp_path.glob("ledger.sqlite*"))
    assert b"anna-1970" not in content
    assert key_path(ledger.path).stat().st_mode & 0o777 == 0o600
    other = Ledger(tmp_path / "other.sqlite")
    assert other.enroll(["anna-1970"]) != Ledger(ledger.path).enroll(["anna-1970"])


@pytest.mark.parametrize("damage", ["lost", "another", "short"])
def test_without_its_key_nobody_is_new(tmp_path: Path, damage: str) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, EVERYBODY, 1)
    path = key_path(ledger.path)
    path.unlink()
    if damage != "lost":
        path.write_bytes(bytes(32 if damage == "another" else 5))
    with pytest.raises(LedgerError, match=r"Restore it from a backup"):
        ledger.enroll(["05"])
    with pytest.raises(LedgerError, match=r"Restore it from a backup"):
        Ledger(ledger.path).total("data", "subject", ["01"])


def test_a_person_taken_out_of_a_group_shows(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, EVERYBODY, 1)
    fewer = ledger.enroll(EVERYBODY[:1])
    ledger.close()
    with sqlite3.connect(ledger.path) as connection:
        smaller = "(SELECT members FROM groups WHERE digest = ?)"
        connection.execute(f"UPDATE groups SET members = {smaller}", (fewer,))
    with pytest.raises(LedgerError, match="participants of a charge were altered"):
        Ledger(ledger.path).total("data", "subject", ["01"])


def test_what_is_taken_back_is_nobodys(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    _reserve(ledger, EVERYBODY, 1, mu=0.1)
    ledger.take_back(_reserve(ledger, ["02"], 2), "now")
    assert ledger.total("data", "subject", EVERYBODY) == 0.1


def test_a_folder_whose_name_is_no_text_is_a_person_like_any_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    label = b"\xff7".decode(errors="surrogateescape")  # as Path.glob gives it
    assert ledger.over_limit([label], {"subject": 0.7}, "subject", 0.6) == []
    _reserve(ledger, [label, "02"], 1)
    assert ledger.over_limit([label, "7"], {"subject": 0.7}, "subject", 0.6) == [label]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 6), min_size=1), st.floats(1e-6, 3)),
        min_size=1,
        max_size=9,
    )
)
def test_every_total_is_the_exact_one(
    tmp_path_factory: pytest.TempPathFactory, charges: list[tuple[set[int], float]]
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("exact") / "ledger.sqlite")
    exact = dict.fromkeys(range(7), Fraction())
    for number, (people, mu) in enumerate(charges, start=1):
        _reserve(ledger, [str(p) for p in people], number, mu=mu)
        for person in people:
            exact[person] += Fraction(mu) ** 2
    for book in (ledger, Ledger(ledger.path)):
        for person, total in exact.items():
            found = book.total("data", "subject", [str(person)])
            assert found == math.sqrt(float(total))
        assert book.total("data", "subject", [str(p) for p in range(7)]) == math.sqrt(
            float(max(exact.values()))
        )
