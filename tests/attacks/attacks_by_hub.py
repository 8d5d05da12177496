"""A hostile centre in the rounds of secure aggregation: it wants one site's numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from consortium.secagg import CENTRE, crypto, messages, seal
from consortium.secagg.contribution import split_message
from consortium.secagg.key_directory import read_keys
from consortium.secagg.keystream import Ring
from consortium.secagg.seed_shares import open_share, read_shared, read_shares
from consortium.secagg.states import HubRound, PartyRound
from consortium.secagg.unmasking import read_unmask_request
from tests.attacks.attack_kinds import Stage, always, attack, nothing
from tests.attacks.hostile_hub import (
    BITS,
    ENTRIES,
    NUMBER,
    Round,
    ThinConsortium,
    both_seeds_open,
    bundle_of,
    played,
    restarted,
    seeds_open,
    swapped_keys,
)
from tests.support.secagg_wire import (
    Consortium,
    Wire,
    context,
    handed,
    identity,
    ring,
    vectors,
    with_payload,
)

_LISTS = "consortium.secagg.unmasking:_check_lists"
_ONE_SITE = "the difference of two sums is one site's vector"


def _forgetful(real: Callable[..., bytes]) -> Callable[..., bytes]:
    def unmask(party: Any, number: int, request: bytes) -> bytes:
        known = party._rounds[number]
        party._rounds[number] = type(known)(known.state, known.context, b"")
        return real(party, number, request)

    return unmask


@attack(
    "hub",
    guard="consortium.secagg.party:Party.unmask",
    without=_ONE_SITE,
    stops="has answered another unmask request",
    instead=_forgetful,
)
def second_list_of_survivors(stage: Stage) -> bool:
    """Asks for the sum of all sites, and then for the sum of all but one."""
    game = played()
    return game.tells_of("s0", game.sum_without(), game.sum_without("s0"))


def _unremembered(real: Callable[..., None]) -> Callable[..., None]:
    def restore(party: Any, number: int, asked: bytes, done: bool, _: bytes | None = None) -> None:
        real(party, number, asked, done)

    return restore


@attack(
    "hub",
    guard="consortium.secagg.party:Party.restore",
    without=_ONE_SITE,
    stops="has answered another unmask request",
    instead=_unremembered,
)
def second_list_after_a_restart(stage: Stage) -> bool:
    """Waits until the sites were started again, and then shows them another list."""
    game = played()
    whole = game.sum_without()
    for site in game.wire.parties:
        restarted(game, site)
    return game.tells_of("s0", whole, game.sum_without("s0"))


@attack(
    "hub",
    guard="consortium.secagg.participants:threshold",
    without=_ONE_SITE,
    stops="is unsafe or can't be met",
    instead=lambda real: lambda sites, colluding, dropouts: 1,
)
def different_lists_to_different_sites(stage: Stage) -> bool:
    """Sets a threshold so low that one half of the sites opens one list, the other another."""
    game = played(ThinConsortium())
    whole = game.sum_without(answering=("s0", "s1"))
    return game.tells_of("s0", whole, game.sum_without("s0", answering=("s2", "s3")))


@attack(
    "hub",
    guard="consortium.secagg.participants:least_safe",
    without="both secrets of a site open, and with them its vector",
    stops="holders with 11 of 12 sites is unsafe",
    instead=always(True),
)
def different_lists_to_the_holders_of_a_site(stage: Stage) -> bool:
    """Sets the threshold of a drawn graph so low that half of a site's holders open a seed."""
    game = played(Consortium(count=12, holders=8, needed=4))
    return both_seeds_open(game, "s0")


@attack(
    "hub",
    guard=_LISTS,
    without="both secrets of a site open, and with them its vector",
    stops="doesn't list every site once",
    instead=nothing,
)
def site_on_both_lists(stage: Stage) -> bool:
    """Lists one site among the survivors and among the lost at once."""
    game = played()
    return seeds_open(game, game.lists(game.sites, ("s0",)))


@attack(
    "hub",
    guard=_LISTS,
    without="a sum opens over fewer sites than the guarantee was computed for",
    stops="names 3 survivors where 4 are the minimum",
    instead=nothing,
)
def list_below_the_minimum(stage: Stage) -> bool:
    """Lists as lost two sites where the study allows one."""
    game = played(Consortium(count=5))
    return seeds_open(game, game.lists(game.sites[:3], game.sites[3:]))


