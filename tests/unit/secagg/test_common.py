"""What all must have in common is compared by everybody before the first round."""

import pytest

from consortium.errors import DisagreementError
from tests.support.secagg_wire import Wire


def _shared(other):
    """Everybody's shares, where s2 works with another plan."""
    wire = Wire()
    for party in wire.parties.values():
        wire.hub.setup.receive_advertisement(party.setup.advertise(b"note"))
    keys = wire.hub.setup.keys()
    for name, party in wire.parties.items():
        plan = other if name == "s2" else b"plan"
        wire.hub.setup.receive_share(party.setup.receive_keys(keys, lambda notes, plan=plan: plan))
    return wire


def test_equal_plans_go_on():
    wire = _shared(b"plan")
    wire.hub.setup.check_common(b"plan")
    for party in wire.parties.values():
        party.setup.receive_shares(wire.hub.setup.shares(party.name))


def test_another_plan_is_named_by_centre_and_sites():
    wire = _shared(b"another plan")
    with pytest.raises(DisagreementError, match="s2 works out another plan than the centre"):
        wire.hub.setup.check_common(b"plan")
    with pytest.raises(DisagreementError, match="s2 works out another plan than s0"):
        wire.parties["s0"].setup.receive_shares(wire.hub.setup.shares("s0"))
    with pytest.raises(DisagreementError, match="s0 works out another plan than s2"):
        wire.parties["s2"].setup.receive_shares(wire.hub.setup.shares("s2"))


def test_what_is_agreed_is_made_of_everybodys_notes():
    wire = Wire()
    for name, party in wire.parties.items():
        wire.hub.setup.receive_advertisement(party.setup.advertise(name.encode()))
    seen = []
    wire.parties["s1"].setup.receive_keys(
        wire.hub.setup.keys(), lambda notes: seen.append(dict(notes)) or b""
    )
    assert seen == [{name: name.encode() for name in wire.parties}]
