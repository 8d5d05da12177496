"""Time slots: from nominal sizes only, and long enough for twice as many."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.algorithms.base import Shape
from consortium.errors import StudyError
from consortium.study.slots import (
    SHORTEST,
    check_slots,
    loading_slot,
    round_slot,
    slot_end,
)
from tests.support.cases import make_study


def shape(subjects: int = 200, volumes: int = 240, features: int = 8000, voxels: int = 0) -> Shape:
    sizes = (10, subjects)
    samples = tuple(volumes * size for size in sizes)
    return Shape(features, sizes, samples, "subject", voxels)


def release(entries: int) -> Any:
    return SimpleNamespace(stage="power", entries=entries)


def test_slots_are_those_of_twice_the_largest_site() -> None:
    numbers = 400 * 240 * 8000
    assert loading_slot(shape()) == pytest.approx(numbers / 1e7 + 0.8, abs=SHORTEST)
    seconds = numbers / 5e7 + 20 * numbers / 5e9 + 0.4
    assert round_slot(shape(), release(20 * 8000)) == pytest.approx(seconds, abs=SHORTEST)


def test_maps_at_full_resolution_are_counted() -> None:
    assert loading_slot(shape(voxels=80_000)) > 9 * loading_slot(shape())


def test_tiny_studies_have_the_shortest_slot() -> None:
    tiny = shape(subjects=10, volumes=20, features=100)
    assert loading_slot(tiny) == round_slot(tiny, release(200)) == SHORTEST


@given(st.integers(10, 3000), st.integers(1, 500), st.integers(1, 10**5), st.integers(1, 10**6))
def test_more_never_take_less_and_slots_are_whole_multiples(
    subjects: int, volumes: int, features: int, entries: int
) -> None:
    one, more = shape(subjects, volumes, features), shape(subjects + 100, volumes, features)
    for slots in (
        (loading_slot(one), loading_slot(more)),
        (round_slot(one, release(entries)), round_slot(more, release(entries))),
    ):
        assert SHORTEST <= slots[0] <= slots[1]
        assert slots[0] / SHORTEST == pytest.approx(round(slots[0] / SHORTEST))


@given(st.floats(0, 1e6), st.floats(0, 1e3), st.floats(SHORTEST, 1e3))
def test_the_end_of_a_slot_is_never_early_and_less_than_a_slot_late(
    since: float, taken: float, slot: float
) -> None:
    end = slot_end(since, since + taken, slot)
    assert end >= since + slot * (1 - 1e-6)
    assert since + taken - 1e-5 * slot - 1e-8 <= end
    assert end <= max(since + taken, since) + slot * (1 + 1e-6) + 1e-8


def test_all_who_keep_to_the_slot_end_alike() -> None:
    assert {slot_end(7.0, 7.0 + taken, 2.0) for taken in (0.0, 0.1, 1.0, 2.0)} == {9.0}
    assert {slot_end(7.0, 7.0 + taken, 2.0) for taken in (2.1, 3.0, 4.0)} == {11.0}


@pytest.mark.parametrize(("field", "entries"), [("ready", 1), ("answer", 10**7)])
def test_a_deadline_within_a_slot_is_refused_and_named(field: str, entries: int) -> None:
    study = make_study()
    tight = study.timing.model_copy(update={field: 20.0})
    check_slots(study, shape(), [release(entries)])
    with pytest.raises(StudyError, match=f"field 'timing.{field}': more than .* got 20"):
        check_slots(study.model_copy(update={"timing": tight}), shape(), [release(entries)])
