"""The numbers that a site tells of a study's data."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_agent.ledger.ledger import Ledger
from site_agent.loading.sizes import samples_of, sizes_of, too_few_new
from site_agent.policy.policy import Policy
from tests.support.cases import make_study


def data(lengths: list[int]) -> Any:
    people = tuple(f"{number:02d}" for number in range(len(lengths)))
    survey = SimpleNamespace(whole=(*people, "out"), lengths=tuple(lengths), skipped=())
    return SimpleNamespace(representatives=people, lengths=tuple(lengths), survey=survey)


@given(lengths=st.lists(st.integers(20, 2000), min_size=1), one=st.integers(20, 100_000))
def test_the_number_of_volumes_is_no_single_persons(lengths: list[int], one: int) -> None:
    """Whoever has however many: the typical person's decide, in two digits."""
    study = make_study("pca", {"components": 2})
    told = samples_of(study, data([*lengths, *lengths, one]))
    persons = 2 * len(lengths) + 1
    assert told % persons == 0
    typical = told // persons
    assert min(lengths) * 0.94 <= typical <= max(lengths) * 1.06
    assert len(str(typical).rstrip("0")) <= 2
    assert told >= persons


def test_where_a_volume_is_the_unit_all_are_counted_and_persons_compared_with_theirs() -> None:
    study = make_study("pca", {"components": 2}, "timepoint")
    assert samples_of(study, data([21, 22, 24])) == 67
    assert sizes_of(study, data([21, 22])).recordings == ("00\0" + "21", "01\0" + "22")
    plain = sizes_of(make_study("pca", {"components": 2}), data([21, 22]))
    assert plain.recordings == ()
    assert (plain.persons, plain.whole) == (("00", "01"), ("00", "01", "out"))
    assert plain.samples == 44


@pytest.mark.parametrize("least", [1, 10])
def test_nobody_is_new_where_nothing_was_told(tmp_path: Path, least: int) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    found = too_few_new(ledger, Policy(fewest_subjects_chosen=least), ["01", "02"])
    assert list(found) == []
