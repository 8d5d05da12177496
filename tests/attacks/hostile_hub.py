"""A hub that follows the protocol only as far as it likes, over real parties."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from consortium.errors import ThresholdError
from consortium.secagg import (
    CENTRE,
    Hub,
    Participants,
    RoundSum,
    messages,
    seal,
)
from consortium.secagg import (
    contribution as contribution_module,
)
from consortium.secagg.hub_round import Tally
from consortium.secagg.key_schedule import public_bytes
from consortium.secagg.keystream import Ring
from consortium.secagg.packing import unpack
from consortium.secagg.unmasking import Opener
from tests.support.secagg_wire import Consortium, Wire, context, identity, lists, ring, vectors

NUMBER, ENTRIES, BITS = 1, 4, 32


class ThinConsortium(Consortium):
    """One whose hub chose the threshold: two answers of four."""

    @property
    def roster(self) -> Participants:
        sound = super().roster
        return replace(sound, threshold=2)


@dataclass
class Round:
    """Round 1 after all contributions; what the hub does next is the attack."""

    wire: Wire
    values: Mapping[str, Ring]
    contributions: Mapping[str, bytes]

    @property
    def sites(self) -> tuple[str, ...]:
        """Everybody, in the roster's order."""
        return self.wire.consortium.sites

    def hub(self, sites: Collection[str]) -> Hub:
        """Build a hub that claims to have the contributions of these sites only."""
        hub, count, log = self.wire.consortium.hub(), len(self.sites), self.wire.log
        for message in log[:count]:
            hub.setup.receive_advertisement(message)
        for message in log[count + 1 : 2 * count + 1]:
            hub.setup.receive_share(message)
        hub.open(NUMBER, context(NUMBER), ENTRIES, BITS)
        for site in sites:
            hub.receive_contribution(self.contributions[site])
        return hub

    def sum_without(self, *lost: str, answering: Collection[str] | None = None) -> RoundSum:
        """Have a sum opened without some sites; those of ``answering`` are asked for it."""
        survivors = [site for site in self.sites if site not in lost]
        hub = self.hub(survivors)
        request = hub.request(NUMBER)
        for site in survivors if answering is None else answering:
            hub.receive_unmasking(self.wire.parties[site].unmask(NUMBER, request))
        return hub.sum(NUMBER)

    def tells_of(self, site: str, whole: RoundSum, rest: RoundSum) -> bool:
        """Whether two sums give one site's vector away."""
        return np.array_equal(whole.sum - rest.sum, self.values[site])

    def lists(self, survivors: Sequence[str], lost: Sequence[str] = ()) -> messages.Request:
        """Lists that show a manifest of every survivor."""
        return lists(self.wire.consortium.run, survivors, lost, NUMBER, context(NUMBER))

    def signed(self, body: messages.Request) -> bytes:
        """Sign lists as the centre."""
        run = self.wire.consortium.run
        return seal(identity(CENTRE), run, CENTRE, messages.UNMASK, NUMBER, messages.encode(body))

    def masked(self, contribution: bytes) -> Ring:
        """Decrypt what a site sent to the hub; its masks are on it."""
        hub = self.wire.hub
        parts = contribution_module.split_message(contribution, 1 << 16)
        opened = hub.session.unseal(messages.CONTRIBUTION, parts.envelope, 1 << 16)
        return unpack(hub.setup.known.unload(opened, parts).masked, BITS, ENTRIES, "it")


def played(consortium: Consortium | None = None) -> Round:
    """Set up, and let everybody contribute."""
    wire = Wire(consortium or Consortium()).set_up()
    values = vectors(wire.parties, ENTRIES)
    sent = {
        site: party.contribute(NUMBER, context(NUMBER), ring(values[site], BITS))
        for site, party in wire.parties.items()
    }
    return Round(wire, values, sent)


