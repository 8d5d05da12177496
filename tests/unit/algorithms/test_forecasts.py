"""What analyses foretell of a plan: the plan's own noise, and what studies then come to."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.forecasts import ANALYSES, row
from consortium.algorithms import REGISTRY
from consortium.algorithms.assumed import deviation_of
from consortium.algorithms.base import Expects
from consortium.coordinator.design import Assumed, expect
from consortium.coordinator.design_page import design_studies
from consortium.kernels.power_plan import expected_strengths
from consortium.kernels.replay import SymmetricNoise
from tests.support.cases import CASES, make_sites, make_study, sites_for, study_of

FORETOLD = [each for each in CASES if each[0] in ("average", "regression", "cca", "pca")]


def _assumed(name, case):
    sites, study = sites_for(case), study_of(name, case)
    sizes = tuple(len(site.lengths) for site in sites)
    return Assumed(study, sites[0].extent, sizes, max(map(max, (s.lengths for s in sites))))


@pytest.mark.parametrize(("name", "case"), FORETOLD)
def test_noise_is_the_plans_own(name, case):
    plan = _assumed(name, case).plan
    for stage in plan.stages:
        level = stage.mechanism.noise.aggregate()
        assert deviation_of(stage.release, plan.shape) == pytest.approx(level, rel=0.01)


@pytest.mark.parametrize("name", ["average", "linear regression", "logistic regression"])
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
    assert isinstance(REGISTRY[ANALYSES[name].algorithm], Expects)


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
        pages.append("There is no forecast for this analysis" in path.read_text())
    assert pages == [False, True]


def test_an_average_is_as_sure_as_its_formula_says():
    extent = make_sites(features=4)[0].extent
    assumed = Assumed(make_study("average"), extent, (50,) * 4, 10)
    (stage,), (error, least) = assumed.plan.stages, expect(assumed.plan)
    assert error.low == pytest.approx(stage.mechanism.noise.aggregate(), rel=0.01)
    assert error.high == pytest.approx(math.hypot(error.low, 1 / math.sqrt(200 * 4)), rel=1e-6)
    assert error.low < error.value < error.high < least.value
