"""The search for broken sensitivities, for seconds; ``benchmarks.sensitivity`` takes minutes."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.sensitivity import table
from benchmarks.sensitivity_cases import Attack, all_attacks, arguments_of, with_arguments
from benchmarks.sensitivity_search import Outcome, search, together
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array
from consortium.privacy.block_bounds import BlocksBound

SEED, SECONDS = 20261122, 6.0
STARTS = 20
"""Number of searches that share a minute."""
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
    case = _case(cases, name)
    # Restarts are faster than one search that stays near a move by rounding errors.
    searches = (
        search(case, 60 / STARTS, np.random.default_rng([SEED, start]), until_broken=True)
        for start in range(STARTS)
    )
    assert any(found.worst > 1.001 or found.differ for found in searches)


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


def _narrowed(case: Attack, names: tuple[str, ...]) -> Attack:
    """The same with a tenth of the norm for some blocks, which a site keeps as well."""
    bound = case.start.bound
    assert isinstance(bound, BlocksBound)
    blocks = [
        replace(b, norm=b.norm / 10, spread=b.spread / 10) if b.name in names else b
        for b in bound.blocks
    ]
    return replace(case, start=replace(case.start, bound=BlocksBound.of(blocks)))


def _whatever_it_is(values: Array, *bounds: float) -> Array:
    """No clip at all, and no clip of what is no number."""
    del bounds
    return np.asarray(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("statistic", "clips"),
    [
        *(("glm_contrast", f"{of}.clip_columns") for of in ("site", "in_parts")),
        # Weights of a slope are cut before, so that the clip in `site` changes nothing there.
        ("glm_slope", "in_parts.clip_columns"),
        ("glm_contrast", "site.clip_values"),
        *(("glm_norms", f"look.clip_{what}") for what in ("columns", "values", "factors")),
        ("glm_norms", "in_parts.clip_columns look.factors_within"),  # the second is in the first
        ("glm_slope_norms", "look.clip_values"),
    ],
)
def test_a_clip_of_units_that_is_taken_away_is_found(
    cases: list[Attack], statistic: str, clips: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_units = [
        case
        for case in cases
        if case.start.query.statistic == statistic and case.plan.parameters.grouped is not None
    ]
    case = max(of_units, key=lambda each: len(each.plan.columns.covariates_of))
    # Factors that are clipped before keep these blocks within the bound of the plan.
    case = _narrowed(case, ("contrast", "column"))
    assert not search(case, 0.3, np.random.default_rng(SEED)).broken
    for clip in clips.split():
        monkeypatch.setattr(f"consortium.algorithms.glm.{clip}", _whatever_it_is)
    found = search(case, 300, np.random.default_rng(SEED), until_broken=True)
    assert found.broken


def test_a_block_with_a_small_part_of_the_budget_is_held_to_its_own_bound(
    cases: list[Attack],
) -> None:
    case = _case(cases, "glm.glm_contrast")
    bound = case.start.bound
    assert isinstance(bound, BlocksBound)
    small = min(bound.blocks, key=lambda block: block.share)
    other = {block.name: np.zeros(block.entries) for block in bound.blocks}
    parts = [other, other | {small.name: np.full(small.entries, 1.5 * small.spread)}]
    told = iter([bound.join(each) / len(case.start.blocks) for each in parts])
    moved = replace(case, local=lambda *_: next(told)).ratios(case.start)
    assert moved is not None
    assert moved["whole"] < 0.5
    assert moved[small.name] == pytest.approx(1.5)


def test_outcomes_of_two_processes_add_up() -> None:
    first = Outcome("one", 10, 8, {"whole": 0.5, "size": 0.2}, 1)
    second = Outcome("one", 5, 5, {"whole": 0.9}, 2)
    found = together([first, second])
    assert found.moves == {"whole": 0.9, "size": 0.2}
    assert (found.trials, found.answered, found.worst, found.differ) == (15, 13, 0.9, 3)
    assert found.broken
    assert table([found]).row_count == 2


@pytest.mark.parametrize("units", [4, 5, 9])
def test_slopes_and_centres_that_cancel_leave_no_rounding_that_others_decide(
    units: int, cases: list[Attack]
) -> None:
    """Matrix products round a column by the number of columns, and here nothing else is left."""
    tried = 0
    for case in cases:
        arguments = arguments_of(case.start)
        if not case.name.startswith("glm.") or len(arguments.get("slopes", ())) < 2:
            continue
        arguments["slopes"] = np.full(len(arguments["slopes"]), 1.5e-62)
        arguments["centres"] = np.zeros_like(arguments["centres"])
        arguments["centres"][:, -2:] = 7e176, -7e176
        question = with_arguments(case.start, arguments)
        blocks = tuple(question.blocks[k % len(question.blocks)] for k in range(units))
        for removed in (False, True):
            with np.errstate(all="ignore"):
                ratio = case.ratio(replace(question, blocks=blocks, removed=removed))
            assert ratio is not None, case.name
            assert ratio <= 1 + 1e-9, case.name
            tried += 1
    assert tried > 8
