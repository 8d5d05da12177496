"""Advertisements and bundles that a site or the hub must refuse."""

from collections.abc import Callable

import msgspec
import pytest

from consortium.errors import ProtocolError
from consortium.secagg import CENTRE, Party, messages, seal
from consortium.secagg.envelope import unseal
from tests.support.secagg_wire import Consortium, Wire, handed, identity

FIVE = Consortium(count=5)
SITES = FIVE.sites

Change = Callable[[messages.Advertisement, messages.Advertisement], messages.Advertisement]


def change(**names: Callable[[messages.Advertisement, messages.Advertisement], object]) -> Change:
    """Change fields of a hostile advertisement, given it and an honest one."""

    def apply(
        mine: messages.Advertisement, other: messages.Advertisement
    ) -> messages.Advertisement:
        fields = {name: getattr(mine, name) for name in mine.__struct_fields__}
        fields |= {name: make(mine, other) for name, make in names.items()}
        return messages.Advertisement(**fields)

    return apply


HOSTILE_KEYS: dict[str, Change] = {
    "a copied mask key": change(masks=lambda mine, other: (other.masks[0], *mine.masks[1:])),
    "a copied channel": change(channel=lambda mine, other: other.channel),
    "one key twice": change(
        masks=lambda mine, other: (mine.masks[0], mine.masks[0], mine.masks[2])
    ),
    "a key of low order": change(masks=lambda mine, other: (bytes(32), *mine.masks[1:])),
    "a channel of low order": change(channel=lambda mine, other: bytes(32)),
    "too few rounds": change(masks=lambda mine, other: mine.masks[1:]),
    "too few commitments": change(commitments=lambda mine, other: mine.commitments[1:]),
    "another session": change(session=lambda mine, other: bytes(32)),
    "a long note": change(note=lambda mine, other: bytes(messages.NOTE_BYTES + 1)),
}


@pytest.mark.parametrize("name", HOSTILE_KEYS)
def test_hostile_keys_are_refused_by_sites_and_hub(name: str) -> None:
    wire = Wire(FIVE)
    sent = {site: party.setup.advertise(b"") for site, party in wire.parties.items()}
    honest, mine = (_advertisement(sent[site]) for site in ("s0", "s4"))
    body = messages.encode(HOSTILE_KEYS[name](mine, honest))
    sent["s4"] = seal(identity("s4"), FIVE.run, "s4", messages.ADVERTISE, 0, body)
    for site in SITES[:4]:
        wire.hub.setup.receive_advertisement(sent[site])
    with pytest.raises(ProtocolError, match=r"s0|s4"):
        wire.hub.setup.receive_advertisement(sent["s4"])
    with pytest.raises(ProtocolError, match=r"s0|s4"):
        wire.parties["s0"].setup.receive_keys(bundle(tuple(sent.values())))


def _advertisement(data: bytes) -> messages.Advertisement:
    opened = unseal(data, FIVE.roster.keys, run=FIVE.run, kind=messages.ADVERTISE, limit=10**6)
    return messages.decode(messages.Advertisement, opened.body, opened.sender)


def bundle(advertisements: tuple[bytes, ...]) -> bytes:
    body = messages.encode(messages.Keys(b"h" * 32, advertisements))
    return seal(identity(CENTRE), FIVE.run, CENTRE, messages.KEYS, 0, body)


def test_a_bundle_must_be_exactly_the_roster() -> None:
    wire = Wire(FIVE)
    sent = tuple(party.setup.advertise(b"") for party in wire.parties.values())
    party = wire.parties["s0"]
    for wrong in (sent[:4], sent[::-1], (*sent, sent[0]), (*sent[:4], sent[0])):
        with pytest.raises(ProtocolError):
            party.setup.receive_keys(bundle(wrong))
    party.setup.receive_keys(bundle(sent))


