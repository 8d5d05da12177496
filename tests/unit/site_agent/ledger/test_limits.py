"""Limits bind where a run holds its loss: runs, study, approval and both accounts."""

from __future__ import annotations

import math
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import PrivacyError
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits, accounts
from site_agent.policy.policy import Policy
from tests.support.charges import charged, whole_run
from tests.support.patience import PATIENCE

SITE, CENTRE, OLD = "5a" * 32, "ce" * 32, "0d" * 32
CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *(SITE, CENTRE, "9e" * 32, 0.05),
)
ROOM = LedgerLimits({"subject": 9.0, "timepoint": 9.0})


def run(number: int, **more: object) -> Charge:
    """The first round of a run."""
    return replace(CHARGE, run=f"small-{number:04d}", **more)  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def begin(ledger: Ledger, charge: Charge, limits: LedgerLimits) -> bool:
    """Whether a run holds its loss for its one participant."""
    _, left_out = ledger.hold(whole_run(charge, charge.mu), ["01"], limits, "now")
    return not left_out


def test_no_run_begins_beyond_those_that_were_approved(ledger: Ledger) -> None:
    two = replace(ROOM, runs=2)
    charged(ledger, run(1))
    assert begin(ledger, run(2), two)
    with pytest.raises(PrivacyError, match="approved for 2 runs and had as many"):
        begin(ledger, run(3), two)
    assert begin(ledger, run(2), two)  # what has begun goes on
    assert begin(ledger, run(3, study="other"), two)
    assert begin(ledger, run(1, site="ab" * 32), two)  # another agent in the same run


def test_an_earlier_key_of_the_consortium_has_had_its_runs(ledger: Ledger) -> None:
    both = frozenset({OLD, CENTRE})
    charged(ledger, run(1, centre=OLD), ["01"])
    with pytest.raises(PrivacyError, match="approved for 1 run and had as many"):
        begin(ledger, run(1), replace(ROOM, runs=1, centres=both))
    assert not begin(ledger, run(2), replace(ROOM, study=0.8, centres=both))
    # With the key of another consortium:
    assert begin(ledger, run(1), replace(ROOM, runs=2, study=0.8))


def test_what_has_ended_begins_no_run_and_ends_none(ledger: Ledger) -> None:
    ended = replace(ROOM, ended="It ended. Ask again.")
    with pytest.raises(PrivacyError, match=r"It ended. Ask again"):
        begin(ledger, run(1), ended)
    assert ledger.entries() == []
    assert begin(ledger, run(1), ROOM)
    assert begin(ledger, run(1), ended)


TIGHT = {
    "total": replace(ROOM, totals={"subject": 1.0}),
    "total of volumes": replace(ROOM, totals={"subject": 9.0, "timepoint": 1.0}),
    "study": replace(ROOM, study=1.0),
}


@pytest.mark.parametrize("name", TIGHT)
def test_a_run_has_only_those_who_can_pay_it_to_its_end(name: str, ledger: Ledger) -> None:
    limits = TIGHT[name]
    assert not begin(ledger, run(1, mu=1.2), limits)
    assert begin(ledger, run(2, mu=0.8), limits)
    assert not begin(ledger, run(3, mu=0.61), limits)
    assert begin(ledger, run(4, mu=0.6), limits)


def test_an_account_without_a_limit_has_nothing_to_give(ledger: Ledger) -> None:
    assert not begin(ledger, replace(CHARGE, unit="timepoint"), LedgerLimits({"subject": 9.0}))


PRICES = st.lists(
    st.tuples(st.sampled_from(["subject", "timepoint"]), st.floats(0.01, 1.0)), max_size=8
)


@given(PRICES)
def test_a_volume_has_paid_for_both_units_and_a_person_for_one(tmp_path_factory, prices) -> None:
    """√(μ_t² + μ_s²) is what a volume lost, in any order of charges; pages say the same."""
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    for number, (unit, mu) in enumerate(prices, start=1):
        charged(ledger, run(number, unit=unit, mu=mu, outsider=mu / 2))
    both = {"timepoint": math.hypot(*(mu for _, mu in prices))}
    both["subject"] = math.hypot(*(mu for unit, mu in prices if unit == "subject"))
    policy = Policy(units=("subject", "timepoint"))
    for account in accounts(ledger, policy):
        mu = both[account.unit]
        assert account.spent.mu == pytest.approx(mu)
        assert ledger.total("data", account.unit) == pytest.approx(mu)
        assert ledger.outsider_total(account.unit) == pytest.approx(mu / 2)
        assert account.outsider.mu == pytest.approx(mu / 2)
        study = ledger.study_total("data", account.unit, "small", [CENTRE])
        assert study == pytest.approx(mu)


def test_a_volumes_limit_binds_studies_of_persons_in_any_order(tmp_path: Path) -> None:
    limits = LedgerLimits({"subject": 1.0, "timepoint": 1.0})
    for units in (("subject", "timepoint"), ("timepoint", "subject")):
        ledger = Ledger(tmp_path / f"{units[0]}.sqlite")
        first, second = (replace(run(n, mu=0.8), unit=u) for n, u in enumerate(units, start=1))
        assert begin(ledger, first, limits)
        assert not begin(ledger, second, limits)


def _begin(path: str, first: int, results: multiprocessing.Queue[int]) -> None:
    ledger, begun = Ledger(Path(path)), 0
    for number in range(first, first + 10):
        try:
            begun += begin(ledger, run(number, mu=0.01), replace(ROOM, runs=3))
        except PrivacyError:
            continue
    results.put(begun)


def test_racing_processes_begin_no_more_runs_than_were_approved(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[int] = context.Queue()
    path = str(tmp_path / "ledger.sqlite")
    racers = [context.Process(target=_begin, args=(path, n, results)) for n in (0, 100)]
    for racer in racers:
        racer.start()
    assert sum(results.get(timeout=PATIENCE) for _ in racers) == 3
    for racer in racers:
        racer.join()
