"""The privacy statement says what the figures say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from consortium.base.formatting import count, number, percent, power_of_ten
from consortium.privacy.gdp import best_guess, detection_power, epsilon_of
from consortium.report.sections.methods import analysis_methods
from consortium.report.sections.verdict import guarantee_text
from consortium.report.statement import statement
from tests.support.report_samples import guarantee, sample_report, sample_study

STUDY = sample_study()


def text(*arguments, **changes):
    return "\n".join(statement(sample_report(STUDY, *arguments, **changes)))


@given(mu=st.floats(0, 30), alarms=st.floats(1e-6, 0.5))
def test_power_is_the_gaussian_tests(mu, alarms):
    power = detection_power(mu, alarms)
    assert power == pytest.approx(norm.cdf(norm.ppf(alarms) + mu), abs=1e-9)
    # (ε, δ)-DP bounds the power of every test, so the two currencies must agree.
    assert power <= math.exp(epsilon_of(mu, 1e-5)) * alarms + 1e-5 + 1e-9


def test_power_and_guess_are_what_a_simulated_adversary_reaches():
    generator, mu, draws = np.random.default_rng(0), 0.9, 400_000
    absent, present = generator.standard_normal(draws), generator.standard_normal(draws) + mu
    bar = np.quantile(absent, 0.95)
    assert (present > bar).mean() == pytest.approx(detection_power(mu), abs=0.005)
    right = ((present > mu / 2).mean() + (absent <= mu / 2).mean()) / 2
    assert right == pytest.approx(best_guess(mu), abs=0.005)


def test_no_loss_is_blind_guessing_and_endless_loss_is_certainty():
    assert detection_power(0.0) == pytest.approx(0.05)
    assert best_guess(0.0) == 0.5
    assert detection_power(math.inf) == best_guess(math.inf) == 1.0


def test_statement_names_both_guarantees_their_unit_and_their_meaning():
    report = sample_report(STUDY)
    said = text()
    for seer in (report.guarantees.coalition, report.guarantees.outsider):
        assert f"ε = {number(seer.epsilon)}" in said
        assert percent(detection_power(seer.mu)) in said
        assert percent(best_guess(seer.mu)) in said
    assert "Per subject, at δ = 10⁻⁵" in said
    assert "up to 1 of the 3 sites" in said
    assert "The promise was kept" in said
    assert "simulation" not in said


def test_a_timepoint_study_says_what_it_means_for_a_person():
    report = sample_report(STUDY, "timepoint")
    assert report.person.mu_coalition == pytest.approx(120 * report.guarantees.coalition.mu)
    said = text("timepoint")
    assert "not a participant with all scans" in said
    assert f"ε = {number(report.person.epsilon_coalition)}" in said
    assert "for a participant" not in text("subject")


def test_a_broken_promise_is_shouted():
    assert "BROKEN" in text(share=1.01)
    assert "BROKEN" not in text(share=1.0)


def test_a_simulation_and_a_run_without_noise_do_not_reassure():
    assert text(sampler="seeded NumPy").startswith("A simulation")
    endless = {"coalition": guarantee(math.inf), "outsider": guarantee(math.inf)}
    person = sample_report(STUDY).person.model_copy(update={"mu_coalition": math.inf})
    said = text(scheme="none", guarantees=endless, person=person)
    assert said.startswith("No protection")
    assert "ε" not in said


def test_conditions_name_the_colluders():
    assert "At most one site works with the centre" in text()
    assert "No site works with the centre" in text(colluding_sites=0)
    assert "At most 2 sites work with the centre" in text(colluding_sites=2)
    assert "opens only" in text()
    assert "opens only" not in text(scheme="local")


@pytest.mark.parametrize(
    ("value", "words"), [(1e-5, "10⁻⁵"), (2e-6, "2·10⁻⁶"), (1.25e-10, "1.25·10⁻¹⁰")]
)
def test_small_numbers_are_powers_of_ten(value, words):
    assert power_of_ten(value) == words


def test_only_certainty_is_written_as_100_percent():
    assert percent(0.99999) == "more than 99.9 %"
    assert percent(1.0) == "100 %"
    assert percent(0.05) == "5 %"
    assert number(math.inf) == "infinite"
    assert (count(1, "site"), count(1204, "participant")) == ("1 site", "1,204 participants")


def test_answers_that_stand_alone_are_told_as_such():
    """Nothing is said of masks and opened sums where there are none."""
    study = sample_study()
    report = sample_report(study)
    first, *others = report.releases
    standing = {"sigma_correlated": 0.0, "sigma_aggregate": max(first.sigma_local)}
    own = first.model_copy(update={**standing, "statistic": "local_model"})
    mixed = report.model_copy(update={"releases": (own, *others)})
    alone = [release.model_copy(update=standing) for release in report.releases]
    whole = report.model_copy(update={"releases": tuple(alone)})
    assert "cancels in the sum" in analysis_methods(study, report)
    assert "own answer" not in analysis_methods(study, report)
    assert "cancels in the sum" in analysis_methods(study, mixed)
    assert "(statistic local_model) each site's own answer" in analysis_methods(study, mixed)
    assert "Each site's own answers were released" in analysis_methods(study, whole)
    assert "masks" not in analysis_methods(study, whole)
    assert "opens only with" in " ".join(statement(mixed))
    assert "opens only with" not in " ".join(statement(whole))


@pytest.mark.parametrize(("share", "told"), [(0.8, True), (1.0, False)])
def test_why_a_ledger_holds_more_is_told_wherever_it_does(share: float, told: bool) -> None:
    report = sample_report(STUDY, share=share)
    sentence = f"may contain up to ε = {number(report.promised.epsilon)}, as stated"
    for said in ("\n".join(statement(report)), guarantee_text(report)):
        assert (sentence in said) == told
