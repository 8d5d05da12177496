"""Sums within a drawn graph: who shares with whom, drop-outs, and lists that differ."""

import hashlib
import itertools
import random
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from consortium.errors import ProtocolError, StudyError, ThresholdError
from consortium.secagg import contribution, messages, shamir
from consortium.secagg.graph import (
    FAILURE,
    LOT_BYTES,
    MOST_HIDDEN,
    Graph,
    Neighbourhood,
    check_holders,
    draw_holders,
    draw_tail,
    plan_neighbourhood,
    split_bound,
)
from consortium.secagg.key_schedule import mask_private
from consortium.secagg.keystream import add_streams, pair_masks
from tests.support.secagg_wire import (
    Consortium,
    Wire,
    as_centre,
    context,
    plain_sum,
    run,
    snapshot,
    vectors,
)
from tests.support.secagg_wire import lists as lists_of
from tests.unit.secagg.test_restart import CrashingWire

SMALL = Consortium(count=12, rounds=2, holders=8, needed=7)
"""Of twelve sites none can be cut off by eight holders each: no draw falls apart."""
COMPLETE = {  # digests of all messages of `run`: whoever changes the bytes sees it here
    (4, 0): "6146a38dc6d42ec06fef8ccf889814d194a243a00be629fe0a3a6de1130b33db",
    (32, 3): "d5e348c1a73a55825e9cbd6e44ee3b50e7c0cd53ac54eda77310191583022092",
}


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


@pytest.mark.parametrize(("count", "colluding"), COMPLETE)
def test_the_bytes_of_the_protocol_are_as_they_were(count: int, colluding: int) -> None:
    wire = run(Wire(Consortium(count=count, colluding=colluding, rounds=2)))
    assert hashlib.sha256(b"".join(wire.log)).hexdigest() == COMPLETE[count, colluding]


# -- the draw -----------------------------------------------------------------------------


@given(st.integers(2, 40), st.data())
def test_a_draw_is_sound_and_depends_on_the_lots_alone(sites: int, data: st.DataObject) -> None:
    own, count = data.draw(st.integers(1, sites)), data.draw(st.integers(0, sites - 1))
    lots = data.draw(st.binary(min_size=sites * LOT_BYTES, max_size=sites * LOT_BYTES))
    drawn = draw_holders(lots, sites, own, count)
    check_holders(drawn, sites, own, count, "it")
    assert drawn == draw_holders(lots, sites, own, count)


def test_every_set_of_holders_is_as_likely() -> None:
    """Exactly: over all orders of the five lots, each pair of the four others comes up as often."""
    ranks = [bytes(LOT_BYTES - 1) + bytes([rank]) for rank in range(5)]
    found = [
        draw_holders(b"".join(ranks[i] for i in order), 5, 3, 2)
        for order in product(range(5), repeat=5)
        if len(set(order)) == 5
    ]
    assert {pair: found.count(pair) for pair in found} == dict.fromkeys(
        combinations((1, 2, 4, 5), 2), 20
    )


def test_exactly_the_sound_draws_are_taken() -> None:
    sound = set(combinations((1, 3, 4), 2))
    for points in sound:
        check_holders(points, 4, 2, 2, "s1")
    for points in {p for size in range(4) for p in product(range(-1, 6), repeat=size)} - sound:
        with pytest.raises(ProtocolError, match="s1 doesn't name 2 other sites"):
            check_holders(points, 4, 2, 2, "s1")


def test_all_small_graphs_agree_on_edges() -> None:
    """Every graph of four sites with one or two holders each, seen from each of its sites."""
    sites = ("a", "b", "c", "d")
    for k in (1, 2):
        others = [combinations([p for p in range(1, 5) if p != own], k) for own in range(1, 5)]
        for draws in product(*others):
            graph = Graph(dict(zip(sites, draws, strict=True)))
            for one, other in product(sites, sites):
                drew = sites.index(other) + 1 in graph.draws[one]
                assert (other in graph.holders(one)) == (one in graph.owners(other)) == drew
                near = drew or sites.index(one) + 1 in graph.draws[other]
                assert (other in graph.neighbours(one)) == near
                assert (one in graph.neighbours(other)) == near