def test_a_site_insists_on_its_own_advertisement() -> None:
    """The site's identity signed both, but only one belongs to the run's secret."""
    wire = Wire(FIVE)
    sent = [party.setup.advertise(b"") for party in wire.parties.values()]
    stolen = Party(
        run=FIVE.run,
        name="s0",
        roster=FIVE.roster,
        rounds=FIVE.rounds,
        identity=identity("s0"),
        secret=b"o" * 32,
    )
    with pytest.raises(ProtocolError, match="secret"):
        wire.parties["s0"].setup.receive_keys(bundle((stolen.setup.advertise(b""), *sent[1:])))


def test_a_site_insists_on_its_own_shares() -> None:
    wire = Wire(FIVE)
    keys = bundle(tuple(party.setup.advertise(b"") for party in wire.parties.values()))
    sent = {site: party.setup.receive_keys(keys) for site, party in wire.parties.items()}
    told = handed(wire.parties["s0"].directory, sent, "s0", FIVE.run)
    parts = messages.decode(messages.Shares, msgspec.msgpack.decode(told)[5], CENTRE).shares
    for wrong in ((parts[1], *parts[1:]), parts[:4]):
        body = messages.encode(messages.Shares("s0", wrong))
        with pytest.raises(ProtocolError, match=r"not those it sent|not complete"):
            wire.parties["s0"].setup.receive_shares(
                seal(identity(CENTRE), FIVE.run, CENTRE, messages.SHARES, 0, body)
            )


def test_what_is_for_another_site_is_refused() -> None:
    wire = Wire(FIVE)
    keys = bundle(tuple(party.setup.advertise(b"") for party in wire.parties.values()))
    sent = {site: party.setup.receive_keys(keys) for site, party in wire.parties.items()}
    told = handed(wire.parties["s0"].directory, sent, "s1", FIVE.run)
    with pytest.raises(ProtocolError, match="for another site than s0"):
        wire.parties["s0"].setup.receive_shares(told)


@pytest.mark.parametrize("what", ["another's", "none", "another path", "longer path"])
def test_a_share_that_its_owner_did_not_sign_for_this_site_is_refused(what: str) -> None:
    wire = Wire(FIVE)
    keys = bundle(tuple(party.setup.advertise(b"") for party in wire.parties.values()))
    sent = {site: party.setup.receive_keys(keys) for site, party in wire.parties.items()}
    mine, other = (
        messages.decode(messages.Shares, msgspec.msgpack.decode(told)[5], CENTRE).shares
        for told in (handed(wire.parties["s0"].directory, sent, s, FIVE.run) for s in ("s0", "s2"))
    )
    part = mine[1]
    wrong = {
        "another's": other[1],
        "none": messages.SharePart(part.signed, b"", ()),
        "another path": messages.SharePart(part.signed, part.sealed, other[1].path),
        "longer path": messages.SharePart(part.signed, part.sealed, (*part.path, bytes(32))),
    }[what]
    body = messages.encode(messages.Shares("s0", (mine[0], wrong, *mine[2:])))
    with pytest.raises(ProtocolError, match="share of s1 for s0 is not the one that s1 signed"):
        wire.parties["s0"].setup.receive_shares(
            seal(identity(CENTRE), FIVE.run, CENTRE, messages.SHARES, 0, body)
        )


def test_sites_notice_that_they_were_shown_different_keys() -> None:
    wire = Wire(FIVE)
    sent = tuple(party.setup.advertise(b"") for party in wire.parties.values())
    mine = _advertisement(sent[4])
    other = messages.encode(change(note=lambda mine, other: b"two faces")(mine, mine))
    second = seal(identity("s4"), FIVE.run, "s4", messages.ADVERTISE, 0, other)
    shares = {
        site: wire.parties[site].setup.receive_keys(
            bundle((*sent[:4], second if site == "s1" else sent[4]))
        )
        for site in SITES
    }
    with pytest.raises(ProtocolError, match="other keys"):
        wire.parties["s0"].setup.receive_shares(
            handed(wire.parties["s0"].directory, shares, "s0", FIVE.run)
        )
