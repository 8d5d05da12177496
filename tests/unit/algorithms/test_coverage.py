"""`average` where participants lack entries: the right mean, a small cost, and one bound."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sensitivity_cases import all_attacks
from consortium.algorithms import REGISTRY, coverage
from consortium.algorithms.average_result import mean_noise
from consortium.algorithms.base import Places
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.spec import Study
from tests.support.cases import drive, make_sites, shape_of, sites_of
from tests.support.tiny_views import view_study

AVERAGE = REGISTRY["average"]
EDGE = 20
COORDINATES = 4.0 * np.indices((EDGE,) * 3).reshape(3, -1).T
SIZE = len(COORDINATES)
PLACES = Places(COORDINATES, 64.0)
PART = COORDINATES[:, 2] >= 4.0 * (EDGE - 3)
"""15 % of the voxels."""


def _names(bound: Bound) -> list[str]:
    return [block.name for block in bound.blocks] if isinstance(bound, BlocksBound) else []


def study(gaps: float, scheme: str = "cape") -> Study:
    view = {"source": "fmri", "measure": "image", "image": "statmap", "gaps": gaps}
    plain = {"name": "x", "center": False, "normalize": False}
    values = view_study(view | plain).model_dump(mode="json", exclude_none=True)
    values["privacy"] |= {"scheme": scheme}
    values["analysis"] = {"bound": float(np.sqrt(1.25 * SIZE))}
    return Study.model_validate(values)


def sites(lacking: float, many: int = 400) -> list[ArrayData]:
    generator, found = np.random.default_rng(0), []
    for _ in range(4):
        values = 1 + 0.5 * generator.standard_normal((many // 4, SIZE, 1))
        values[: round(lacking * many / 4), PART] = np.nan
        found.append(ArrayData(list(values), views=(("x", SIZE),), image_places=PLACES))
    return found


@pytest.mark.parametrize("scheme", ["none", "cape"])
def test_the_mean_where_half_of_the_images_are_missing(scheme):
    result = Simulation(study(0.2, scheme), sites(0.5), 0).run()
    mean = result.arrays["mean"][:, 0]
    assert mean[PART].mean() == pytest.approx(1.0, abs=0.1)
    assert mean[~PART].mean() == pytest.approx(1.0, abs=0.02)
    assert result.numbers["withheld"] <= 0.02 * SIZE
    covered = result.images["x_coverage"].values[:, 0]
    assert covered[PART].mean() == pytest.approx(0.5, abs=0.07)


def test_voxels_that_a_quarter_of_the_participants_have_are_withheld():
    result = Simulation(study(0.2), sites(0.75), 0).run()
    withheld = result.arrays["coverage"][:, 0] < 0.5
    assert withheld[PART].mean() > 0.95
    assert not result.arrays["found"][withheld].any()
    assert "withheld, because fewer than half of the participants" in result.captions.headline


def test_complete_data_cost_one_per_cent_of_the_noise():
    noise = [
        mean_noise(stage.release.bound, stage.mechanism.noise.aggregate())
        for gaps in (0.2, 0)
        for stage in Simulation(study(gaps), sites(0.0), 0).plan.stages
    ]
    assert noise[0] / noise[1] == pytest.approx((1 - coverage.SHARE) ** -0.5, rel=1e-3)
    assert noise[0] / noise[1] < 1.015


def test_series_that_are_zero_in_a_voxel_are_missing_there():
    blocks = [block.copy() for site in make_sites() for block in site.blocks()]
    for block in blocks[::2]:
        block[0] = 0.0
    parameters = AVERAGE.Parameters(bound=100.0, gaps=0.2)
    site = [ArrayData(blocks)]
    result = drive(AVERAGE, parameters, site)[2]
    expected = np.mean([block.mean(axis=1) for block in blocks], axis=0)
    expected[0] = np.mean([block[0].mean() for block in blocks[1::2]])
    np.testing.assert_allclose(result.arrays["mean"][:, 0], expected, rtol=1e-5)
    assert result.arrays["coverage"][:, 0] == pytest.approx([0.5, 1, 1, 1, 1, 1])


def test_columns_of_tables_are_divided_by_the_participants_who_have_them():
    table = np.random.default_rng(0).uniform(-1, 1, (5, 60))
    table[1, ::2], table[2, ::3] = np.nan, np.nan
    data = sites_of(table, (("gaps", 4), ("y", 1)), (40, 20))
    result = drive(AVERAGE, AVERAGE.Parameters(bound=10.0, gaps=0.5), data)[2]
    np.testing.assert_allclose(result.arrays["mean"][:, 0], np.nanmean(table, axis=1), rtol=1e-9)
    half = [(row[2].high - row[2].low) / 2 for row in result.tables["means"].rows]
    known = np.isfinite(table).sum(axis=1)
    assert half == pytest.approx(1.959964 * np.nanstd(table, axis=1) / known**0.5, rel=0.02)


def test_two_participants_who_lack_as_much_as_may_be_and_nothing_in_common_reach_the_bound():
    plan = AVERAGE(AVERAGE.Parameters(gaps=0.5), shape_of([ArrayData([np.ones((6, 1))])]))
    (release,) = plan.planned()
    one, other = np.ones((6, 1)), -np.ones((6, 1))
    one[:3], other[3:] = 0.0, 0.0
    local = plan.statistics["covered_volume"]
    first, second = (local(plan, ArrayData([v]), None, release.bound) for v in (one, other))
    gaps = [release.bound.split(each)["gaps"] for each in (first, second)]
    assert np.linalg.norm(gaps[0] - gaps[1]) == pytest.approx(release.bound.block("gaps").spread)
    assert np.linalg.norm(first - second) < release.bound.sensitivity(1)


def test_whether_coverage_is_released_follows_from_the_study_alone():
    complete = AVERAGE(study(0.2).analysis, shape_of(sites(0.0))).planned()
    lacking = AVERAGE(study(0.2).analysis, shape_of(sites(0.5))).planned()
    assert complete == lacking
    assert [each.statistic for each in complete] == ["covered_squares"]


GAPPY = [
    attack
    for attack in all_attacks()
    if attack.start.query.statistic.startswith("covered")
    or (attack.start.query.statistic == "glm_norms" and "gaps" in _names(attack.start.bound))
]


@pytest.mark.parametrize("attack", GAPPY, ids=lambda attack: attack.name)
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_pattern_of_missing_entries_moves_the_message_further(attack, seed):
    """Any participants in any order, of any scale, who lack anything from nothing to all."""
    generator = np.random.default_rng(seed)
    start, form = attack.start, attack.start.other.shape

    def anyone() -> np.ndarray:
        values = 10.0 ** generator.integers(-200, 200) * generator.standard_normal(form)
        lacks = generator.random(form) < generator.random()
        values[lacks] = generator.choice([np.nan, np.inf, 0.0], lacks.sum())
        return values

    blocks = [anyone() for _ in range(int(generator.integers(1, 5)))]
    if generator.random() < 0.5:
        blocks[-1] = -blocks[0]
    other, unit = blocks[0].copy(), slice(None) if attack.unit == "subject" else slice(0, 1)
    other[:, unit] = anyone()[:, unit]
    question = replace(start, blocks=tuple(blocks), other=other)
    if len(blocks) < 3 and start.query.statistic == "glm_norms":
        question = replace(question, blocks=(*blocks, anyone(), anyone(), anyone())[:4])
    with np.errstate(all="ignore"):
        ratio = attack.ratio(question)
    assert ratio is None or ratio <= 1 + 1e-9
