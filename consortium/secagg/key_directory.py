"""The sites' advertisements: how one is made, and the checks that the hub and the sites share.

`Member` is a site or the centre in a run, with its name, its keys and its signatures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ProtocolError
from consortium.secagg import crypto, messages
from consortium.secagg.envelope import Opened, seal, unseal
from consortium.secagg.graph import Graph, check_holders, draw_holders
from consortium.secagg.key_schedule import OwnKeys, PairKeys, commitment, mask_private, public_bytes
from consortium.secagg.participants import CENTRE, Participants


@dataclass(frozen=True)
class Member:
    """One party of secure aggregation, with its private keys."""

    name: str
    session: KeySession
    """What all members have in common."""
    identity: Ed25519PrivateKey
    own: OwnKeys
    """Keys of every round, from the member's secret."""

    @classmethod
    def enter(
        cls,
        run: str,
        name: str,
        roster: Participants,
        rounds: int,
        identity: Ed25519PrivateKey,
        secret: bytes,
    ) -> Member:
        """Check a member against the roster.

        Raises ProtocolError if the identity isn't the roster's, or the secret has another length.
        """
        roster.check_identity(name, identity, secret)
        session = KeySession(run, roster, rounds)
        return cls(name, session, identity, OwnKeys(session.digest, name, secret))

    def seal(self, kind: str, number: int, body: bytes) -> bytes:
        """Sign a message of a round, or of the set-up if the round is 0."""
        return seal(
            key=self.identity,
            run=self.session.run,
            sender=self.name,
            kind=kind,
            round=number,
            body=body,
        )


RUN_BYTES = 128


@dataclass(frozen=True)
class KeySession:
    """What hub and sites of one run have in common.

    Raises ProtocolError if the name is empty or over 128 bytes, or ``rounds`` negative.
    """

    run: str
    """Name of the run, unique for ever."""
    roster: Participants
    rounds: int
    """J >= 0, rounds that the run may have, numbered 1 ... J; round 0 is the set-up."""

    def __post_init__(self) -> None:
        if not 0 < len(self.run.encode()) <= RUN_BYTES or self.rounds < 0:
            raise ProtocolError(
                f"A run needs a name of 1 to {RUN_BYTES} bytes and no negative number of rounds. "
                "Correct them."
            )

    @cached_property
    def digest(self) -> bytes:
        """Digest of all attributes; every advertisement is checked against it."""
        return self.roster.session(self.run, self.rounds)

    @property
    def keyed_rounds(self) -> int:
        """Rounds for which every site has keys: all, or none in a run without masks."""
        return self.rounds if self.roster.masked else 0

    @property
    def limits(self) -> messages.Limits:
        """Sizes of the messages."""
        return messages.Limits(len(self.roster.sites), self.rounds, self.roster.holders)

    def unseal(
        self,
        kind: str,
        data: bytes,
        limit: int,
        sender: str | None = None,
        number: int | None = None,
    ) -> Opened:
        """Check that a member has signed a message of this run; see `unseal`.

        Raises ProtocolError if not, or if it is not of the ``sender`` or of the round that are
        named.
        """
        return unseal(
            data,
            self.roster.keys,
            run=self.run,
            kind=kind,
            limit=limit,
            sender=sender,
            round=number,
        )

    def check_round(self, number: int) -> None:
        """Refuse a round that the run does not have; raises ProtocolError."""
        if not 1 <= number <= self.rounds:
            raise ProtocolError(
                f"Round {number} is not among the run's rounds 1 to {self.rounds}. "
                "Plan the run with enough rounds."
            )


@dataclass(frozen=True)
class Directory:
    """Public keys of all parties, each signed by its owner.

    ``transcript`` is the digest of the bundle and enters every derived key. ``graph`` has the
    pairs with shares and masks, as the advertisements name them.
    """

    transcript: bytes
    graph: Graph
    channel: bytes
    sites: Mapping[str, messages.Advertisement]
    envelopes: Mapping[str, bytes]

    @property
    def keys(self) -> PairKeys:
        """The run's key schedule."""
        return PairKeys(self.transcript)

    @property
    def notes(self) -> dict[str, bytes]:
        """The sites' notes."""
        return {site: advertisement.note for site, advertisement in self.sites.items()}

    def mask_key(self, site: str, number: int) -> bytes:
        """Return the public key of a site's pair masks in one round."""
        return self.sites[site].masks[number - 1]

    def commitment(self, site: str, number: int) -> bytes:
        """Return the commitment to a site's self-mask seed of one round."""
        return self.sites[site].commitments[number - 1]