def _anybody(_real: object) -> Callable[..., messages.Request]:
    return lambda session, number, context, name, data, neighbours: read_unmask_request(
        session, number, context, data
    )


@attack(
    "hub",
    guard="consortium.secagg.party:check_request",
    without="a site helps to open the key of the masks on its own vector",
    stops="lists s0 as lost, though it has contributed",
    instead=_anybody,
)
def contribution_held_back(stage: Stage) -> bool:
    """Stores a site's contribution and reports to the site that it was lost."""
    game = played()
    body = game.lists(game.sites[1:], ("s0",))
    return bool(game.wire.parties["s0"].unmask(NUMBER, game.signed(body)))


@attack(
    "hub",
    guard="consortium.secagg.party:PARTY_ROUND",
    without="two vectors under the same masks: their difference is readable",
    stops="can't do 'contribute'",
    instead=lambda real: {
        **real,
        (PartyRound.CONTRIBUTED, "contribute"): PartyRound.CONTRIBUTED,
    },
)
def second_contribution_to_a_round(stage: Stage) -> bool:
    """Asks a site to contribute to a round again."""
    game = played()
    other = vectors(game.sites, 4, seed=9)["s0"]
    again = game.wire.parties["s0"].contribute(NUMBER, context(NUMBER), other)
    first, second = (game.masked(message) for message in (game.contributions["s0"], again))
    return np.array_equal(first - second, game.values["s0"] - other)


class _AnySignature:
    """Finds every signature good."""

    @classmethod
    def from_public_bytes(cls, _: bytes) -> _AnySignature:
        return cls()

    def verify(self, *_: bytes) -> None:
        pass


@attack(
    "hub",
    guard="consortium.secagg.envelope:Ed25519PublicKey",
    without="the hub reads the shares that are meant for the site",
    stops="isn't signed with its key",
    instead=lambda real: _AnySignature,
)
def key_substituted_in_the_bundle(stage: Stage) -> bool:
    """Puts a key of its own into a site's advertisement."""
    wire, evil = Wire(), X25519PrivateKey.generate()
    bundle = swapped_keys(wire, "s0", evil.public_key().public_bytes_raw())
    share = wire.parties["s1"].setup.receive_keys(bundle)
    session = wire.hub.session
    directory = read_keys(session, bundle)
    shared = crypto.shared_secret(evil, directory.sites["s1"].channel)
    told = handed(directory, dict.fromkeys(directory.sites, share), "s0", session.run)
    part = read_shares(session, "s0", told)["s1"]
    root = read_shared(session, directory, "s1", part.signed).root
    return bool(open_share(session, directory, "s0", "s1", shared, part, root))


def _same_for_all(real: Callable[..., bytes]) -> Callable[..., bytes]:
    def digest(label: str, *parts: Any) -> bytes:
        return real(label) if label == "consortium keys 1" else real(label, *parts)

    return digest


@attack(
    "hub",
    guard="consortium.secagg.crypto:digest",
    without="sites have different keys of one partner, and some masks stay in the sum",
    stops="was shown other keys than these",
    instead=_same_for_all,
)
def two_bundles_to_two_sites(stage: Stage) -> bool:
    """Shows some sites one set of keys of a site that works for it, and others another set."""
    consortium = Consortium()
    parties = {site: consortium.party(site) for site in consortium.sites}
    twin = Wire(Consortium()).parties["s3"]
    own = type(twin._member.own)(twin.session.digest, "s3", bytes(32))
    twin._member = twin.setup._member = replace(twin._member, own=own)
    sent = {site: party.setup.advertise(b"") for site, party in parties.items()}
    hub = Wire().hub
    views = [bundle_of(hub, sent), bundle_of(hub, sent | {"s3": twin.setup.advertise(b"")})]
    shown = {"s0": 0, "s1": 0, "s2": 1}
    shares = {site: parties[site].setup.receive_keys(views[view]) for site, view in shown.items()}
    of_s3 = parties["s3"].setup.receive_keys(views[0]), twin.setup.receive_keys(views[1])
    for site, view in shown.items():
        sent = {**shares, "s3": of_s3[view]}
        parties[site].setup.receive_shares(
            handed(parties[site].directory, sent, site, consortium.run)
        )
    known = [parties[site].directory.sites["s3"].channel for site in shown]
    return known[0] != known[2]


