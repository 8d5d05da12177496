"""`privacy_report.json`: its keys, its inverse and what it refuses."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from consortium.errors import OutputError
from consortium.report.privacy_report import (
    Guarantee,
    Guarantees,
    Person,
    PrivacyReport,
    read_privacy_report,
    write_privacy_report,
)
from consortium.report.statement import few_sentences, sizes_text
from tests.support.report_samples import guarantee, sample_report, sample_study

STUDY = sample_study()
KEYS = {
    "": "study unit adjacency scheme boost open_vectors sampler colluding_sites delta guarantees "
    "sites releases cross_check versions person promised graph public",
    "guarantees": "coalition outsider",
    "guarantees.coalition": "epsilon mu",
    "guarantees.outsider": "epsilon mu",
    "promised": "epsilon mu",
    "person": "epsilon_coalition mu_coalition volumes",
    "sites.0": "name nominal units units_deviation answered mu_coalition",
    "releases.0": "stage round statistic entries bound sensitivity weights sigma_correlated "
    "sigma_local sigma_aggregate mu_coalition mu_outsider survivors",
    "cross_check": "library version epsilon_coalition",
}


def written(report, path):
    write_privacy_report(path, report)
    return json.loads(path.read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize("place", KEYS)
def test_keys_are_exactly_those_of_the_surface(place, tmp_path):
    part = written(sample_report(STUDY), tmp_path / "r.json")
    for step in filter(None, place.split(".")):
        part = part[int(step)] if step.isdigit() else part[step]
    assert set(part) == set(KEYS[place].split())


@pytest.mark.parametrize("unit", ["subject", "timepoint"])
def test_reading_is_the_inverse_of_writing(unit, tmp_path):
    report = sample_report(STUDY, unit)
    assert read_privacy_report(write_privacy_report(tmp_path / "r.json", report)) == report


@given(epsilon=st.floats(0, allow_nan=False), mu=st.floats(0, allow_nan=False))
def test_every_loss_survives_the_json(epsilon, mu):
    loss = Guarantee(epsilon=epsilon, mu=mu)
    assert Guarantee.model_validate_json(loss.model_dump_json()) == loss


def test_infinity_is_a_word_in_the_file(tmp_path):
    endless = Guarantee(epsilon=math.inf, mu=math.inf)
    report = sample_report(
        STUDY,
        scheme="none",
        boost=math.inf,
        guarantees=Guarantees(coalition=endless, outsider=endless),
        person=Person(epsilon_coalition=math.inf, mu_coalition=math.inf, volumes=120),
    )
    content = written(report, tmp_path / "r.json")
    assert content["boost"] == "infinite"
    assert content["guarantees"]["coalition"] == {"epsilon": "infinite", "mu": "infinite"}
    assert read_privacy_report(tmp_path / "r.json").guarantees.coalition.mu == math.inf


def test_nan_and_negative_losses_are_refused():
    for value in (math.nan, -0.1, "much"):
        with pytest.raises(ValidationError):
            Guarantee(epsilon=value, mu=1.0)


def test_every_field_is_described():
    schema = PrivacyReport.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        for name, field in model["properties"].items():
            assert field.get("description"), name


def test_a_report_that_understates_is_refused():
    report = sample_report(STUDY)
    true = report.guarantees.coalition.mu
    weak = Guarantees(coalition=guarantee(true * 0.99), outsider=report.guarantees.outsider)
    with pytest.raises(ValidationError, match="costs more than the guarantee"):
        sample_report(STUDY, guarantees=weak)
    none = Guarantees(coalition=report.guarantees.coalition, outsider=guarantee(1e-3))
    with pytest.raises(ValidationError, match="outsider"):
        sample_report(STUDY, guarantees=none)
    person = report.person.model_copy(update={"mu_coalition": true / 2})
    with pytest.raises(ValidationError, match="a participant"):
        sample_report(STUDY, person=person)


def test_lists_that_do_not_fit_the_sites_are_refused():
    release = sample_report(STUDY).releases[0]
    for change in ({"weights": (0.5, 0.5)}, {"sigma_local": (1.0,)}, {"survivors": ("nobody",)}):
        with pytest.raises(ValidationError, match="round 1"):
            sample_report(STUDY, releases=(release.model_copy(update=change),))
    sites = sample_report(STUDY).sites
    with pytest.raises(ValidationError, match="twice"):
        sample_report(STUDY, sites=(sites[0], sites[0], sites[2]))


def test_one_number_may_stand_for_all_sites(tmp_path):
    release = sample_report(STUDY).releases[0]
    equal = release.model_copy(update={"sigma_local": 0.5, "sigma_correlated": math.inf})
    content = written(sample_report(STUDY, releases=(equal,)), tmp_path / "r.json")
    assert content["releases"][0]["sigma_local"] == 0.5
    assert content["releases"][0]["sigma_correlated"] == "infinite"
    assert read_privacy_report(tmp_path / "r.json").releases[0] == equal


@pytest.mark.parametrize("damage", ["unit", "versions"])
def test_a_file_without_a_key_is_refused_by_name(damage, tmp_path):
    path = tmp_path / "r.json"
    content = written(sample_report(STUDY), path)
    del content[damage]
    path.write_text(json.dumps(content))
    with pytest.raises(OutputError, match=damage):
        read_privacy_report(path)


def test_a_missing_truncated_or_longer_file_is_refused(tmp_path):
    path = tmp_path / "r.json"
    with pytest.raises(OutputError, match="can't be read"):
        read_privacy_report(path)
    content = written(sample_report(STUDY), path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(OutputError):
        read_privacy_report(path)
    path.write_text(json.dumps(content | {"subjects": ["sub-01"]}))
    with pytest.raises(OutputError, match="subjects"):
        read_privacy_report(path)


def test_a_site_with_clearly_fewer_than_half_of_its_nominal_number_is_named():
    report = sample_report(STUDY)
    first, *others = report.sites
    few = first.model_copy(update={"nominal": 100, "units": 20, "units_deviation": 5.0})
    unsure = first.model_copy(update={"nominal": 100, "units": 40, "units_deviation": 5.0})
    for site, named in ((few, True), (unsure, False)):
        changed = report.model_copy(update={"sites": (site, *others)})
        said = few_sentences(changed)
        assert [first.name in sentence for sentence in said] == ([True] if named else [])
        assert ("far below the nominal 100" in sizes_text(changed)) == named
