"""What analyses foretell of a plan: the plan's own noise, and what studies then come to."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.forecast_trials import ANALYSES
from benchmarks.forecasts import row
from consortium.algorithms import REGISTRY
from consortium.algorithms.assumed_persons import Classes, class_means, effect_at_accuracy
from consortium.algorithms.base import AnalysisPlan
from consortium.algorithms.pca.kernels.power_plan import expected_strengths
from consortium.coordinator.design import Assumed, design_studies
from consortium.kernels.noise_law import SymmetricNoise
from consortium.study.outlook import Outlook
from tests.support.cases import CASES, make_sites, make_study, sites_for, study_of

OTHERS = "glm", "group_ica", "template_networks", "ica", "tensor"
"""Analyses whose forecasts are those of `plan`, or that have none."""
FORETOLD = [each for each in CASES if each.values[0] not in OTHERS]


def _assumed(name, case):
    sites, study = sites_for(case), study_of(name, case)
    sizes = tuple(len(site.lengths) for site in sites)
    return Assumed(study, sites[0].extent, sizes, max(map(max, (s.lengths for s in sites))))


@pytest.mark.parametrize(("name", "case"), FORETOLD)
def test_noise_is_the_plans_own(name, case):
    plan = _assumed(name, case).plan
    for stage in plan.stages:
        noise, weights = stage.mechanism.noise, stage.mechanism.weights
        level = noise.aggregate()
        if stage.mechanism.each:
            level = max(own / part for own, part in zip(noise.local, weights, strict=True))
        assert stage.release.round_deviation(plan.shape) == pytest.approx(level, rel=0.01)


@pytest.mark.parametrize(
    "name", ["average", "average, uneven", "linear regression", "logistic regression"]
)
def test_an_error_is_about_what_studies_have(name):
    found = row(name, 4.0, 800, 25)
    assert found.told == 1.0
    assert abs(found.off) < 0.2


def test_the_chance_of_a_link_is_about_how_often_it_is_found():
    few, some = (row("cca", epsilon, 400, 6) for epsilon in (1.0, 8.0))
    assert (few.foretold, few.measured) == (0.0, 0.0)
    assert some.foretold > 0.8
    assert some.measured > 0.8


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_that_is_tried_has_a_forecast(name):
    assert REGISTRY[ANALYSES[name].algorithm].expect is not AnalysisPlan.expect


def test_principal_components_show_as_much_energy_as_eigenvectors_in_noise_do():
    features, size, level = 300, 20, 0.0004
    strengths = expected_strengths(features, size)
    law = SymmetricNoise(features, level)
    foretold = float(law.overlaps(strengths) @ strengths / strengths.sum())
    truth = np.diag(np.concatenate([strengths, np.zeros(features - size)]))
    shown = []
    for seed in range(4):
        noisy = truth + law.draw(np.random.default_rng(seed))
        basis = np.linalg.eigh(noisy)[1][:, -size:]
        shown.append(np.sum(basis[:size] ** 2 * strengths[:, None]) / strengths.sum())
    assert 0.3 < foretold < 0.98  # where it could be wrong
    assert foretold == pytest.approx(np.mean(shown), abs=0.05)


def test_a_page_says_where_there_is_no_forecast(tmp_path: Path):
    extent = make_sites(features=4)[0].extent
    pages = []
    for algorithm in ("average", "ica"):
        analysis = {"components": 2} if algorithm == "ica" else {}
        study = make_study(algorithm, analysis)
        path, _ = design_studies(tmp_path, [Assumed(study, extent, (50,) * 4, 10)], 1, 1)
        pages.append("has no forecast" in path.read_text())
    assert pages == [False, True]


def test_an_average_is_as_sure_as_its_formula_says():
    extent = make_sites(features=4)[0].extent
    assumed = Assumed(make_study("average"), extent, (50,) * 4, 10)
    (stage,), (error, least) = assumed.plan.stages, Outlook(assumed.plan).expected
    assert error.low == pytest.approx(stage.mechanism.noise.aggregate(), rel=0.01)
    assert error.high == pytest.approx(math.hypot(error.low, 1 / math.sqrt(200 * 4)), rel=1e-6)
    assert error.low < error.value < error.high < least.value


@pytest.mark.parametrize("name", ["network", "admm"])
def test_a_classifier_tells_about_as_many_persons_rightly_as_is_foretold(name):
    unsure, sure = (row(name, *cell, 4) for cell in ((0.5, 400), (8.0, 800)))
    assert unsure.foretold < 0.62  # noise costs nearly all of what could be told, and the forecast
    assert abs(unsure.measured - unsure.foretold) < 0.08  # knows it
    assert sure.foretold > 0.67
    assert abs(sure.measured - sure.foretold) < 0.02


@pytest.mark.parametrize(("name", "near"), [("describe", 0.2), ("summarize", 0.05)])
def test_what_noise_alone_decides_is_as_foretold(name, near):
    assert abs(row(name, 2.0, 400, 60 if name == "describe" else 4).off) < near


def test_means_of_a_view_with_a_level_are_as_unsure_as_foretold():
    held, free = (row("coordinate", epsilon, 400, 12) for epsilon in (1.0, 8.0))
    assert abs(held.off) < 0.25
    assert abs(free.off) < 0.25
    assert free.foretold < held.foretold


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_assumed_persons_are_told_apart_as_well_as_was_said(classes):
    rng = np.random.default_rng(0)
    law = Classes(class_means(0.7, classes, 6, rng), np.full(6, 0.4))
    entries, kinds = law.draw(100_000, rng)
    guessed = (law.means.T @ (entries / 0.4)).argmax(axis=0)
    assert np.mean(guessed == kinds) == pytest.approx(0.7, abs=0.005)


def test_no_accuracy_is_foretold_without_an_assumed_effect():
    case = REGISTRY["network"].cases[0]
    plan = _assumed("network", case).plan
    assert "analysis.detect" in plan.analysis.withheld()
    assert not any("accuracy" in each.name for each in Outlook(plan).expected)
    asked = replace(case, analysis={**case.analysis, "detect": 0.9})
    plan = _assumed("network", asked).plan
    assert plan.analysis.withheld() == ""
    assert Outlook(plan).expected[0].name == "expected accuracy"


@pytest.mark.parametrize("name", REGISTRY)
def test_an_analysis_without_a_forecast_says_why(name):
    analysis = REGISTRY[name]
    assert analysis.expect is not AnalysisPlan.expect or (
        analysis.withheld is not AnalysisPlan.withheld
    )


def test_classes_that_guessing_tells_as_well_lie_together():
    assert effect_at_accuracy(0.5, 2) == 0.0
    assert effect_at_accuracy(1 / 3, 3) == 0.0
    assert effect_at_accuracy(0.51, 2) > 0.0