def test_sites_draw_for_each_run_anew_and_each_its_own() -> None:
    graphs = [_graph(Wire(SMALL).set_up())]
    graphs.append(_graph(Wire(Consortium(12, 2, holders=8, needed=7, run="study-2")).set_up()))
    assert graphs[0] == _graph(Wire(SMALL).set_up())
    assert graphs[0] != graphs[1]
    assert len(set(graphs[0].draws.values())) > 6


def _graph(wire: Wire) -> Graph:
    return wire.hub.setup.known.directory.graph


# -- masks and drop-outs --------------------------------------------------------------------


def test_a_vector_carries_its_own_mask_and_its_neighbours_masks_only() -> None:
    wire = Wire(SMALL).set_up()
    party, zeros = wire.parties["s0"], np.zeros(512, np.uint32)
    parts = contribution.split_message(party.contribute(1, context(1), zeros), 10**6)
    opened = wire.hub.session.unseal(messages.CONTRIBUTION, parts.envelope, 10**6)
    masked = np.frombuffer(wire.hub.setup.known.unload(opened, parts).masked, np.uint32).copy()
    known, own = party.directory, party._member.own
    private = mask_private(party.session.digest, "s0", 1, own.mask_seed(1))
    near = known.graph.neighbours("s0")
    assert len(near) < 11
    added, subtracted = pair_masks(known, SMALL.roster, private, "s0", near, 1, context(1))
    added.append(known.keys.self_mask(own.self_seed(1), 1, context(1), "s0"))
    add_streams(masked, subtracted, added)
    assert not masked.any()


PLAN = plan_neighbourhood(40, 0, 2, most_hidden=0.2)
assert PLAN is not None
FORTY = Consortium(40, rounds=25, dropouts=2, holders=PLAN.holders, needed=PLAN.threshold)


@pytest.fixture(scope="module")
def forty() -> tuple[Wire, list[int]]:
    return Wire(FORTY).set_up(), list(range(1, FORTY.rounds + 1))


@settings(max_examples=5, deadline=None)
@given(
    absent=st.lists(st.sampled_from(FORTY.sites), max_size=2, unique=True), cut=st.integers(0, 2)
)
def test_any_planned_drop_outs_leave_the_sum_right(
    forty: tuple[Wire, list[int]], absent: list[str], cut: int
) -> None:
    wire, numbers = forty
    number = numbers.pop()
    values = vectors(FORTY.sites, 6, seed=number)
    result = wire.play(number, values, lost=absent[:cut], silent=absent[cut:])
    assert set(result.survivors) == set(FORTY.sites) - set(absent[:cut])
    assert np.array_equal(result.sum, plain_sum(values, result.survivors))


def test_a_sum_opens_exactly_if_every_neighbourhood_has_its_threshold() -> None:
    """One site is lost and every other one is silent in turn, which is one more than planned."""
    consortium = Consortium(count=12, rounds=24, holders=8, needed=7)
    wire = Wire(consortium).set_up()
    graph, outcomes = _graph(wire), set()
    pairs = [(lost, site) for lost in ("s0", "s5") for site in consortium.sites if site != lost]
    for number, (lost, silent) in enumerate(pairs, 1):
        values = vectors(consortium.sites, 5, seed=number)
        absent = {lost, silent}
        opens = all(len(set(graph.holders(site)) - absent) >= 7 for site in consortium.sites)
        outcomes.add(opens)
        wire.contribute(number, values, missing={lost})
        if opens:
            result = wire.unmask(number, absent)
            assert np.array_equal(result.sum, plain_sum(values, set(values) - {lost}))
            continue
        with pytest.raises(ThresholdError, match=f"holders of s.*missing: {silent}"):
            wire.unmask(number, absent)
        answer = wire.call(silent, "unmask", number, wire.hub.request(number))
        wire.hub.receive_unmasking(answer)
        assert np.array_equal(wire.hub.sum(number).sum, plain_sum(values, set(values) - {lost}))
    assert outcomes == {False} or outcomes == {True, False}


