"""The design of a study: its numbers are the plan's, and say what they would be nearby."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import AnalysisPlan
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.power import forecast_power
from consortium.algorithms.group_ica.forecast import forecast_networks
from consortium.coordinator.design import Assumed, design, design_studies, project_accounts
from consortium.errors import StudyError
from consortium.privacy.gdp import compose, epsilon_of, mu_of
from consortium.space.study_space import study_space
from consortium.study.outlook import Outlook
from consortium.study.plan import make_plan
from consortium.study.reader import read_study
from consortium.study.spec import Study
from tests.support.cases import CASES, make_sites, make_study, sites_for, study_of
from tests.support.command_line import enter

CONFIGS = Path(__file__).parents[3] / "configs"
GLM_SIZES = (260, 200, 290, 250, 240, 220)


def _assumed(name: str, subjects: tuple[int, ...]) -> Assumed:
    study = read_study(CONFIGS / f"{name}.yaml")
    return Assumed(study, study_space(study, CONFIGS).extent, subjects, 100)


def _glm() -> Assumed:
    return _assumed("glm", GLM_SIZES)


def test_numbers_are_those_that_the_plan_foretells():
    glm = _glm()
    plan = make_plan(glm.study, glm.extent.shape(GLM_SIZES, GLM_SIZES, "subject"))
    found = forecast_power(Glm(plan.study.analysis, plan.shape))
    told = {each.name: each for each in Outlook(glm.plan).expected}
    assert told["standard error"].value == pytest.approx(found.error)
    assert told["least detectable effect"].value == pytest.approx(found.detectable)
    ica = _assumed("group_ica", (60,) * 8)
    networks = forecast_networks(ica.plan.analysis)
    told = {each.name: each for each in Outlook(ica.plan).expected}
    assert told["expected correlation"].value == pytest.approx(np.mean(networks.expected))
    assert told["components found"].value == networks.found


def test_power_is_08_at_the_least_detectable_effect():
    glm = _glm()
    least = Outlook(glm.plan).expected[1].value
    analysis = glm.study.analysis.model_copy(update={"detect": least})
    study = glm.study.model_copy(update={"analysis": analysis})
    power = Outlook(Assumed(study, glm.extent, GLM_SIZES, 100).plan).expected[2]
    assert power.value == pytest.approx(0.8)
    assert power.low < 0.8 < power.high


def test_studies_nearby_are_what_they_are_said_to_be():
    glm = _glm()
    assert glm.with_epsilon(0.5).study.privacy.epsilon == 2.0
    twice = glm.with_persons(2.0)
    assert twice.subjects == tuple(2 * size for size in GLM_SIZES)
    more = glm.with_hospitals(2)
    assert more is not None
    assert len(more.study.sites) == len(more.subjects) == len(more.study.analysis.groups) == 8
    assert more.subjects[-1] == 243
    assert glm.study.analysis.groups["east"] == (90, 110)


@pytest.mark.parametrize(
    "changes",
    [
        {"contrasts": {"age": "age"}, "groups": {}},
        {"shares": 0.4, "groups": {}},
    ],
)
def test_a_mega_analysis_without_stated_groups_can_be_designed_for_others_too(changes):
    glm = _glm()
    values = glm.study.model_dump(mode="json", exclude_none=True)
    if "shares" in changes:  # by site, so that hospitals to come need one too
        changes = {**changes, "shares": dict.fromkeys(glm.study.sites, 0.4)}
    values["analysis"] |= {**changes, "anyway": True}
    assumed = Assumed(Study.model_validate(values), glm.extent, GLM_SIZES, 100)
    errors = [Outlook(each.plan).expected[0].value for each in (assumed, assumed.with_persons(2.0))]
    more = assumed.with_hospitals(2)
    assert more is not None
    assert errors[0] > max(errors[1], Outlook(more.plan).expected[0].value)


@pytest.mark.parametrize("which", ["epsilon", "persons", "hospitals"])
def test_more_of_anything_makes_a_contrast_surer(which: str):
    found = design(_glm())
    errors = [point.expected[0].value for point in found.curves[which]]
    assert len(errors) == 5
    assert errors == sorted(errors, reverse=True)
    assert any("Half of ε (2 instead of 4): standard error" in each for each in found.sentences)
    assert all("worse" in each for each in found.sentences if each.startswith("Half"))
    assert all("better" in each for each in found.sentences if not each.startswith("Half"))


@pytest.mark.parametrize(("name", "case"), CASES)
def test_every_analysis_can_be_designed(name, case):
    sites, study = sites_for(case), study_of(name, case)
    sizes = tuple(len(site.lengths) for site in sites)
    assumed = Assumed(study, sites[0].extent, sizes, max(map(max, (s.lengths for s in sites))))
    told = Outlook(assumed.plan).expected
    assert told
    assert all(math.isfinite(each.value) for each in told)
    assert all(each.low <= each.value <= each.high for each in told if each.bounded)
    if REGISTRY[name].expect is AnalysisPlan.expect:
        noisier = Outlook(assumed.with_epsilon(0.5).plan).expected
        assert max(e.value for e in noisier) > max(e.value for e in told)


def test_ledgers_hold_what_is_spent_year_by_year():
    plan = _glm().plan
    once = plan.site_loss(0)
    (north, *_) = project_accounts([plan, plan], 3, 4, 20.0, 1e-5)
    assert north.site == "north"
    for year, told in enumerate(north.epsilons, start=1):
        assert told == pytest.approx(epsilon_of(compose([once] * 6 * year), 1e-5))
    over = [year for year, told in enumerate(north.epsilons, start=1) if told > 20.0]
    assert north.full == over[0]
    (kept, *_) = project_accounts([plan], 1, 2, epsilon_of(1.01 * math.sqrt(2) * once, 1e-5), 1e-5)
    assert kept.full == 0
    assert mu_of(kept.epsilons[0], 1e-5) == pytest.approx(once, rel=1e-6)


def test_the_command_writes_a_page_and_its_numbers(tmp_path: Path):
    words = (CONFIGS / "glm.yaml", "--subjects", "260,200,290,250,240,220", "--years", "3")
    said = enter("consortium", "design", *words, "--out", tmp_path)
    assert said.code == 0
    assert "Two more hospitals of 243 participants: standard error" in said.out.replace("\n", " ")
    told = json.loads((tmp_path / "design.json").read_text())
    study = told["studies"][0]
    assert study["expected"][0]["name"] == "standard error"
    assert [len(curve) for curve in study["curves"].values()] == [5, 5, 5]
    assert len(told["ledger"]["sites"]["north"]["epsilon_after_year"]) == 3
    page = (tmp_path / "design.html").read_text()
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert 'alt="standard error: over ε of the study from' in page
    assert page.count("<h1>") == 1


def test_the_page_says_what_becomes_public_and_what_is_smoothed_away(tmp_path: Path):
    sizes = "260,200,290,250,240,220"
    for name, smoothed in (("glm", False), ("glm-images", True)):
        words = (CONFIGS / f"{name}.yaml", "--subjects", sizes, "--out", tmp_path / name)
        assert enter("consortium", "design", *words).code == 0
        page = (tmp_path / name / "design.html").read_text()
        told = json.loads((tmp_path / name / "design.json").read_text())["studies"][0]["remarks"]
        assert "is released with noise of about" in page
        assert ("are smoothed away, which is" in page) == smoothed
        assert any("are smoothed away" in remark for remark in told) == smoothed


@pytest.mark.parametrize("name", ["glm", "glm-images"])
def test_examples_of_a_mega_analysis_pay(name: str):
    study = read_study(CONFIGS / f"{name}.yaml")
    sizes = tuple(sum(study.analysis.groups[site]) for site in study.sites)
    plan = Assumed(study, study_space(study, CONFIGS).extent, sizes, 100).plan
    table = REGISTRY["glm"](study.analysis, plan.shape).foretell()
    told = dict(zip(table.columns, table.rows[0], strict=True))
    assert told["study"] == "as it is"
    assert told["worth it"].startswith("yes")


def test_studies_of_two_units_are_not_added_up(tmp_path: Path):
    extent = make_sites(features=4)[0].extent
    one, other = (
        Assumed(make_study("average", unit=unit), extent, (5,) * 4, 10)
        for unit in ("subject", "timepoint")
    )
    with pytest.raises(StudyError, match="protect different units"):
        design_studies(tmp_path, [one, other], 1, 1)


def test_the_studys_own_numbers_are_planned_unless_others_are_given():
    said = [
        json.loads(enter("consortium", "plan", CONFIGS / "glm.yaml", "--json", *more).out)
        for more in ((), ("--subjects", "260,200,290,250,240,220"), ("--subjects", "400"))
    ]
    errors = [each["expected"][0]["value"] for each in said]
    assert errors[0] == errors[1] > errors[2]
