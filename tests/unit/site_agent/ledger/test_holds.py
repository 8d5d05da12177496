"""A run holds its privacy loss for its participants from loading to its end."""

import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.errors import LedgerError, PrivacyError
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits
from tests.support.charges import up_to

SITE, CENTRE = "5a" * 32, "ce" * 32
EVERYBODY = ["01", "02", "03"]


def whole(run: str, mu: float = 0.8, study: str = "small") -> Charge:
    """The charge of a whole run."""
    return Charge("data", study, run, 0, "", "", "subject", mu, SITE, CENTRE, "", 0.0)


def round_of(run: str, number: int, persons: str, mu: float = 0.3) -> Charge:
    """A round of a run."""
    of = replace(whole(run, mu), round=number, stage="pca", statistic="moment", query="9e" * 32)
    return replace(of, persons=persons)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def spent(ledger: Ledger, label: str) -> float:
    return ledger.total("data", "subject", [label])


def test_the_hold_counts_until_the_release_and_then_the_rounds(ledger: Ledger) -> None:
    group, left_out = ledger.hold(whole("r-1"), EVERYBODY, up_to(1), "now")
    assert (left_out, spent(ledger, "02")) == ([], 0.8)
    for number in (1, 2):
        assert ledger.reserve(round_of("r-1", number, group), "now")
        assert spent(ledger, "02") == 0.8
    ledger.take_back(round_of("r-1", 2, group), "now")
    for _ in range(2):
        ledger.release("r-1", SITE, "now")
        assert spent(ledger, "02") == 0.3
    assert [entry.event for entry in ledger.entries()].count("release") == 1


def test_a_run_without_rounds_costs_nothing_and_is_none_of_those_approved(ledger: Ledger) -> None:
    one = replace(up_to(9), runs=1)
    ledger.hold(whole("r-1"), EVERYBODY, one, "now")
    with pytest.raises(PrivacyError):
        ledger.hold(whole("r-2"), EVERYBODY, one, "now")
    ledger.release("r-1", SITE, "now")
    assert spent(ledger, "01") == 0.0
    assert ledger.knows_any(["elsewhere"])  # nobody was charged
    group, _ = ledger.hold(whole("r-2"), EVERYBODY, one, "now")
    ledger.reserve(round_of("r-2", 1, group), "now")
    ledger.release("r-2", SITE, "now")
    with pytest.raises(PrivacyError):
        ledger.hold(whole("r-3"), EVERYBODY, one, "now")


def test_a_run_that_was_released_covers_no_further_round(ledger: Ledger) -> None:
    """Another run may have held the budget meanwhile."""
    group, _ = ledger.hold(whole("r-1"), EVERYBODY, up_to(1), "now")
    assert ledger.reserve(round_of("r-1", 1, group), "now")
    ledger.release("r-1", SITE, "now")
    assert not ledger.reserve(round_of("r-1", 1, group), "now")
    with pytest.raises(LedgerError):
        ledger.reserve(round_of("r-1", 2, group), "now")
    assert spent(ledger, "01") == 0.3


def test_who_has_no_budget_for_both_runs_is_left_out_of_the_second(ledger: Ledger) -> None:
    ledger.hold(whole("r-1"), ["01"], up_to(1), "now")
    group, left_out = ledger.hold(whole("r-2", study="another"), EVERYBODY, up_to(1), "now")
    assert left_out == ["01"]
    assert group == ledger.enroll(["02", "03"])
    assert ledger.hold(whole("r-3"), EVERYBODY, LedgerLimits({}), "now")[1] == EVERYBODY
    own = LedgerLimits({"subject": 9.0}, study=1.0)
    assert ledger.hold(whole("r-4", study="another"), EVERYBODY, own, "now")[1] == ["02", "03"]


def test_a_run_keeps_its_participants_after_a_restart(ledger: Ledger) -> None:
    group, _ = ledger.hold(whole("r-1"), ["01", "02"], up_to(1), "now")
    again = Ledger(ledger.path).hold(whole("r-1"), ["sub-2", "03"], up_to(0.1), "later")
    assert again == (group, ["03"])
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("wrong", ["more", "others", "another unit"])
def test_only_what_the_run_holds_is_charged(wrong: str, ledger: Ledger) -> None:
    group, _ = ledger.hold(whole("r-1"), EVERYBODY, up_to(9), "now")
    ledger.reserve(round_of("r-1", 1, group, 0.6), "now")
    charge = round_of("r-1", 2, group)
    if wrong == "more":
        charge = replace(charge, mu=0.6)
    if wrong == "others":
        charge = replace(charge, persons=ledger.enroll(["01"]))
    if wrong == "another unit":
        charge = replace(charge, unit="timepoint")
    with pytest.raises(LedgerError):
        ledger.reserve(charge, "now")