def own_advertisement(session: KeySession, own: OwnKeys, note: bytes) -> messages.Advertisement:
    """Make the one advertisement that belongs to a site's secret and note."""
    digest = session.digest
    site = own.name
    roster = session.roster
    count = len(roster.sites)
    numbers = range(1, session.keyed_rounds + 1)
    return messages.Advertisement(
        session=digest,
        channel=public_bytes(own.channel()),
        masks=tuple(public_bytes(mask_private(digest, site, j, own.mask_seed(j))) for j in numbers),
        commitments=tuple(commitment(digest, site, j, own.self_seed(j)) for j in numbers),
        note=note,
        holders=draw_holders(own.lots(count), count, roster.point(site), roster.holders),
    )


def read_advertisement(
    session: KeySession, data: bytes, site: str | None = None
) -> tuple[str, messages.Advertisement]:
    """Check one advertisement, perhaps of a given site, and return its sender and body.

    Raises ProtocolError if it is not a sound advertisement for this session. The message names the
    site.
    """
    opened = session.unseal(messages.ADVERTISE, data, session.limits.advertisement, site, 0)
    if opened.sender == CENTRE:
        raise ProtocolError("The centre has no masks to advertise. Discard its message.")
    body = messages.decode(messages.Advertisement, opened.body, opened.sender)
    if body.session != session.digest:
        raise ProtocolError(
            f"{opened.sender} was set up with another roster, threshold or number of rounds. "
            "Compare its study file and roster with the others'."
        )
    if not len(body.masks) == len(body.commitments) == session.keyed_rounds:
        raise ProtocolError(
            f"{opened.sender} has not one key for each of {session.keyed_rounds} rounds. "
            "Install the same version there."
        )
    roster = session.roster
    count = len(roster.sites)
    point = roster.point(opened.sender)
    check_holders(body.holders, count, point, roster.holders, opened.sender)
    if len(body.note) > messages.NOTE_BYTES:
        raise ProtocolError(
            f"The note of {opened.sender} is over {messages.NOTE_BYTES} bytes. Shorten it."
        )
    return opened.sender, body


def read_keys(session: KeySession, bundle: bytes) -> Directory:
    """Check the hub's bundle of advertisements.

    Raises ProtocolError if it is not the hub's, has not one sound advertisement of every site, or
    two public keys in it are equal or one is of low order.
    """
    opened = session.unseal(messages.KEYS, bundle, session.limits.keys, CENTRE, 0)
    body = messages.decode(messages.Keys, opened.body, CENTRE)
    sites = session.roster.sites
    if len(body.advertisements) != len(sites):
        raise ProtocolError(
            f"The centre's bundle has {len(body.advertisements)} advertisements for {len(sites)} "
            "sites. Wait until all have joined."
        )
    read = dict(
        read_advertisement(session, data, site)
        for site, data in zip(sites, body.advertisements, strict=True)
    )
    _check_keys(read, body.channel)
    envelopes = dict(zip(sites, body.advertisements, strict=True))
    transcript = crypto.digest("consortium keys 1", session.digest, opened.body)
    graph = Graph({site: advertisement.holders for site, advertisement in read.items()})
    return Directory(transcript, graph, body.channel, read, envelopes)


def _check_keys(read: Mapping[str, messages.Advertisement], channel: bytes) -> None:
    """Require that every key is valid and that no two are equal.

    A copied key would agree with the partners of its owner.
    """
    owners = {site: (body.channel, *body.masks) for site, body in read.items()}
    owners[CENTRE] = (channel,)
    counts = Counter(key for keys in owners.values() for key in keys)
    for owner, keys in owners.items():
        if any(counts[key] > 1 for key in keys):
            raise ProtocolError(
                f"A key of {owner} is advertised twice. Set the sites up again with new secrets."
            )
        for key in keys:
            crypto.check_public_key(key, owner)
