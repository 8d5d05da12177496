from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from consortium.errors import ProtocolError
from consortium.secagg.states import HUB, HUB_ROUND, PARTY, PARTY_ROUND, advance
from tests.support.secagg_wire import Wire, context


@pytest.mark.parametrize("table", [PARTY, PARTY_ROUND, HUB, HUB_ROUND])
def test_what_a_table_does_not_list_is_illegal(table: Any) -> None:
    states = type(next(iter(table))[0])
    events = {event for _, event in table} | {"dance"}
    for state in states:
        for event in events:
            if (state, event) in table:
                assert advance(table, state, event, "It") is table[state, event]
            else:
                with pytest.raises(ProtocolError, match=state.value):
                    advance(table, state, event, "It")


ILLEGAL: list[tuple[str, Callable[[Wire], Any]]] = [
    ("new", lambda wire: wire.parties["s0"].setup.receive_shares(b"")),
    ("new", lambda wire: wire.parties["s0"].contribute(1, context(1), np.zeros(3, np.uint32))),
    ("new", lambda wire: wire.parties["s0"].unmask(1, b"")),
    ("new", lambda wire: wire.parties["s0"].restore(1, context(1), True)),
    ("unopened", lambda wire: wire.hub.request(1)),
    ("advertisements", lambda wire: wire.hub.setup.receive_share(b"")),
    ("advertisements", lambda wire: wire.hub.setup.shares("s0")),
]


@pytest.mark.parametrize(("match", "act"), ILLEGAL)
def test_steps_out_of_order_are_refused(match: str, act: Callable[[Wire], Any]) -> None:
    with pytest.raises(ProtocolError, match=match):
        act(Wire())