def test_machines_that_crash_before_every_step_say_the_same() -> None:
    assert run(CrashingWire(SMALL)).log == run(Wire(SMALL)).log


def test_an_answer_with_a_share_too_many_or_too_few_is_refused() -> None:
    wire = Wire(SMALL).set_up()
    wire.contribute(1, vectors(SMALL.sites, 5))
    request = wire.hub.request(1)
    party = wire.parties["s3"]
    stranger = next(s for s in SMALL.sites if s not in party.setup.keys.held)
    party.setup.keys.held[stranger] = next(iter(party.setup.keys.held.values()))
    answer, before = party.unmask(1, request), snapshot(wire.hub)
    with pytest.raises(ProtocolError, match="s3 answers another unmask request"):
        wire.hub.receive_unmasking(answer)
    assert snapshot(wire.hub) == before


# -- lists that differ ------------------------------------------------------------------------


def _opened(wire: Wire, victim: str, lists: dict[str, str | None]) -> dict[str, bool]:
    """Which of a victim's seeds open if each of its holders was told that another site is lost."""
    shares: dict[str, dict[int, bytes]] = {"self": {}, "mask": {}}
    for holder, lost in lists.items():
        survivors = tuple(s for s in SMALL.sites if s != lost)
        body = lists_of(SMALL.run, survivors, (lost,) if lost else (), 1, context(1))
        answer = wire.parties[holder].unmask(1, as_centre(SMALL.run, "unmask", 1, body))
        plain: Any = wire.hub.setup.known.decrypt(
            messages.Unmasking, wire.hub.session.unseal(messages.UNMASKING, answer, 10**6)
        )
        held = [s for s in survivors if s in _graph(wire).owners(holder)]
        if victim == lost and plain.lost:
            shares["mask"][SMALL.roster.point(holder)] = plain.lost[0]
        elif victim in held:
            shares["self"][SMALL.roster.point(holder)] = plain.survivors[held.index(victim)]
    own = wire.parties[victim]._member.own
    seeds = {"self": own.self_seed(1), "mask": own.mask_seed(1)}
    return {
        kind: shamir.recover(shares[kind], SMALL.needed, seed.__eq__) is not None
        for kind, seed in seeds.items()
    }


@pytest.mark.parametrize("told_lost", range(9))
def test_lists_that_differ_never_open_both_seeds_of_a_site(told_lost: int) -> None:
    """However the hub divides a site's holders, at most one seed opens: with seven of the eight."""
    wire = Wire(SMALL).set_up()
    wire.contribute(1, vectors(SMALL.sites, 5))
    holders = _graph(wire).holders("s0")
    lists: dict[str, str | None] = {
        h: "s0" if place < told_lost else None for place, h in enumerate(holders)
    }
    assert _opened(wire, "s0", lists) == {"self": told_lost <= 1, "mask": told_lost >= 7}


def test_a_hub_hides_no_more_sites_than_the_noise_is_planned_for() -> None:
    """One drop-out is allowed and 12 // 7 = 1 site can be hidden: there are no lists for two."""
    wire = Wire(SMALL).set_up()
    wire.contribute(1, vectors(SMALL.sites, 5))
    first = _graph(wire).holders("s0")[:7]
    lists: dict[str, str | None] = {
        s: "s0" if s in first else "s1" for s in SMALL.sites if s in first or s != "s1"
    }
    opened = [_opened(wire, victim, lists)["mask"] for victim in ("s0", "s1")]
    assert opened == [True, False]