def test_a_run_that_was_released_holds_nothing_again(ledger: Ledger) -> None:
    ledger.hold(whole("r-1"), EVERYBODY, up_to(9), "now")
    ledger.release("r-1", SITE, "now")
    with pytest.raises(LedgerError):
        ledger.hold(whole("r-1"), EVERYBODY, up_to(9), "now")


@pytest.mark.parametrize("field", ["run", "site", "centre"])
def test_what_another_run_or_agent_holds_covers_no_round(field: str, ledger: Ledger) -> None:
    """Nothing covers the round of a run that never held its loss."""
    group, _ = ledger.hold(whole("r-1"), EVERYBODY, up_to(9), "now")
    other = replace(round_of("r-1", 1, group), **{field: "0d" * 32})
    with pytest.raises(LedgerError):
        ledger.reserve(other, "now")
    with pytest.raises(LedgerError):
        ledger.reserve(replace(other, persons=""), "now")
    assert len(ledger.entries()) == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "reserve", "spend", "void", "release", "restart"]),
        st.sampled_from(["r-1", "r-2"]),
        st.integers(1, 3),
        st.sampled_from([0.3, 0.5]),
    ),
    max_size=24,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_in_any_order_a_round_is_charged_only_while_its_run_holds_enough(steps) -> None:
    """Rounds sent again, runs opened again after their release, two runs at once, restarts."""
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        group = ledger.enroll(EVERYBODY)
        for event, run, number, mu in steps:
            charge = round_of(run, number, group, mu)
            with suppress(LedgerError):
                match event:
                    case "hold":
                        ledger.hold(whole(run), EVERYBODY, up_to(1), "now")
                    case "reserve":
                        ledger.reserve(charge, "now")
                    case "spend":
                        ledger.spend(charge, "now")
                    case "void":
                        ledger.take_back(charge, "now")
                    case "release":
                        ledger.release(run, SITE, "now")
                    case "restart":
                        ledger = Ledger(ledger.path)
        held: dict[str, tuple[float, str]] = {}
        charged: dict[str, float] = defaultdict(float)
        for entry in ledger.entries():
            run, loss = entry.charge.run, entry.charge.mu**2
            if entry.event == "hold":
                held[run] = loss, entry.charge.persons
            elif entry.event == "release":
                held[run] = 0.0, ""
            elif entry.event == "reserve":
                most, persons = held[run]
                charged[run] += loss
                assert (charged[run] <= most + 1e-9, persons) == (True, entry.charge.persons)
            elif entry.event == "void":
                charged[run] -= loss
        open_runs = {charge.run for charge in ledger.holds_of([SITE])}
        assert open_runs == {run for run, (most, _) in held.items() if most}
        assert spent(ledger, "01") <= 1 + 1e-9


LINES = st.lists(
    st.tuples(
        st.sampled_from(["hold", "reserve", "void", "release"]),
        st.integers(0, 2),
        st.sets(st.sampled_from(EVERYBODY), min_size=1),
        st.sampled_from([0.1, 0.25, 0.5]),
    ),
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(LINES)
def test_sums_are_those_of_holds_and_of_the_rounds_of_other_runs(lines) -> None:
    """Compare with a plain account: each run's hold until its release, then its rounds."""
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        held: dict[str, tuple[str, set[str]]] = {}
        over: set[str] = set()
        rounds: dict[str, list[Charge]] = defaultdict(list)
        for number, (event, which, people, mu) in enumerate(lines, start=1):
            run = f"r-{which}"
            if event == "hold" and run not in held and run not in over:
                group, _ = ledger.hold(whole(run), sorted(people), up_to(9), "now")
                held[run] = group, people
            elif event == "reserve" and run in held and run not in over:
                charge = round_of(run, number, held[run][0], mu)
                if sum(each.mu**2 for each in (*rounds[run], charge)) <= 0.64:
                    ledger.reserve(charge, "now")
                    rounds[run].append(charge)
            elif event == "void" and rounds[run] and run in held:
                ledger.take_back(rounds[run].pop(), "now")
            elif event == "release" and run in held:
                ledger.release(run, SITE, "now")
                over.add(run)
        for label in EVERYBODY:
            square = sum(
                sum(each.mu**2 for each in rounds[run]) if run in over else 0.64
                for run, (_, people) in held.items()
                if label in people
            )
            assert spent(ledger, label) == pytest.approx(math.sqrt(square))
            assert spent(Ledger(ledger.path), label) == spent(ledger, label)
