"""Planned graphs: bounds against another library, exact counts, and graphs really drawn."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from consortium.errors import StudyError
from consortium.secagg.graph_size import (
    FAILURE,
    MOST_HIDDEN,
    Neighbourhood,
    draw_tail,
    plan_neighbourhood,
    split_bound,
)


@given(st.integers(1, 300), st.data())
def test_the_tail_is_the_hypergeometric_one(population: int, data: st.DataObject) -> None:
    marked, drawn = (data.draw(st.integers(0, population)) for _ in range(2))
    most = data.draw(st.integers(0, population))
    due = hypergeom.sf(most, population, marked, drawn)
    assert draw_tail(population, marked, drawn, most) == pytest.approx(due, rel=1e-8, abs=1e-300)


@settings(max_examples=30, deadline=None)
@given(sites=st.integers(33, 120), colluding=st.integers(0, 12), dropouts=st.integers(0, 3))
def test_a_plan_keeps_its_conditions(sites: int, colluding: int, dropouts: int) -> None:
    plan = plan_neighbourhood(sites, colluding, dropouts)
    if plan is None:
        return
    k, t, honest = plan.holders, plan.threshold, sites - colluding
    worst = next(
        x for x in range(k + 1) if honest * draw_tail(sites - 1, colluding, k, x) <= FAILURE / 2
    )
    assert plan.failure <= FAILURE
    assert 2 * (t - worst) > k - worst
    assert t <= k < sites - 1
    assert plan.hidden == honest * dropouts // (t - worst) <= MOST_HIDDEN * honest
    assert sites * draw_tail(sites - 1, dropouts, k, k - t) <= FAILURE


@pytest.mark.parametrize(
    ("sites", "colluding", "dropouts", "holders"),
    [(64, 0, 0, 20), (64, 21, 0, 20), (256, 85, 0, 28), (64, 3, 2, 23), (256, 3, 2, 27)],
)
def test_holders_hardly_grow_with_the_sites(
    sites: int, colluding: int, dropouts: int, holders: int
) -> None:
    plan = plan_neighbourhood(sites, colluding, dropouts, most_hidden=0.1)
    assert plan is not None
    assert plan.holders == holders


def test_the_complete_graph_stays_where_it_is_needed() -> None:
    assert plan_neighbourhood(32, 1, 1) is None
    assert plan_neighbourhood(33, 0, 5) is None
    for wrong in ((40, 40, 0), (40, 1, 40), (40, -1, 0)):
        with pytest.raises(StudyError):
            plan_neighbourhood(*wrong)


def draw(sites: int, k: int, rng: random.Random) -> list[set[int]]:
    return [
        set(rng.sample([other for other in range(sites) if other != site], k))
        for site in range(sites)
    ]


def falls_apart(graph: list[set[int]], members: set[int]) -> bool:
    """Whether members, joined where either drew the other, are more than one component."""
    start = next(iter(members))
    reached, front = {start}, [start]
    while front:
        site = front.pop()
        near = {m for m in members if m in graph[site] or site in graph[m]} - reached
        reached |= near
        front += near
    return reached != members


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_graphs_fall_apart_no_more_often_than_the_bound_and_nearly_as_often(removed: int) -> None:
    """Small enough to fail often; the first two sites collude, and the worst K is searched for."""
    sites, colluding, k, trials, rng = 9, 2, 2, 3000, random.Random(1)
    honest = set(range(colluding, sites))
    apart = sum(
        any(falls_apart(graph, honest - set(k_)) for k_ in itertools.combinations(honest, removed))
        for graph in (draw(sites, k, rng) for _ in range(trials))
    )
    bound = split_bound(sites, colluding, removed, k)
    assert apart / trials <= bound + 0.01
    assert bound == 1.0 or apart / trials > bound / 3


def test_fewer_holders_than_planned_miss_the_target() -> None:
    plan = plan_neighbourhood(128, 3, 1, most_hidden=0.1)
    assert isinstance(plan, Neighbourhood)
    assert split_bound(128, 3, plan.hidden, plan.holders - 1) + plan.failure > FAILURE


@pytest.mark.parametrize("sites", [33, 64, 200])
def test_without_drop_outs_a_third_may_collude_whatever_the_study_says(sites: int) -> None:
    """The same graph, and a failure that holds for the study's number and for the third."""
    trusting, wary = (plan_neighbourhood(sites, c, 0) for c in (1, sites // 3))
    assert trusting is not None
    assert wary is not None
    assert (trusting.holders, trusting.threshold) == (wary.holders, wary.threshold)
    assert split_bound(sites, 1, 0, trusting.holders) <= trusting.failure <= FAILURE
