"""The words that a paper's methods section is given: each is there where it is true, only."""

import re

import numpy as np
import pytest

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from consortium.simulation.simulation import Simulation
from tests.unit.algorithms.test_glm_smooth import GRID, sites_of_images, study

PEOPLE = make_people(600, 20, 8, np.random.default_rng(0))
COUNTED = {"shares": 0.5, "groups": {}}
ALONE = {"formula": "dx1", "covariates": {}}


def told(noise: float | None = None, missing=(), **analysis) -> str:
    """Methods of a study of twenty outcomes."""
    trial = make_trial(PEOPLE, **analysis)
    own = noise_of(4, 8) if noise is None else noise
    return run_trial(trial, own, np.random.default_rng(0), missing).captions.methods


def test_model_unit_clipping_errors_and_tests_are_told():
    text = told()
    assert "Each of 20 outcomes was regressed on dx1, age1, icv1 and sex1" in text
    assert "The loss of long tails by clipping was estimated from three released sums" in text
    assert re.search(
        r"a constant of its own for every site, over \d+ participants at 8 sites", text
    )
    assert re.search(r"one factor of all standard deviations \([01]\.\d+\), were learned", text)
    assert "starting from stated norms, and shrunk towards these values" in text
    assert "clipped at 16 of them; columns with limits at 2.5 of their own" in text
    assert re.search(
        r"stated correlation \(0\.25\).* at most (0|1)\.\d+ times the usual norm", text
    )
    assert "by each site's share of the group, from counts" in text
    assert "It was adjusted for age1, icv1 and sex1 by least squares within sites" in text
    assert re.search(r"slopes were multiplied by (0\.[5-9]\d|1\.00)", text)
    assert "differences of random pairs" in text
    assert "noise of earlier rounds" in text
    assert "intervals at 95 %" in text
    assert "controlled at 5 % over the 20 tests after Benjamini and Hochberg" in text


def test_persons_are_those_who_answered():
    gone = frozenset({0})
    left = int((PEOPLE.site != 0).sum())
    many = re.search(r"over (\d+) participants at 7 sites", told(missing=(gone, gone, gone)))
    assert many
    assert abs(int(many[1]) - left) < 60


@pytest.mark.parametrize(
    ("analysis", "there", "missing"),
    [
        (COUNTED, "share of the group, from counts, which was released with noise", "publicly"),
        ({"contrasts": {"age": "age1"}, "groups": {}}, "by each site's mean", "share of the group"),
        (ALONE, "regressed on dx1 by", "adjusted for"),
        (ALONE, "noise of earlier rounds", "adjusted for"),
        ({"norms": {}}, "learned in the first round, starting from the middle", "stated norms"),
        ({"averages": {"lobe": ["brain1"]}}, "of 1 group of outcomes (lobe)", "Every other"),
        ({"contrasts": "all"}, "Every other coefficient was also released", "means of"),
        ({"confidence": 0.9, "discoveries": 0.1}, "intervals at 90 %", "at 5 % over"),
    ],
)
def test_what_a_study_does_not_do_is_not_told(analysis, there, missing):
    text = told(**analysis)
    assert there in text
    assert missing not in text


def test_a_study_without_noise_tells_of_no_clipping_and_no_noise():
    text = told(0.0)
    assert "noise" not in text
    assert "clipped" not in text
    assert "multiplied" not in text


def test_maps_of_smooth_images_name_their_basis():
    sites, _ = sites_of_images(GRID)
    result = Simulation(study(), sites, 3).run()
    text = result.captions.methods
    assert "Each of 125 voxels was regressed on diagnosis" in text
    assert f"The coefficients of {result.numbers['smooth_maps']} maps were released" in text
    assert f"wavelength of {2 * result.numbers['finest_detail_mm']:.3g} mm" in text
    assert "the difference of 'patient' from 'control'" in text
    assert "covariance" in text
    assert "correlation" not in text
