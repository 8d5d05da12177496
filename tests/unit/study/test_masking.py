"""Who masks with whom, and that the plan pays for it."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms.base import Shape
from consortium.errors import PrivacyError, StudyError
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.report.accounting import account
from consortium.report.statement import statement
from consortium.secagg import threshold
from consortium.secagg.graph import MOST_HIDDEN, plan_neighbourhood
from consortium.simulation.simulation import Simulation
from consortium.study import plan as plan_module
from consortium.study.masking import MOST_OF_DELTA, Masking, delta_left, plan_graph, plan_masking
from consortium.study.outlook import Outlook
from consortium.study.plan import make_plan
from tests.support.cases import make_sites, make_study


def many(sites, **privacy):
    return make_study(sites=[f"site-{s}" for s in range(sites)], **privacy)


def shape(sites):
    return Shape(4, (9,) * sites, (900,) * sites, "subject")


@settings(max_examples=40, deadline=None)
@given(
    sites=st.integers(30, 300),
    colluding=st.integers(0, 29),
    dropouts=st.integers(0, 3),
    exponent=st.integers(3, 15),
)
def test_a_graph_is_drawn_only_where_it_pays_and_fails_too_seldom_to_matter(
    sites, colluding, dropouts, exponent
):
    delta = 10.0**-exponent
    try:
        study = many(sites, colluding_sites=colluding, dropouts=dropouts, delta=delta)
        masking = plan_masking(study)
    except (StudyError, ValueError):
        return
    if not masking.holders:
        assert masking == Masking(threshold(sites, colluding, dropouts))
        assert delta_left(study) == delta
        return
    assert sites > 32
    assert masking.holders <= (sites - 1) / 2
    assert masking.failure <= MOST_OF_DELTA * delta
    assert masking.hidden <= MOST_HIDDEN * sites
    assert delta_left(study) == delta - masking.failure < delta or masking.failure < 1e-16 * delta


def test_small_and_unmasked_studies_draw_nothing():
    assert plan_masking(many(32)).holders == 0
    assert plan_masking(many(64)).holders > 0
    for scheme in ("local", "none"):
        assert plan_masking(many(64, scheme=scheme)) == Masking(0)


def test_a_delta_below_the_failure_keeps_the_complete_graph():
    graph = plan_neighbourhood(64, 21, 0)
    for delta, drawn in ((graph.failure * 1001, True), (graph.failure * 999, False)):
        study = many(64, colluding_sites=21, delta=delta)
        assert (plan_masking(study).holders > 0) == drawn
        assert (plan_graph(study) is not None) == drawn


def test_noise_is_planned_for_what_a_graph_hides():
    """Five honest sites may be hidden where one may drop out: the noise is that of five."""
    study = many(256, colluding_sites=3, dropouts=1)
    plan = make_plan(study, shape(256))
    assert plan.masking.hidden > 1 == 256 - plan.minimum
    mechanism = plan.stages[0].mechanism
    alone = replace(mechanism, dropouts=1, hidden=0)
    gain = (mechanism.coalition().max() / alone.coalition().max()) ** 2
    assert gain == pytest.approx(252 / (253 - plan.masking.hidden), rel=1e-9)
    assert plan.mu <= mu_of(8.0, 1e-5)
    # Whoever is there: the hidden sites are counted once, and never below the plan.
    for present in (range(256), range(255)):
        assert mechanism.coalition(present).max() == pytest.approx(mechanism.coalition().max())
    assert alone.coalition(range(256)).max() < mechanism.coalition(range(256)).max()


def test_the_failure_is_taken_off_delta():
    study = many(64, colluding_sites=21, delta=1e-9)
    plan = make_plan(study, shape(64))
    assert 0 < plan.masking.failure == pytest.approx(1e-9 - plan.delta, rel=1e-6)
    assert plan.promised_mu == mu_of(8.0, plan.delta) < mu_of(8.0, 1e-9)
    assert plan.epsilon == epsilon_of(plan.mu, plan.delta) <= 8.0 * (1 + 1e-9)
    assert Outlook(plan).as_json()["masks"]["failure"] == plan.masking.failure


def test_a_graph_gives_the_very_release_of_the_complete_one(monkeypatch):
    """Masks are all that differs, and they cancel: sums and noise agree to the last bit."""
    study, sites = many(40, colluding_sites=2), make_sites(features=4, subjects=(2,) * 40)
    drawn = Simulation(study, sites, seed=1)
    assert drawn._hub.session.roster.holders == plan_masking(study).holders > 0
    monkeypatch.setattr(plan_module, "plan_masking", lambda _: Masking(threshold(40, 2, 0)))
    complete = Simulation(study, sites, seed=1)
    assert complete._hub.session.roster.holders == 0
    one, other = drawn.run().arrays, complete.run().arrays
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_the_report_tells_of_the_graph():
    study = many(40, colluding_sites=2)
    simulation = Simulation(study, make_sites(features=4, subjects=(2,) * 40), seed=1)
    simulation.run()
    plan, masking = simulation.plan, simulation.plan.masking
    report = account(plan, simulation.session.rounds, 25)
    assert report.graph is not None
    assert report.graph.model_dump() == asdict(masking)
    assert report.guarantees.coalition.epsilon == epsilon_of(plan.mu, plan.delta)
    told = " ".join(statement(report))
    assert f"Each site drew {masking.holders} others at random" in told
    assert "counted in δ" in told
    assert "more than half" not in told


def test_unsafe_numbers_are_refused_as_ever():
    with pytest.raises((StudyError, PrivacyError), match="at most"):
        plan_masking(many(40, colluding_sites=1, dropouts=9))
    assert math.isfinite(delta_left(many(40, colluding_sites=1, dropouts=9)))
