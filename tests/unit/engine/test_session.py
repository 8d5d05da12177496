"""The centre's half: only what is planned, charged before it is released, and repeatable."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from consortium.algorithms.average import Average
from consortium.algorithms.base import Query, Release, Result
from consortium.engine.queries import encode_query
from consortium.engine.session import Session, check_planned
from consortium.errors import BudgetError, PrivacyError, ProtocolError
from consortium.privacy.gdp import compose
from consortium.simulation.simulation import Simulation
from consortium.study import plan as plan_module
from consortium.study.plan import make_plan
from tests.support.cases import (
    PLAIN,
    every_case,
    make_feature_sites,
    make_feature_study,
    make_sites,
    make_study,
    shape_of,
    sites_for,
    study_of,
    with_counts,
)

ICA = {"components": 2, "rounds": 4}


def make_session(algorithm="ica", analysis=None, unit="subject", **privacy):
    analysis = ICA if analysis is None and algorithm == "ica" else analysis
    study = make_study(algorithm, analysis, unit, **privacy)
    return Session(make_plan(study, shape_of(make_sites(unit))))


def answer(session, seed=0, present=range(4)):
    values = np.random.default_rng(seed).standard_normal(session.stage.release.entries)
    return with_counts(session.stage.mechanism, values, present)


def run_to_the_end(session):
    while session.pending is not None:
        session.accept(answer(session), range(4))


def rogue_session(monkeypatch, *queries):
    class Rogue(Average):
        """Plans what `average` plans and asks what it was told to."""

        seen: ClassVar[list[object]] = []

        def run(self):
            for query in queries:
                self.seen.append((yield query))
            return Result({}, {})

    monkeypatch.setattr(plan_module, "REGISTRY", {"average": Rogue})
    return Rogue, lambda: make_session("average")


GOOD = Query("average", "mean_volume")


@pytest.mark.parametrize(
    ("query", "words"),
    [(Query("median", "mean_volume"), "no stage"), (Query("average", "maximum"), "plans")],
)
def test_an_unplanned_stage_or_statistic_is_refused(monkeypatch, query, words):
    _, start = rogue_session(monkeypatch, query)
    with pytest.raises(PrivacyError, match=words):
        start()


def test_one_round_more_than_planned_is_refused(monkeypatch):
    _, start = rogue_session(monkeypatch, GOOD, GOOD)
    session = start()
    with pytest.raises(PrivacyError, match="1 planned"):
        session.accept(answer(session), range(4))


def rotation(**changes):
    right = {"unmixing": np.eye(2), "whitening": np.ones((6, 2))}
    return Query("ica", "rotation", {**right, **changes})


def test_a_site_checks_the_same():
    plan = make_session().plan
    assert check_planned(plan, rotation(), ["pca"]).name == "ica"
    assert check_planned(plan, rotation(), ["pca", *["ica"] * 3]).name == "ica"
    with pytest.raises(PrivacyError, match="4 planned"):
        check_planned(plan, rotation(), ["pca", *["ica"] * 4])
    with pytest.raises(PrivacyError, match="plans 'rotation'"):
        check_planned(plan, replace(rotation(), statistic="second_moment"), ["pca"])
    with pytest.raises(PrivacyError, match="no stage"):
        check_planned(plan, replace(rotation(), stage="cca"), [])


@pytest.mark.parametrize(
    "changes",
    [
        {"unmixing": np.eye(5)},
        {"unmixing": 1.0},
        {"whitening": np.ones((2, 6))},
        {"whitening": np.ones(12)},
        {"more": 1.0},
    ],
)
def test_arguments_of_another_form_are_refused(changes):
    plan = make_session().plan
    with pytest.raises(PrivacyError, match=next(iter(changes))):
        check_planned(plan, rotation(**changes), ["pca"])
    with pytest.raises(PrivacyError, match="missing"):
        check_planned(plan, Query("ica", "rotation"), ["pca"])


@pytest.mark.parametrize(
    ("name", "analysis", "adaptive"),
    [
        ("network", {"target": "y"}, {"parameters"}),
        ("regression", {"target": "y", "bound": 1.0}, {"influence", "residual"}),
        ("summarize", {"frequencies": 4}, set()),
        ("tensor", {"components": 2, "bound": 1.0}, {"offsets", "whitening"}),
        ("admm", {"target": "y", "rounds": 4, "broadcasts": 3}, {"held"}),
        ("cca", {"pairs": 1}, {"centre", "radii"}),
        ("cca", {"pairs": 1, "centre_share": 0.0}, set()),
        ("cca", {"pairs": 1, "radii": {"x": 1.0, "y": 1.0}}, {"centre"}),
        ("coordinate", {}, set()),
    ],
)
def test_only_what_releases_decide_is_left_to_the_centre(name, analysis, adaptive):
    study = make_feature_study(name, PLAIN, analysis)
    plan = make_plan(study, shape_of(make_feature_sites(PLAIN)))
    assert set().union(*(stage.release.arguments for stage in plan.stages)) == adaptive


@every_case
def test_replaying_a_transcript_asks_the_identical_queries(name, case):
    simulation = Simulation(study_of(name, case, epsilon=50.0), sites_for(case), seed=1)
    queries, rounds = [], []
    while simulation.session.pending is not None:
        queries.append(encode_query(simulation.session.pending))
        rounds.append(simulation.step())
    again = Session(simulation.plan)
    for query, done in zip(queries, rounds, strict=True):
        assert encode_query(again.pending) == query
        repeated = again.accept(done.values, done.survivors)
        assert np.array_equal(repeated.values, done.values)
        assert replace(repeated, values=None) == replace(done, values=None)
    assert again.pending is None
    for key, array in simulation.session.result.arrays.items():
        assert array.tobytes() == again.result.arrays[key].tobytes()  # also NaN of withheld ones


def test_every_round_is_charged_to_those_present():
    session = make_session(dropouts=1, colluding_sites=1)
    mechanism = session.stage.mechanism
    session.accept(answer(session, 0, [0, 2, 3]), [3, 0, 2])
    present = mechanism.coalition([0, 2, 3])
    spent = [budget.mu for budget in session._budgets]
    assert spent == pytest.approx([present[0], 0.0, present[1], present[2]])


def test_a_whole_study_costs_what_was_promised():
    session = make_session()
    run_to_the_end(session)
    spent = max(budget.mu for budget in session._budgets)
    assert spent == pytest.approx(compose(row[0] for row in session.plan.losses))
    assert 0.99 * session.plan.promised_mu <= spent <= session.plan.promised_mu * (1 + 1e-9)


@pytest.mark.parametrize("boost", ["exact", 1e4])
def test_too_few_survivors_break_the_promise_and_change_nothing(boost):
    session = make_session("average", boost=boost, dropouts=0)
    query, budgets = session.pending, list(session._budgets)
    with pytest.raises(BudgetError, match="round 1 of 'average'"):
        session.accept(answer(session, 0, [0, 1, 2]), [0, 1, 2])
    assert (session.pending, session.rounds, session._budgets) == (query, [], budgets)
    assert session.accept(answer(session), range(4)).number == 1


def test_survivors_that_were_too_few_at_first_end_the_study_before_the_promise_breaks():
    session = make_session()
    session.accept(
        answer(session, 0, [0, 1, 2]), [0, 1, 2]
    )  # costs more than planned, but not yet too much
    with pytest.raises(BudgetError, match="of 'ica'"):
        run_to_the_end(session)
    assert 2 <= len(session.rounds) < session.plan.rounds
    assert max(budget.mu for budget in session._budgets) <= session.plan.promised_mu * (1 + 1e-9)


def test_planned_dropouts_keep_the_promise():
    session = make_session(dropouts=1)
    while session.pending is not None:
        session.accept(answer(session, session.number, [0, 2, 3]), [0, 2, 3])
    assert max(budget.mu for budget in session._budgets) <= session.plan.promised_mu * (1 + 1e-9)


def test_the_algorithm_sees_the_mean_over_the_survivors_units(monkeypatch):
    rogue, start = rogue_session(monkeypatch, GOOD)
    session = start()
    mechanism = session.stage.mechanism
    values = answer(session, 0, [0, 2, 3])
    session = make_session("average", dropouts=1)
    session.accept(values, [0, 2, 3])
    (release,) = rogue.seen
    share = 1 - session.plan.shape.units[1] / sum(session.plan.shape.units)
    assert isinstance(release, Release)
    assert release.values == pytest.approx(values[: -mechanism.places] / share)
    assert release.units == pytest.approx([3, 1, 4, 2])
    planned = session.plan.stages[0].mechanism
    rounding = [planned.lattice.grid / np.sqrt(12)] * 3  # at each site, once its noise is on
    noise = [*np.array(planned.noise.local)[[0, 2, 3]], *rounding]
    assert release.deviation == pytest.approx(np.linalg.norm(noise) / share)
    assert mechanism.weights[1] == pytest.approx(1 - share)


def test_nothing_can_be_asked_of_a_finished_session():
    session = make_session("average")
    session.accept(answer(session), range(4))
    assert session.result is not None
    with pytest.raises(ProtocolError, match="finished"):
        _ = session.stage
    with pytest.raises(ProtocolError, match="finished"):
        session.accept(np.zeros(6), range(4))
