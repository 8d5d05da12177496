"""Releases of each site's own answer: what they show, and what they cost."""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest

from consortium.algorithms import average
from consortium.algorithms.average import Average
from consortium.algorithms.base import PlannedRelease, Query, Result, Run
from consortium.report.accounting import account
from consortium.simulation.simulation import Simulation
from consortium.study.plan import make_plan
from tests.support.cases import make_sites, make_study, shape_of, with_counts


class Each(Average):
    """The mean of each site on its own."""

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        (release,) = super().releases
        return (replace(release, released="each"),)

    def run(self) -> Run:
        release = yield Query("average", "mean_volume")
        return Result({"rows": release.values}, {"noise": release.deviation})


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from consortium.study import plan

    monkeypatch.setattr(plan, "REGISTRY", {"average": Each})


@pytest.mark.parametrize(
    ("scheme", "boost"), [("cape", "exact"), ("cape", 1e4), ("local", "exact")]
)
def test_each_answer_carries_noise_enough_to_stand_alone(scheme: str, boost: str | float) -> None:
    study = make_study(scheme=scheme, boost=boost)
    simulation = Simulation(study, make_sites(features=4000), 1)
    (stage,) = simulation.plan.stages
    result = simulation.run()
    rows = result.arrays["rows"]
    assert rows.shape == (4, 4000)
    mechanism = stage.mechanism
    assert mechanism.scheme == "local"
    part = np.array(simulation.session.counts.estimate) / simulation.plan.shape.units
    own = np.array(mechanism.noise.local) / mechanism.weights / part
    true = [
        average._mean_volume(None, site, Query("", ""), mechanism.bound)
        for site in make_sites(features=4000)
    ]
    assert (rows - true / part[:, None]).std(axis=1) == pytest.approx(own, rel=0.05)
    rounding = mechanism.lattice.grid / np.sqrt(12) / np.array(mechanism.weights) / part
    assert result.numbers["noise"] == pytest.approx(np.hypot(own, rounding).max())
    # Nobody else's noise helps: whoever sees the release sees what the coalition sees.
    assert mechanism.coalition() == pytest.approx(
        np.array(mechanism.sensitivities) / mechanism.noise.local
    )
    assert np.array_equal(mechanism.outsider(), mechanism.coalition())
    assert simulation.plan.outsider_mu == simulation.plan.mu
    report = account(simulation.plan, simulation.session.rounds, 1)
    assert report.guarantees.outsider == report.guarantees.coalition
    assert report.releases[0].sigma_aggregate == pytest.approx(own.max())
    assert report.releases[0].each


def test_a_missing_site_has_no_row() -> None:
    study = make_study(dropouts=1)
    sites = make_sites()
    plan = make_plan(study, shape_of(sites))
    from consortium.engine.session import Session

    session, (stage,) = Session(plan), plan.stages
    entries = stage.release.entries
    values = with_counts(stage.mechanism, np.arange(3 * entries, dtype=float), [0, 2, 3])
    session.accept(values, [0, 2, 3])
    assert session.result is not None
    weights = np.array([plan.stages[0].mechanism.weights[s] for s in (0, 2, 3)])
    expected = np.arange(3 * entries).reshape(3, entries) / weights[:, None]
    assert session.result.arrays["rows"] == pytest.approx(expected)
