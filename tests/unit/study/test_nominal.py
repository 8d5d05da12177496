"""Nominal numbers of participants: round ones only, stated in the study."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import StudyError
from consortium.study.nominal import (
    check_nominal,
    check_participants,
    differing_sizes,
    nominal_size,
)
from tests.support.cases import SITES, make_study


def study_of(sizes: dict[str, int] | None) -> Any:
    return make_study().model_copy(update={"participants": sizes})


@given(st.integers(1, 10**7))
def test_a_nominal_size_is_near_and_stays_as_it_is(size: int) -> None:
    nominal = nominal_size(size)
    assert check_nominal(nominal, "here") == nominal
    assert abs(nominal - size) <= max(9, 0.05 * size)
    assert len(str(nominal).rstrip("0")) <= 2


@pytest.mark.parametrize(
    ("size", "instead"), [(0, 10), (-5, 10), (3, 10), (157, 160), (1234, 1200)]
)
def test_a_true_number_is_refused_with_the_nominal_one(size: int, instead: int) -> None:
    with pytest.raises(StudyError, match=f"--participants: .*got {size}. Write {instead}."):
        check_nominal(size, "--participants")


def test_a_study_without_nominal_numbers_is_refused_with_the_line_to_add() -> None:
    with pytest.raises(StudyError, match=r"Add for example the line 'participants: \{") as caught:
        check_participants(study_of(None), "study.yaml")
    assert all(f"{site}: 100" in str(caught.value) for site in SITES)
    sizes = dict.fromkeys(SITES, 40)
    assert check_participants(study_of(sizes), "study.yaml") == sizes
    with pytest.raises(StudyError, match=rf"field 'participants.{SITES[0]}'"):
        check_participants(study_of({**sizes, SITES[0]: 41}), "study.yaml")


def test_a_number_that_a_site_did_not_state_is_named() -> None:
    study = study_of(dict.fromkeys(SITES, 40))
    assert differing_sizes(study, {SITES[0]: 40}) == []
    (sentence,) = differing_sizes(study, {SITES[0]: 50, "stranger": 10})
    assert sentence.startswith(f"{SITES[0]} stated 50 participants when it joined")
