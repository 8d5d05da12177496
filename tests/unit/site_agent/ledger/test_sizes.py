"""Two numbers of persons that differ by few are never both told."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import PrivacyError
from site_agent.ledger.entries import Charge
from site_agent.ledger.ledger import Ledger, LedgerLimits
from site_agent.ledger.sizes import Sizes

TELL = Charge(
    *("/data", "first", "first-0001", 0, "setup", "sizes", "subject", 0.0),
    *("5a" * 32, "ce" * 32, "", 0.0),
)
RUNS = itertools.count(1)


def people(*numbers: int) -> tuple[str, ...]:
    return tuple(f"{number:03d}" for number in numbers)


def tell(
    ledger: Ledger,
    persons: tuple[str, ...],
    whole: tuple[str, ...] | None = None,
    study: str = "first",
    run: str = "",
    least: int = 10,
    runs: float = 1e9,
    recordings: tuple[str, ...] = (),
    chosen: bool = False,
    samples: int = 0,
) -> bool:
    """Tell that so many take part in a new run."""
    charge = replace(TELL, study=study, run=run or f"{study}-{next(RUNS):04d}")
    sizes = Sizes(persons, persons if whole is None else whole, recordings, chosen, samples)
    return ledger.tell(charge, sizes, least, LedgerLimits({}, runs=runs), "now")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


HUNDRED = people(*range(100))


@pytest.mark.parametrize(
    ("second", "is_told"),
    [
        (HUNDRED, True),
        (HUNDRED[1:], False),
        (HUNDRED[9:], False),
        (HUNDRED[10:], True),
        ((*HUNDRED, "new"), False),
        ((*HUNDRED, *people(*range(200, 210))), True),
        ((*HUNDRED[5:], *people(*range(200, 204))), False),
        ((*HUNDRED[5:], *people(*range(200, 205))), True),
    ],
)
def test_a_second_number_is_told_only_if_it_is_of_the_same_or_of_many_others(
    ledger: Ledger, second: tuple[str, ...], is_told: bool
) -> None:
    """Whatever made the sets differ, and whatever study asks; after a start, too."""
    assert tell(ledger, HUNDRED)
    for book in (ledger, Ledger(ledger.path)):
        if is_told:
            tell(book, second, study="second")
            continue
        with pytest.raises(PrivacyError, match="from those reported for 'first'"):
            tell(book, second, study="second")
    assert tell(ledger, HUNDRED[9:], study="third", least=1)  # where the hospital allows it


def test_what_was_refused_was_not_told_and_binds_nobody(ledger: Ledger) -> None:
    tell(ledger, HUNDRED)
    lines = ledger.entries()
    with pytest.raises(PrivacyError):
        tell(ledger, HUNDRED[1:])
    assert ledger.entries() == lines
    assert tell(ledger, HUNDRED[10:])


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        (100, ""),
        (90, ""),
        (10, ""),
        (99, "all but 1 participants"),
        (91, "all but 9 participants"),
        (9, "9 participants by its rules"),
        (1, "1 participants by its rules"),
    ],
)
def test_rules_that_fit_few_or_spare_few_are_refused(ledger: Ledger, taken: int, said: str) -> None:
    if not said:
        assert tell(ledger, HUNDRED[:taken], HUNDRED)
        return
    with pytest.raises(PrivacyError, match=said):
        tell(ledger, HUNDRED[:taken], HUNDRED)
    assert tell(ledger, HUNDRED[:taken], HUNDRED, least=1)


def test_a_small_site_takes_part_with_everybody_and_not_by_rules(ledger: Ledger) -> None:
    with pytest.raises(PrivacyError, match="4 participants by its rules"):
        tell(ledger, HUNDRED[:4], chosen=True)
    assert tell(ledger, HUNDRED[:4])


def test_few_newcomers_wait_until_they_are_many(ledger: Ledger) -> None:
    tell(ledger, HUNDRED[:50])
    for many in range(50, 60):
        assert ledger.newcomers(HUNDRED[:many], 10) == list(HUNDRED[50:many])
    assert ledger.newcomers(HUNDRED[:60], 10) == []
    assert ledger.newcomers(HUNDRED[1:52], 10) == []  # who left is no newcomer
    tell(ledger, HUNDRED[:60])
    assert ledger.newcomers(HUNDRED[:63], 10) == list(HUNDRED[60:63])
    assert ledger.newcomers(HUNDRED[:63], 1) == []


def test_only_the_very_set_that_was_told_counts_as_told(ledger: Ledger) -> None:
    assert not ledger.has_reported(HUNDRED)
    tell(ledger, HUNDRED)
    assert ledger.has_reported(HUNDRED)
    assert not ledger.has_reported(HUNDRED[1:])
    assert not ledger.has_reported((*HUNDRED, "new"))
    assert not ledger.has_reported(())


def test_where_two_sets_lie_near_nobody_decides_between_them(ledger: Ledger) -> None:
    """One person could otherwise swap eighteen others under the same number."""
    tell(ledger, HUNDRED[:31])
    tell(ledger, (*HUNDRED[:22], *HUNDRED[31:40]), study="second")
    assert ledger.newcomers(HUNDRED[:40], 10) == []
    with pytest.raises(PrivacyError, match="differ by 9"):
        tell(ledger, HUNDRED[:40], study="third")


def test_volumes_are_compared_where_a_volume_is_the_unit(ledger: Ledger) -> None:
    lengths = [f"{label}\0{200}" for label in HUNDRED]
    tell(ledger, HUNDRED, recordings=tuple(lengths))
    longer = (f"{HUNDRED[0]}\0{201}", *lengths[1:])
    with pytest.raises(PrivacyError, match="a number of volumes that differ by 1 from"):
        tell(ledger, HUNDRED, study="second", recordings=longer)
    nine = (*(f"{label}\0{201}" for label in HUNDRED[:9]), *lengths[9:])
    with pytest.raises(PrivacyError, match="differ by 9 from"):
        tell(ledger, HUNDRED, study="second", recordings=nine)
    all_longer = tuple(f"{label}\0{210}" for label in HUNDRED)
    assert tell(ledger, HUNDRED, study="second", recordings=all_longer)


def test_a_run_is_told_of_one_set(ledger: Ledger) -> None:
    assert tell(ledger, HUNDRED, run="r-0001")
    assert not tell(ledger, HUNDRED, run="r-0001")
    with pytest.raises(
        PrivacyError, match="Other participants or volumes than r-0001 was informed of"
    ):
        tell(ledger, HUNDRED[20:], run="r-0001")


def test_a_set_up_that_told_a_number_uses_the_yes_up(ledger: Ledger) -> None:
    """The same number again, as after a set-up that failed, tells nothing new."""
    tell(ledger, HUNDRED, runs=1)
    tell(ledger, HUNDRED, runs=1)
    with pytest.raises(PrivacyError, match="'first' was approved for 1 run and had as many"):
        tell(ledger, HUNDRED[20:], runs=1)
    tell(ledger, HUNDRED[20:], study="second", runs=1)
    tell(ledger, HUNDRED[20:], runs=2)
    with pytest.raises(PrivacyError, match="approved for 2 runs"):
        tell(ledger, HUNDRED[40:], runs=2)


def test_another_number_of_volumes_uses_the_yes_up_though_the_persons_are_the_same(
    ledger: Ledger,
) -> None:
    tell(ledger, HUNDRED, runs=1, samples=2000)
    tell(ledger, HUNDRED, runs=1, samples=2000)
    with pytest.raises(PrivacyError, match="approved for 1 run and had as many"):
        tell(ledger, HUNDRED, runs=1, samples=2100)
    assert tell(ledger, HUNDRED, study="second", runs=1, samples=2100)


def test_runs_that_were_charged_and_sets_that_were_only_told_count_together(
    ledger: Ledger,
) -> None:
    tell(ledger, HUNDRED, run="first-0001")
    charge = replace(TELL, run="first-0001", round=1, stage="pca", mu=0.5)
    ledger.reserve(charge, LedgerLimits({"subject": 9.0}), "now")
    tell(ledger, HUNDRED, runs=1)  # of the same; its first charge would be refused
    with pytest.raises(PrivacyError, match="had as many"):
        ledger.reserve(
            replace(charge, run="first-0002"), LedgerLimits({"subject": 9.0}, runs=1), "now"
        )
    with pytest.raises(PrivacyError, match="had as many"):
        tell(ledger, HUNDRED[20:], runs=1)


def test_a_refusal_that_follows_from_who_would_take_part_uses_a_run_up(ledger: Ledger) -> None:
    """So nobody asks every day whether a patient is among a study's persons."""
    tell(ledger, HUNDRED)
    asked = replace(TELL, study="second", run="second-0001")
    ledger.decline(asked, "now")
    ledger.decline(asked, "again")
    assert [line.event for line in ledger.entries()] == ["tell", "tell"]
    centres = {TELL.centre}
    assert ledger.used("second", centres, reported=False) == 1
    with pytest.raises(PrivacyError, match="approved for 1 run and had as many"):
        tell(ledger, HUNDRED, study="second", runs=1)
    tell(ledger, HUNDRED, study="second", runs=2)
    assert ledger.used("second", centres, reported=False) == 1
    assert ledger.used("second", centres, reported=True) == 2


