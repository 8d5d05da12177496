"""What sites tell their neighbours: read as it was said, or refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from consortium.engine.neighbour_answers import (
    broadcast_limit,
    collect_answers,
    encode_broadcast,
    read_broadcast,
)
from consortium.engine.session import own_answers
from consortium.errors import ProtocolError
from consortium.simulation.simulation import Simulation
from consortium.study.plan import Plan, make_plan
from tests.support.cases import make_sites, make_study, shape_of
from tests.support.gossip_algorithm import RING, ROUNDS, register

CONTEXT = bytes(range(32))


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    register(monkeypatch)
    return make_plan(make_study(), shape_of(make_sites()))


@given(vector=arrays(np.int32, 6), site=st.integers(0, 3))
def test_a_neighbour_reads_what_the_centre_releases(vector, site):
    with pytest.MonkeyPatch.context() as patch:
        register(patch)
        mechanism = make_plan(make_study(), shape_of(make_sites())).stages[0].mechanism
    lattice = mechanism.lattice
    assert lattice.bits < 32
    ring = lattice.wrap(vector)
    body = encode_broadcast(CONTEXT, ring, lattice.bits)
    released = mechanism.release(np.zeros(0), [ring])
    expected = own_answers(mechanism, released, [site])[site]
    assert np.array_equal(read_broadcast(body, CONTEXT, mechanism, site), expected)


def test_a_broadcast_fits_its_limit(plan):
    (stage,) = plan.stages
    vector = np.zeros(stage.mechanism.entries, stage.mechanism.lattice.dtype)
    body = encode_broadcast(CONTEXT, vector, stage.mechanism.lattice.bits)
    assert len(body) <= broadcast_limit(stage)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "can't be read"),
        (b"\xff" * 50, "can't be read"),
        (encode_broadcast(bytes(32), np.zeros(6, np.uint32), 32), "another question"),
        (encode_broadcast(CONTEXT, np.zeros(5, np.uint32), 32), "20 bytes and not 6 entries"),
        (encode_broadcast(CONTEXT, np.zeros(6, np.uint64), 64), "48 bytes and not 6 entries"),
    ],
)
def test_another_answer_is_refused(plan, body, words):
    with pytest.raises(ProtocolError, match=words):
        read_broadcast(body, CONTEXT, plan.stages[0].mechanism, 0)


def test_who_misses_a_round_is_there_with_the_answer_before(plan):
    one, two = np.ones(6), 2 * np.ones(6)
    rounds = [{0: one, 1: one, 2: one}, {0: two}, {1: two, 3: two}]
    heard = collect_answers(plan, plan.stages[0], 0, rounds)
    expected = np.zeros((3, 4))
    expected[:, 0] = 1, 2, 2  # itself
    expected[:, 1] = 1, 1, 2  # a neighbour that missed the second round
    expected[:, 3] = 0, 0, 2  # a neighbour that came late; site 2 is no neighbour
    assert heard.site == 0
    assert np.array_equal(heard.answers[:, :, 0], expected)


def test_nobody_has_said_anything_before_the_first_round(plan):
    assert collect_answers(plan, plan.stages[0], 2, []).answers.shape == (0, 4, 6)


def test_a_simulated_site_hears_its_neighbours_and_nobody_else(monkeypatch):
    gossip = register(monkeypatch)
    simulation = Simulation(make_study(), make_sites(), 1)
    result = simulation.run()
    assert len(gossip.heard) == 4 * ROUNDS
    for number, heard in enumerate(gossip.heard):
        done, site = divmod(number, 4)
        assert heard.site == site
        assert heard.answers.shape == (done, 4, 6)
        for earlier in range(done):
            said = result.arrays[f"round{earlier}"]
            for other in range(4):
                near = other == site or other in RING[site]
                expected = said[other] if near else np.zeros(6)
                assert np.array_equal(heard.answers[earlier, other], expected)


def test_an_open_copy_costs_nothing_more(monkeypatch):
    """The plan of a stage that hears is that of one that releases each answer."""
    register(monkeypatch)
    plan = make_plan(make_study(), shape_of(make_sites()))
    (stage,) = plan.stages
    silent = replace(stage, release=replace(stage.release, neighbours=()))
    assert replace(plan, stages=(silent,)).mu == plan.mu
    assert plan.outsider_mu == plan.mu
