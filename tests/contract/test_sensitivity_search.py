"""The search for broken sensitivities, for seconds; ``benchmarks.sensitivity`` takes minutes."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.sensitivity import table
from benchmarks.sensitivity_cases import Attack, all_attacks
from benchmarks.sensitivity_search import Outcome, search, together
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array

SEED, SECONDS = 20261122, 6.0
_EXTREME = "consortium.privacy.clipping._extreme"


@pytest.fixture(scope="module")
def cases() -> list[Attack]:
    return all_attacks()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_every_statistic_of_the_registry_is_attacked(cases: list[Attack]) -> None:
    attacked = {case.name.split()[0] for case in cases}
    assert attacked == {f"{n}.{s}" for n, each in REGISTRY.items() for s in each.statistics}


def test_no_question_breaks_a_sensitivity_or_makes_one_unit_a_refusal(cases: list[Attack]) -> None:
    generator = np.random.default_rng(SEED)
    found = [search(case, SECONDS / len(cases), generator) for case in cases]
    assert [each.name for each in found if each.broken] == []
    assert all(each.answered for each in found)
    assert max(each.worst for each in found) > 0.9, "nothing was moved: the search sees nothing"


def _only_finite(bound: float, *squares: Array) -> Array:
    """Careful with what is not finite, and trusting of squares that are zero."""
    del bound
    return np.flatnonzero(~np.isfinite(np.sum([np.atleast_1d(s) for s in squares], axis=0)))


def _case(cases: list[Attack], name: str) -> Attack:
    return next(case for case in cases if case.name.startswith(name))


@pytest.mark.parametrize("name", ["tensor.topic_third", "cca.stacked_location", "pca.power time"])
def test_a_norm_of_squares_that_vanish_is_found_within_a_minute(
    cases: list[Attack], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_EXTREME, _only_finite)
    generator = np.random.default_rng(SEED)
    found = search(_case(cases, name), 60, generator, until_broken=True)
    assert found.worst > 1.001 or found.differ


def test_a_refusal_that_tells_of_one_unit_is_found_within_a_minute(
    cases: list[Attack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_EXTREME, lambda bound, *squares: np.zeros(0, dtype=np.intp))
    generator = np.random.default_rng(SEED)
    case = _case(cases, "average.mean_volume timepoint")
    found = search(case, 60, generator, until_broken=True)
    assert found.differ == 1
    assert found.example is not None
    with np.errstate(all="ignore"):
        assert case.ratio(found.example) == np.inf
        monkeypatch.undo()
        assert case.ratio(found.example) <= 1 + 1e-9  # type: ignore[operator]


def test_outcomes_of_two_processes_add_up() -> None:
    first, second = Outcome("one", 10, 8, 0.5, 1), Outcome("one", 5, 5, 0.9, 2)
    found = together([first, second])
    assert (found.trials, found.answered, found.worst, found.differ) == (15, 13, 0.9, 3)
    assert found.broken
    assert table([found]).row_count == 2
