"""Held-out participants of `regression`: their choice, their counts, and the reported AUC."""

import re
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks.held_out import KINDS, judged, plan_of, run_study
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Extent, Query
from consortium.algorithms.regression.site import held_out_persons
from consortium.base.position_hashes import hashes_of_positions
from consortium.errors import StudyError
from consortium.kernels.moments import mean_packed_square
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData
from tests.support.cases import drive

REGRESSION = REGISTRY["regression"]
VIEWS = (("x", 2), ("y", 1))
LOGISTIC = {"target": "y", "bound": 1.5, "model": "logistic"}
KIND = {kind.name: kind for kind in KINDS}
TRAINS, HELD = 0, 3
"""Positions whose hashes belong to a training and to a held-out participant."""


def plan_for(sizes=(60,), **more):
    parameters = REGRESSION.Parameters.model_validate(LOGISTIC | {"held_out": 0.4} | more)
    return REGRESSION(parameters, Extent(3, views=VIEWS).shape(sizes, sizes, "subject"))


def site_with(positions, columns):
    hashes = hashes_of_positions(20)[list(positions)]
    return ArrayData(
        [np.array(c, dtype=float)[:, None] for c in columns],
        "subject",
        views=VIEWS,
        person_hashes=hashes,
    )


def total(plan, positions, columns, stage, **arguments):
    (planned,) = (each for each in plan.releases if each.stage == stage)
    site = site_with(positions, columns)
    local = plan.statistics[planned.statistic]
    query = Query(stage, planned.statistic, arguments)
    return len(positions) * local(plan, site, query, planned.bound), planned.bound


def people(seed, many):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 0.4, (2, many))
    y = np.where(rng.random(many) < 1 / (1 + np.exp(-3 * x[0])), 1.0, -1.0)
    return np.vstack([x, y]).clip(-1, 1)


def test_a_hash_of_its_own_decides_for_each_participant():
    hashes = hashes_of_positions(20_000)
    held = held_out_persons(hashes, 0.3)
    assert np.array_equal(held_out_persons(hashes[5:50], 0.3), held[5:50])
    assert held.mean() == pytest.approx(0.3, abs=0.015)
    # The cap of a site takes the participants with the smallest hashes.
    first = np.argsort(hashes)[:5_000]
    assert held[first].mean() == pytest.approx(0.3, abs=0.03)
    assert not held_out_persons(hashes, 0.0).any()
    known = blake2b((7).to_bytes(8, "little"), digest_size=8, person=b"cape held out").digest()
    share = int.from_bytes(known, "little") / 2.0**64
    assert held_out_persons(np.array([7], dtype=np.uint64), share + 1e-9).all()


def test_a_study_without_held_out_participants_is_as_before():
    plan = plan_for(held_out=0.0)
    assert [each.stage for each in plan.releases] == ["regression", "influence"]
    first = plan.releases[0]
    assert first.bound == Bound(plan.moment_norm, cone=True)
    assert first.share == 0.95
    site = site_with(range(5), people(0, 5).T)
    z = np.vstack(
        [site.table()[:2], np.full((1, 5), plan.intercept), plan.weight * site.table()[2]]
    )
    found = plan.statistics["regression_moment"](plan, site, Query("", ""), first.bound)
    assert np.array_equal(found, mean_packed_square(z, first.bound.norm))


def test_who_moves_to_the_other_part_moves_both_releases_as_far_as_planned():
    plan = plan_for()
    arguments = {"weights": np.ones(3), "edges": np.zeros(15)}
    assert held_out_persons(hashes_of_positions(4), 0.4).tolist() == [False, False, False, True]
    one = [(9, 0, 1)]
    moved = []
    for stage, given in (("regression", {}), ("held_out", arguments)):
        before, bound = total(plan, [TRAINS], one, stage, **given)
        after, _ = total(plan, [HELD], one, stage, **given)
        moved.append(np.linalg.norm(after - before) / bound.spread)
    # √(B² + B²) of √2·B, and a single one of √2; the count of all participants stays.
    assert moved == pytest.approx([1.0, 0.5**0.5])
    same, _ = total(plan, [TRAINS], [(0, 9, -1)], "regression")
    other, bound = total(plan, [TRAINS], one, "regression")
    assert np.linalg.norm(same - other) == pytest.approx(bound.spread, rel=0.02)