def restarted(game: Round, site: str, *, answered: bool = True) -> None:
    """Build a party again from what it received and, if it has answered, what it stored."""
    count, log = len(game.sites), game.wire.log
    party = game.wire.consortium.party(site)
    party.setup.receive_keys(log[count])
    party.setup.receive_shares(log[2 * count + 1 + game.sites.index(site)])
    if answered:
        request = game.hub(game.sites).request(NUMBER)
        party.restore(NUMBER, context(NUMBER), True, request)
    game.wire.parties[site] = party


def seeds_open(game: Round, body: messages.Request) -> bool:
    """Show the sites lists; whether all seeds that the lists are about can be put together."""
    request, hub = game.signed(body), game.wire.hub
    tally = Tally(game.wire.consortium.roster, NUMBER, context(NUMBER), 0, BITS, 0)
    opener, answers = Opener(hub.session, hub.setup.known.directory, tally), {}
    for site in body.survivors:
        answer = game.wire.parties[site].unmask(NUMBER, request)
        opened = hub.session.unseal(messages.UNMASKING, answer, 1 << 16)
        answers[site] = hub.setup.known.decrypt(messages.Unmasking, opened)
    try:
        found = []
        for n, site in enumerate(body.survivors):
            opener._shares[site] = {holder: sent.survivors[n] for holder, sent in answers.items()}
            found.append(opener._self_seed(site))
        for n, site in enumerate(body.lost):
            opener._shares[site] = {holder: sent.lost[n] for holder, sent in answers.items()}
            found.append(opener._mask_seed(site))
    except ThresholdError:
        return False
    return all(found)


def both_seeds_open(game: Round, victim: str) -> bool:
    """Tell half of a site's holders that all are there, the others that it is lost."""
    hub, owners = game.wire.hub, game.wire.hub.setup.known.directory.graph.owners
    tally = Tally(game.wire.consortium.roster, NUMBER, context(NUMBER), 0, BITS, 0)
    opener, rest = (
        Opener(hub.session, hub.setup.known.directory, tally),
        tuple(set(game.sites) - {victim}),
    )
    holders = hub.setup.known.directory.graph.holders(victim)
    lists = game.sites, hub.session.roster.ordered(rest)
    shares: tuple[dict[str, bytes], dict[str, bytes]] = {}, {}
    for place, holder in enumerate(holders):
        told = lists[lost := 2 * place // len(holders)]
        body = game.lists(told, (victim,) if lost else ())
        answer = game.wire.parties[holder].unmask(NUMBER, game.signed(body))
        opened = hub.session.unseal(messages.UNMASKING, answer, 1 << 16)
        sent = hub.setup.known.decrypt(messages.Unmasking, opened)
        ours = owners(holder).index(victim)
        shares[lost][holder] = sent.lost[0] if lost else sent.survivors[ours]
    try:
        opener._shares[victim] = shares[0]
        found = [opener._self_seed(victim)]
        opener._shares[victim] = shares[1]
        return all([*found, opener._mask_seed(victim)])
    except ThresholdError:
        return False


def swapped_keys(wire: Wire, victim: str, key: bytes) -> bytes:
    """Bundle in which a site's channel key is another's; its signature can't be made anew."""
    sent = {site: party.setup.advertise(b"") for site, party in wire.parties.items()}
    envelope = msgspec.msgpack.decode(sent[victim])
    body = messages.decode(messages.Advertisement, envelope[5], victim)
    envelope[5] = messages.encode(msgspec.structs.replace(body, channel=key))
    return bundle_of(wire.hub, sent | {victim: msgspec.msgpack.encode(envelope)})


def bundle_of(hub: Hub, advertisements: Mapping[str, bytes]) -> bytes:
    """Sign a bundle of whatever advertisements."""
    body = messages.Keys(public_bytes(hub.setup._channel), tuple(advertisements.values()))
    run = hub.session.run
    return seal(identity(CENTRE), run, CENTRE, messages.KEYS, 0, messages.encode(body))