def test_two_agents_with_one_ledger_tell_their_own_numbers_of_one_run(ledger: Ledger) -> None:
    here, there = (replace(TELL, site=key * 32) for key in ("5a", "5b"))
    limits = LedgerLimits({}, runs=1)
    for charge, persons in ((here, HUNDRED[:40]), (there, HUNDRED[40:])):
        assert ledger.tell(charge, Sizes(persons, persons), 10, limits, "now")


def test_what_was_told_under_an_earlier_key_counts_and_is_compared(ledger: Ledger) -> None:
    """Of the site or of the consortium: who changes a key tells nothing for nothing."""
    tell(ledger, HUNDRED, runs=1)
    renewed = replace(TELL, site="5b" * 32, centre="cf" * 32, run="first-0009")
    centres = frozenset({TELL.centre})
    with pytest.raises(PrivacyError, match="differ by 1 from those reported for 'first'"):
        ledger.tell(renewed, Sizes(HUNDRED[1:], HUNDRED[1:]), 10, LedgerLimits({}), "now")
    fewer = Sizes(HUNDRED[20:], HUNDRED[20:])
    with pytest.raises(PrivacyError, match="approved for 1 run"):
        ledger.tell(renewed, fewer, 10, LedgerLimits({}, runs=1, centres=centres), "now")
    assert ledger.tell(renewed, fewer, 10, LedgerLimits({}, runs=2, centres=centres), "now")