@attack(
    "hub",
    guard="consortium.secagg.seed_shares:is_under",
    without="a site gets a share that its owner never signed, and is blamed for a wrong one",
    stops="is not the one that s3 signed",
    instead=always(True),
)
def share_of_another_holder(stage: Stage) -> bool:
    """Hands a site a share of an accomplice's seed which the accomplice did not sign."""
    wire = Wire()
    keys = bundle_of(wire.hub, {s: party.setup.advertise(b"") for s, party in wire.parties.items()})
    sent = {site: party.setup.receive_keys(keys) for site, party in wire.parties.items()}
    party, friend, run = wire.parties["s0"], wire.parties["s3"], wire.consortium.run
    known, false = party.directory, bytes(64 * wire.consortium.rounds)
    key = known.keys.channel(friend.setup.keys.channels["s0"], "s3", "s0", messages.SHARE, 0)
    told = msgspec.msgpack.decode(handed(known, sent, "s0", run))[5]
    parts = messages.decode(messages.Shares, told, CENTRE).shares
    other = messages.SharePart(parts[3].signed, crypto.encrypt(key, false), parts[3].path)
    body = messages.encode(messages.Shares("s0", (*parts[:3], other)))
    party.setup.receive_shares(seal(identity(CENTRE), run, CENTRE, messages.SHARES, 0, body))
    return party.setup.keys.held["s3"] == false


@attack(
    "hub",
    guard="consortium.secagg.unmasking:_check_manifests",
    without="a site of the centre chooses its vector, and so the total, after the others' sum",
    stops="manifest message is cut short",
    instead=nothing,
)
def friend_who_waits_for_the_sum(stage: Stage) -> bool:
    """Lists a site that works for it as a survivor before that site has sent its vector."""
    wire = Wire().set_up()
    honest, friend = wire.consortium.sites[:-1], wire.consortium.sites[-1]
    values, wish = vectors(honest, ENTRIES), ring(np.arange(ENTRIES), BITS)
    parties = wire.parties
    sent = {s: parties[s].contribute(NUMBER, context(NUMBER), values[s]) for s in honest}
    game = Round(wire, values, sent)
    shown = [split_message(sent[site], 1 << 16).manifest for site in honest]
    body = messages.Request(context(NUMBER), (*honest, friend), (), (*shown, b""))
    request = game.signed(body)
    answers = [parties[site].unmask(NUMBER, request) for site in honest]

    # The others' sum, opened as if the friend had sent zeros; then what the wish lacks.
    others = _opened_with(game, friend, np.zeros_like(wish), request, answers)
    return np.array_equal(_opened_with(game, friend, wish - others, request, answers), wish)


def _opened_with(
    game: Round, friend: str, vector: Ring, request: bytes, answers: Sequence[bytes]
) -> Ring:
    """Open the sum with this vector of the friend's, whatever it sent before."""
    restarted(game, friend, answered=False)
    hub = game.hub([site for site in game.sites if site != friend])
    hub.receive_contribution(game.wire.parties[friend].contribute(NUMBER, context(NUMBER), vector))
    tally = hub._tallies[NUMBER]
    tally.request, tally.survivors, tally.state = request, game.sites, HubRound.UNMASKING
    for answer in answers:
        hub.receive_unmasking(answer)
    return hub.sum(NUMBER).sum


def _without_manifests(real: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *_: True


@attack(
    "site",
    guard="consortium.secagg.contribution:check_manifest",
    without="a sum is published over another vector than its site has signed",
    stops="is not what its manifest says",
    instead=_without_manifests,
)
def contribution_beside_its_manifest(stage: Stage) -> bool:
    """Sends one vector, and signs a manifest of another."""
    wire = Wire().set_up()
    values = vectors(wire.consortium.sites, ENTRIES)
    wire.call(CENTRE, "open", NUMBER, context(NUMBER), ENTRIES, BITS)
    parts = split_message(
        wire.call("s0", "contribute", NUMBER, context(NUMBER), values["s0"]), 1 << 16
    )
    other = messages.decode(messages.Manifest, msgspec.msgpack.decode(parts.manifest)[5], "s0")
    forged = msgspec.structs.replace(other, chunks=(bytes(32),))
    run = wire.consortium.run
    signed = seal(identity("s0"), run, "s0", messages.MANIFEST, NUMBER, messages.encode(forged))
    wire.hub.receive_contribution(with_payload(parts.envelope, parts.payload, signed))
    return "s0" in wire.hub.contributed(NUMBER)