def test_edges_without_order_give_each_participant_its_own_place():
    plan = plan_for()
    rng = np.random.default_rng(0)
    columns = people(1, 20).T
    for _ in range(50):
        given = {"weights": rng.normal(size=3), "edges": rng.normal(size=15)}
        whole, _ = total(plan, range(20), columns, "held_out", **given)
        single = [total(plan, [k], [columns[k]], "held_out", **given)[0] for k in range(20)]
        assert whole == pytest.approx(sum(single), abs=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_no_question_makes_a_participant_count_more_than_once(value):
    plan = plan_for()
    given = {"weights": np.full(3, value), "edges": np.full(15, value)}
    found, _ = total(plan, [HELD], [(0.5, -0.5, 1)], "held_out", **given)
    assert sorted(found)[-2:] == [0.0, 1.0]


def test_coefficients_are_those_of_the_training_participants():
    table = people(2, 900)
    sites = [
        ArrayData(list(part.T[:, :, None]), views=VIEWS) for part in np.split(table, 3, axis=1)
    ]
    trains = [~held_out_persons(site.person_hashes, 0.4) for site in sites]
    fewer = [
        ArrayData(
            [block for block, yes in zip(site.blocks(), own, strict=True) if yes], views=VIEWS
        )
        for site, own in zip(sites, trains, strict=True)
    ]
    found = drive(REGRESSION, parameters(held_out=0.4), sites)[2]
    expected = drive(REGRESSION, parameters(held_out=0.0), fewer)[2]
    for name in ("coefficients", "low", "high", "predictor"):
        assert found.arrays[name] == pytest.approx(expected.arrays[name], rel=1e-6), name
    assert found.arrays["held_out"].sum() == pytest.approx(900 - sum(map(np.sum, trains)))


def parameters(**more):
    return REGRESSION.Parameters.model_validate(LOGISTIC | more)


def test_only_a_logistic_model_has_held_out_participants():
    with pytest.raises(ValidationError, match="held_out: it belongs to model: logistic"):
        parameters(model="linear", held_out=0.2)


def test_a_study_whose_auc_would_be_too_noisy_is_refused():
    plan = plan_for((200, 200))
    noisy = REGRESSION(plan.parameters, replace(plan.shape, noise=20.0))
    with pytest.raises(StudyError, match=r"must be at most 0\.05, got 1\.\d* \(.* by noise"):
        noisy.planned()
    assert plan.planned()
    with pytest.raises(StudyError, match=r"About (\d+),(\d+) participants would be") as refused:
        noisy.planned()
    enough = int(re.search(r"About ([\d,]+)", str(refused.value))[1].replace(",", "")) // 2
    for many, factor in ((enough, 1.01), (enough, 0.99)):
        sizes = (round(many * factor),) * 2
        larger = REGRESSION(plan.parameters, replace(noisy.shape, subjects=sizes, samples=sizes))
        if factor > 1:
            assert larger.planned()
            continue
        with pytest.raises(StudyError):
            larger.planned()
    anyway = plan.parameters.model_copy(update={"anyway": True})
    assert REGRESSION(anyway, noisy.shape).planned()


def test_the_approval_names_what_becomes_public_of_held_out_participants():
    (_, sentence) = plan_for((60, 60)).remarks()
    assert "about 40 % of each site's participants" in sentence
    assert "charged to every participant" in sentence
    assert not any("keyed hash" in each for each in plan_for(held_out=0.0).remarks())


def test_the_noise_is_as_forecast_and_meets_the_promise():
    cells = judged(KIND["normal"], 2000, 2.9, 0.5, range(12), anyway=False)
    noise, forecast = float(cells[2]), float(cells[3])
    assert forecast < 0.015
    assert noise == pytest.approx(forecast, rel=0.5)


@pytest.mark.parametrize("name", ["random labels", "random labels, sites differ"])
def test_random_labels_are_not_found_to_be_predicted(name):
    plan = plan_of(KIND[name], 1000, 8.0, 0.3, anyway=True)
    runs = [run_study(KIND[name], plan, 1000, seed) for seed in range(16)]
    assert sum(each.found for each in runs) <= 3
    assert np.mean([each.covered for each in runs]) >= 0.8


def test_constant_columns_and_rare_labels_end_without_a_finding():
    for name in ("constant columns", "one in a hundred positive"):
        plan = plan_of(KIND[name], 400, 2.0, 0.3, anyway=True)
        assert not any(run_study(KIND[name], plan, 400, seed).found for seed in range(4))


def test_the_calibration_of_separated_classes_is_withheld():
    """A bin then has participants of very different probabilities."""
    plan = plan_of(KIND["classes far apart"], 2000, 8.0, 0.3, anyway=True)
    runs = [run_study(KIND["classes far apart"], plan, 2000, seed) for seed in range(3)]
    assert all(np.isnan(each.slope) for each in runs)
    assert all(each.found and each.value > 0.97 for each in runs)
