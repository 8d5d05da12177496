"""Draws that a hub or a site tampers with."""

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import pytest

from consortium.errors import ProtocolError, SignatureError
from consortium.secagg import CENTRE, Party, messages, seal
from consortium.secagg.envelope import unseal
from consortium.secagg.party_setup import PartySetup
from tests.support.secagg_wire import (
    Consortium,
    Wire,
    as_centre,
    handed,
    identity,
    plain_sum,
    vectors,
)

SMALL = Consortium(count=12, rounds=1, dropouts=0, holders=8, needed=5)
Points = tuple[int, ...]


def redrawn(message: bytes, points: Callable[[Points], Points], signer: str) -> bytes:
    """An advertisement of s11 with other holders, signed by somebody."""
    opened = unseal(message, SMALL.roster.keys, run=SMALL.run, kind="advertise", limit=10**6)
    body = messages.decode(messages.Advertisement, opened.body, "s11")
    changed = msgspec.structs.replace(body, holders=points(body.holders))
    return seal(identity(signer), SMALL.run, "s11", messages.ADVERTISE, 0, messages.encode(changed))


def bundle_of(sent: Mapping[str, bytes]) -> bytes:
    """A bundle of keys that the hub puts together as it likes."""
    return as_centre(SMALL.run, "keys", 0, messages.Keys(b"h" * 32, tuple(sent.values())))


class TwoFaced(PartySetup):
    """A site with holders of its own choice: the first eight, whoever they are."""

    def _advertisement(self, note: bytes) -> bytes:
        return redrawn(super()._advertisement(note), lambda _: tuple(range(1, 9)), "s11")


def two_faced() -> Party:
    party = SMALL.party("s11")
    party.setup = TwoFaced(party._member)
    return party


UNSOUND: dict[str, Callable[[Points], Points]] = {
    "none": lambda points: (),
    "too few": lambda points: points[1:],
    "too many": lambda points: tuple(range(1, 10)),
    "itself": lambda points: (*points[:7], 12),
    "one twice": lambda points: (*points[:7], points[6]),
    "a stranger": lambda points: (*points[:7], 13),
    "the centre": lambda points: (0, *points[1:]),
    "another order": lambda points: points[::-1],
}


@pytest.mark.parametrize("what", UNSOUND)
def test_unsound_draws_are_refused_by_hub_and_sites(what: str) -> None:
    wire = Wire(SMALL)
    sent = {site: party.setup.advertise(b"") for site, party in wire.parties.items()}
    sent["s11"] = redrawn(sent["s11"], UNSOUND[what], "s11")
    with pytest.raises(ProtocolError, match="s11 doesn't name 8 other sites"):
        wire.hub.setup.receive_advertisement(sent["s11"])
    with pytest.raises(ProtocolError, match="s11 doesn't name 8 other sites"):
        wire.parties["s0"].setup.receive_keys(bundle_of(sent))


def test_a_complete_run_takes_no_draw() -> None:
    whole, drawn = Wire(Consortium(count=12, dropouts=0)), Wire(SMALL)
    assert whole.consortium.roster.session("r", 1) != drawn.consortium.roster.session("r", 1)
    message = redrawn(whole.parties["s11"].setup.advertise(b""), lambda _: (1, 2), "s11")
    with pytest.raises(ProtocolError, match="doesn't name 0 other sites"):
        whole.hub.setup.receive_advertisement(message)


@pytest.mark.parametrize("signer", [CENTRE, "s0"])
def test_nobody_else_can_draw_for_a_site(signer: str) -> None:
    """Neither a site's neighbours nor those who have nothing to do with it take the bundle."""
    wire = Wire(SMALL)
    sent = {site: party.setup.advertise(b"") for site, party in wire.parties.items()}
    sent["s11"] = redrawn(sent["s11"], lambda _: tuple(range(1, 9)), signer)
    bundle = bundle_of(sent)
    for party in wire.parties.values():
        with pytest.raises(SignatureError, match="s11"):
            party.setup.receive_keys(bundle)


def test_a_site_goes_no_further_with_another_draw_of_its_own() -> None:
    wire = Wire(SMALL)
    sent = {site: party.setup.advertise(b"") for site, party in wire.parties.items()}
    sent["s11"] = redrawn(sent["s11"], lambda _: tuple(range(1, 9)), "s11")
    with pytest.raises(ProtocolError, match="not from this run's secret"):
        wire.parties["s11"].setup.receive_keys(bundle_of(sent))


def test_a_site_that_chooses_its_holders_takes_no_edge_from_the_honest() -> None:
    """Its sum is as good as ever, and every edge that an honest site drew is there."""
    honest, wire = Wire(SMALL).set_up(), Wire(SMALL)
    wire.parties["s11"] = two_faced()
    wire.set_up()
    values = vectors(SMALL.sites, 5)
    assert np.array_equal(wire.play(1, values).sum, plain_sum(values, SMALL.sites))
    before, after = (each.hub.setup.known.directory.graph for each in (honest, wire))
    assert after.holders("s11") == SMALL.sites[:8]
    for site in SMALL.sites[:11]:
        assert after.holders(site) == before.holders(site)
        assert set(after.holders(site)) <= set(after.neighbours(site))


def test_sites_that_were_shown_two_draws_of_one_site_stop() -> None:
    wire = Wire(SMALL)
    sent = {site: party.setup.advertise(b"") for site, party in wire.parties.items()}
    other = sent | {"s11": two_faced().setup.advertise(b"")}
    views = {site: sent if place < 6 else other for place, site in enumerate(SMALL.sites[:11])}
    shares = {
        site: wire.parties[site].setup.receive_keys(bundle_of(view)) for site, view in views.items()
    }
    shares["s11"] = wire.parties["s11"].setup.receive_keys(bundle_of(sent))
    for site in views:
        told = handed(wire.parties[site].directory, shares, site, SMALL.run)
        with pytest.raises(ProtocolError, match="was shown other keys"):
            wire.parties[site].setup.receive_shares(told)


@pytest.mark.parametrize(
    ("holders", "needed", "dropouts"), [(8, 4, 0), (8, 9, 0), (11, 6, 0), (2, 2, 0), (8, 5, 3)]
)
def test_an_unsafe_graph_makes_no_roster(holders: int, needed: int, dropouts: int) -> None:
    with pytest.raises(ProtocolError, match="unsafe"):
        _ = Consortium(count=12, dropouts=dropouts, holders=holders, needed=needed).roster
