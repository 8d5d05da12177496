"""A site's policy: every refusal names its field, and a file says the same as the model."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Shape
from consortium.base.frozen_model import field_texts
from consortium.errors import BudgetError, ConfigurationError, PrivacyError
from consortium.privacy.gdp import delta_of, epsilon_of, mu_of
from consortium.study.plan import make_plan
from site_agent.layout import POLICY
from site_agent.policy.policy import (
    DAYS,
    Allowance,
    Policy,
    SpentLoss,
    StudyRequest,
    Window,
    check_statistic,
    refusals,
    refuse_by_policy,
)
from tests.support.cases import make_study, study_of

SHAPE = Shape(6, (30, 30, 30, 30), (900, 900, 900, 900), "subject")
LOOSE = Policy(units=("subject", "timepoint"))


def _found(policy: Policy, study, plan=None, **more) -> list[str]:
    return [str(error) for error in refusals(policy, study, plan, StudyRequest("east", **more))]


def test_the_defaults_allow_an_ordinary_study() -> None:
    study = make_study("ica", {"components": 2})
    assert _found(Policy(), study) == []
    assert _found(Policy(), study, make_plan(study, SHAPE)) == []


REFUSED = {
    "units": (Policy(), make_study(unit="timepoint", epsilon=1.0)),
    "boost": (Policy(boost="exact"), make_study(boost=10_000)),
    "statistics": (Policy(statistics=("second_moment",)), make_study()),
    "fewest_sites": (Policy(fewest_sites=5), make_study()),
    "most_dropouts": (Policy(most_dropouts=0), make_study(colluding_sites=0, dropouts=1)),
    "fewest_colluding_sites": (Policy(), make_study(colluding_sites=0)),
    "subject.study": (Policy(), make_study(epsilon=10.5)),
    "subject.total": (Policy(subject=Allowance(study=10, total=7)), make_study()),
    "timepoint.study": (LOOSE, make_study(unit="timepoint", epsilon=5.5)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_its_field_what_is_asked_and_what_allowed(name: str) -> None:
    policy, study = REFUSED[name]
    shape = Shape(6, SHAPE.subjects, SHAPE.samples, study.privacy.unit)
    said = _found(policy, study, make_plan(study, shape))
    field = name.split(",")[0]
    (first, *_) = [line for line in said if f"policy.yaml: field '{field}'" in line]
    assert "asks for" in first or "is asked for" in first
    assert "allow" in first or "over the limit" in first
    plan = None if field.startswith("few") else make_plan(study, shape)
    with pytest.raises(PrivacyError) as caught:
        refuse_by_policy(policy, study, plan, StudyRequest("x"))
    assert isinstance(caught.value, PrivacyError)


def test_a_site_can_refuse_releases_for_further_models() -> None:
    for case in REGISTRY["glm"].cases:
        study = study_of("glm", case)
        said = [line for line in _found(Policy(refits=False), study) if "'refits'" in line]
        assert len(said) == (case.analysis["contrasts"] == "all")
        assert not [line for line in _found(Policy(), study) if "'refits'" in line]


def test_what_needs_no_sizes_is_refused_without_a_plan() -> None:
    for name, (policy, study) in REFUSED.items():
        assert any(f"'{name.split(',')[0]}'" in line for line in _found(policy, study)), name


def test_a_policy_with_a_removed_field_is_refused_with_what_to_delete(tmp_path: Path) -> None:
    (tmp_path / POLICY).write_text("persons_over_limit: leave-out\nfewest_subjects_chosen: 10\n")
    with pytest.raises(ConfigurationError) as caught:
        Policy.load(tmp_path)
    assert "the fields persons_over_limit, fewest_subjects_chosen were removed" in str(caught.value)
    assert str(caught.value).endswith("Delete these lines.")


def test_a_site_says_which_column_families_are() -> None:
    (case, *_) = (each for each in REGISTRY["glm"].cases if "units" in each.analysis)
    for column, more in (("family_id", {}), ("household", {"family_column": "household"})):
        study = study_of("glm", replace(case, analysis=case.analysis | _families(column)))
        assert not any("family_column" in each for each in _found(Policy(**more), study))
    (said,) = (each for each in _found(Policy(), study) if "family_column" in each)
    assert "asks for families by column household and this site allows family_id" in said


def _families(column: str) -> dict[str, dict[str, object]]:
    return {"units": {"family": column, "most_rows": 2}}


def test_every_refusal_is_told_at_once_and_check_raises_the_first() -> None:
    policy = Policy(boost="exact", fewest_sites=5, statistics=())
    study = make_study(boost=10_000, epsilon=50.0)
    said = _found(policy, study)
    assert len(said) == 5
    with pytest.raises(PrivacyError) as caught:
        refuse_by_policy(policy, study, None, StudyRequest("east"))
    assert str(caught.value) == said[0]
    with pytest.raises(BudgetError, match=r"subject\.study"):
        refuse_by_policy(Policy(), make_study(epsilon=50.0), None, StudyRequest("east"))


def test_a_study_without_this_site_is_refused() -> None:
    (said,) = refusals(Policy(), make_study(), None, StudyRequest("nowhere"))
    assert "'nowhere'" in str(said)


def test_another_delta_is_converted_and_not_believed() -> None:
    policy = Policy(subject=Allowance(study=8, total=20))
    assert _found(policy, make_study(epsilon=8.0, delta=1e-5)) == []
    assert any("subject.study" in line for line in _found(policy, make_study(delta=1e-3)))
    assert _found(policy, make_study(epsilon=8.0, delta=1e-7)) == []


@given(st.floats(0.1, 9.9), st.integers(0, 12), st.floats(0, 3), st.floats(0, 3))
def test_the_limits_hold_by_exact_composition(epsilon, runs, earlier, others) -> None:
    policy = Policy(subject=Allowance(study=10, total=12))
    study = make_study(epsilon=epsilon)
    total = (earlier**2 + others**2) ** 0.5
    said = _found(policy, study, spent=SpentLoss(earlier, total), runs=runs)
    each = runs * mu_of(epsilon, 1e-5) ** 2
    for field, before, limit in (("study", earlier, 10), ("total", total, 12)):
        mu = (before**2 + each) ** 0.5
        over = delta_of(mu, limit) > 1e-5 * (1 + 1e-6)
        assert any(f"subject.{field}" in line for line in said) == over


def test_the_account_is_charged_with_the_plan_and_the_study_with_its_promise() -> None:
    study = make_study("ica", {"components": 2}, epsilon=8.0)
    plan = make_plan(study, SHAPE)
    plan = replace(plan, stages=plan.stages[:1])  # of less than the study promises
    own = epsilon_of(plan.site_loss(1), 1e-5)
    assert own < 6
    policy = Policy(subject=Allowance(study=10, total=(own + 8) / 2))
    assert ["subject.total" in line for line in _found(policy, study)] == [True]
    assert _found(policy, study, plan) == []


def test_statistics_are_checked_one_by_one() -> None:
    policy = Policy(statistics=("second_moment",))
    check_statistic(policy, "second_moment")
    with pytest.raises(PrivacyError, match="'rotation' is asked for and second_moment"):
        check_statistic(policy, "rotation")
    check_statistic(Policy(), "rotation")
    asked = _found(policy, make_study("ica", {"components": 2, "optimizer": "gradient"}))
    assert len(asked) == 1
    assert "infomax" in asked[0]


def test_limits_are_the_allowances_mu_for_the_units_that_are_allowed() -> None:
    assert Policy().totals() == {"subject": mu_of(20.0, 1e-5)}
    assert LOOSE.totals() == {"subject": mu_of(20.0, 1e-5), "timepoint": mu_of(5.0, 1e-5)}
    assert LOOSE.study_limit("subject") == mu_of(10.0, 1e-5)


# -- the file ---------------------------------------------------------------------------------

WINDOWS = st.builds(
    lambda **fields: Window(**fields),  # hypothesis would also fill in the aliases
    days=st.lists(st.sampled_from(DAYS), min_size=1, unique=True).map(tuple),
    opens=st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    closes=st.times().map(lambda t: t.replace(second=0, microsecond=0)),
)
POLICIES = st.builds(
    Policy,
    subject=st.builds(Allowance, study=st.floats(0.01, 100), total=st.floats(0.01, 100)),
    delta=st.floats(1e-12, 0.4),
    units=st.sampled_from([("subject",), ("timepoint",), ("timepoint", "subject")]),
    statistics=st.sampled_from([None, (), ("rotation",), ("infomax", "second_moment")]),
    fewest_sites=st.integers(1, 99),
    hours=st.lists(WINDOWS, max_size=3).map(tuple),
)


@given(POLICIES)
def test_saved_and_loaded_is_the_same(tmp_path_factory: pytest.TempPathFactory, policy) -> None:
    folder = tmp_path_factory.mktemp("policy")
    policy.save(folder)
    assert Policy.load(folder) == policy


def test_the_file_explains_every_field(tmp_path: Path) -> None:
    Policy().save(tmp_path)
    text = (tmp_path / POLICY).read_text()
    assert set(yaml.safe_load(text)) == set(Policy.model_fields)
    flat = " ".join(text.replace("#", " ").split())
    for model in (Policy, Allowance):
        for text in field_texts(model).values():
            assert text
            assert text in flat
    assert max(map(len, text.splitlines())) <= 100


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert Policy.load(tmp_path) == Policy()
    (tmp_path / POLICY).write_text("# nothing but a comment\n")
    assert Policy.load(tmp_path) == Policy()
    (tmp_path / POLICY).write_text("delta: 1.0e-6\n")
    assert Policy.load(tmp_path) == Policy(delta=1e-6)


WRONG = {
    "- a\n": "has no fields",
    "units: [\n": "plain YAML",
    "deltas: 1.0e-5\n": "field 'deltas' is unknown",
    "delta: 0.7\n": "delta must be",
    "delta: 1.0e-5\ndelta: 1.0e-2\n": "line 2",
    "units: &a [subject]\nstatistics: *a\n": "aliases",
    "units: !!python/tuple [subject]\n": "tags",
    "units: []\n": "units must be",
    "units: [person]\n": "units.0 must be",
    "units: [subject, subject]\n": "listed twice",
    "schemes: [cape, secure-sum]\n": "instead, write 'boost: any', or 'boost: exact'",
    "boost: 10000\n": "boost must be 'exact' or 'any'",
    "statistics: [everything]\n": "'everything' is not a statistic",
    "subject: {study: 1}\n": "field 'subject.total'",
    "subject: {study: .inf, total: 3}\n": "subject.study must be",
    "fewest_sites: 0\n": "fewest_sites must be",
    "hours: [{from: 25:00, to: 06:00}]\n": "field 'hours.0.from'",
    "hours: [{from: 20:00}]\n": "field 'hours.0.to'",
    "hours: [{days: [monday], from: 20:00, to: 06:00}]\n": "hours.0.days.0 must be",
    "x: " + "a" * 1_000_001: "keep it to a page",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_file(text: str, tmp_path: Path) -> None:
    (tmp_path / POLICY).write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        Policy.load(tmp_path)
    assert WRONG[text] in str(caught.value)
    assert str(tmp_path / POLICY) in str(caught.value)


def test_a_file_that_can_not_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / POLICY).write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="can't be read"):
        Policy.load(tmp_path)
    (tmp_path / POLICY).unlink()
    (tmp_path / POLICY).symlink_to(tmp_path / "gone")
    with pytest.raises(ConfigurationError, match="can't be read"):
        Policy.load(tmp_path)
