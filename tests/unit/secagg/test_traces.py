"""Whole runs: the sum is right with any loss at any step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.secagg import most_dropouts
from tests.support.secagg_wire import Consortium, Wire, context, plain_sum, vectors


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 8),
    entries=st.integers(1, 300),
    bits=st.sampled_from([32, 64]),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_the_sum_is_the_plain_sum(count, entries, bits, seed, data) -> None:  # type: ignore[no-untyped-def]
    consortium = Consortium(count, rounds=1, dropouts=most_dropouts(count, 0))
    roster = consortium.roster
    some = st.sets(st.sampled_from(roster.sites), max_size=count - roster.minimum)
    lost = data.draw(some)
    spare = sorted(set(roster.sites) - lost)
    silent = data.draw(st.sets(st.sampled_from(spare), max_size=len(spare) - roster.threshold))
    values = vectors(roster.sites, entries, bits, seed)
    opened = vectors(roster.sites, 5, bits, seed + 1)
    result = Wire(consortium).set_up().play(1, values, opened, lost, silent)
    assert result.survivors == tuple(site for site in roster.sites if site not in lost)
    assert result.sum.dtype == values["s0"].dtype
    assert np.array_equal(result.sum, plain_sum(values, result.survivors))
    (total,) = result.opened
    assert np.array_equal(total, plain_sum(opened, result.survivors))
    assert result.wrong == ()


@pytest.mark.parametrize("victim", Consortium().sites)
@pytest.mark.parametrize("step", ["contribute", "receive_contribution", "unmask", "answer"])
def test_any_site_may_vanish_at_any_step(victim: str, step: str) -> None:
    """A vector that is made but not delivered is a loss; so is an answer."""
    wire = Wire().set_up()
    sites = wire.consortium.sites
    for number in (1, 2):
        values = vectors(sites, 20, seed=number)
        early = step in ("contribute", "receive_contribution")
        if step == "receive_contribution":
            wire.parties[victim].contribute(number, context(number), values[victim])
        result = wire.play(number, values, lost={victim} if early else (), silent={victim})
        assert np.array_equal(
            result.sum, plain_sum(values, set(sites) - {victim} if early else sites)
        )
    last = vectors(sites, 20, seed=3)
    assert np.array_equal(wire.play(3, last).sum, plain_sum(last, sites))


def test_rounds_may_overlap_and_come_in_any_order() -> None:
    wire = Wire().set_up()
    values = {number: vectors(wire.parties, 9, seed=number) for number in (3, 1, 2)}
    for number, some in values.items():
        wire.contribute(number, some, missing=["s1"] if number == 1 else ())
    for number, some in values.items():
        lost = {"s1"} if number == 1 else set()
        assert np.array_equal(wire.unmask(number, lost).sum, plain_sum(some, set(some) - lost))