def test_few_of_those_who_were_told_of_are_chosen_whatever_the_study_says(ledger: Ledger) -> None:
    tell(ledger, HUNDRED)
    with pytest.raises(PrivacyError, match="9 participants by its rules"):
        tell(ledger, HUNDRED[:9], study="second")
    assert tell(ledger, HUNDRED[:10], study="second")


@given(
    asked=st.lists(
        st.tuples(
            st.sets(st.integers(0, 29), min_size=1), st.sets(st.integers(0, 29), max_size=12)
        ),
        max_size=12,
    )
)
def test_whatever_is_asked_sets_that_were_told_lie_apart(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[set[int], set[int]]]
) -> None:
    """Pairs of told sets, and each told set and its whole, differ by none or by so many."""
    ledger = Ledger(tmp_path_factory.mktemp("sizes") / "ledger.sqlite")
    told: list[set[str]] = []
    for taken, beside in asked:
        persons = people(*sorted(taken))
        late = set(ledger.newcomers(persons, 5))
        persons = tuple(label for label in persons if label not in late)
        whole = tuple(sorted({*persons, *people(*beside)}))
        try:
            tell(ledger, persons, whole, least=5)
        except PrivacyError:
            continue
        assert set(persons) in told or len(set(whole) - set(persons)) not in range(1, 5)
        told.append(set(persons))
    for one, other in itertools.combinations(told, 2):
        assert len(one ^ other) not in range(1, 5)
