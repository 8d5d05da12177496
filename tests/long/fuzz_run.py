"""The messages of a real run in memory, from which false ones are made."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.engine.queries import SiteNote, encode_note
from consortium.engine.run_context import RunContext
from consortium.secagg import CENTRE, Hub, Party
from consortium.secagg.key_directory import Directory, KeySession, read_keys
from consortium.secagg.release import release_message
from consortium.study.reader import parse_study
from consortium.study.spec import Study

SITES = ("north", "east", "south", "west")
RUN, ROUNDS, ENTRIES = "small-0001", 2, 5
CONTEXT = bytes(range(32))
STUDY = (
    "study: small\nsites: [north, east, south, west]\n"
    "participants: {north: 10, east: 10, south: 10, west: 10}\n"
    "privacy: {epsilon: 8, delta: 1.0e-5, "
    "colluding_sites: 0, dropouts: 1}\nalgorithm: average\ndata: {detrend: none}\n"
)


def key_of(name: str) -> Ed25519PrivateKey:
    """A party's signing key."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def public_of(name: str) -> bytes:
    """Its public half."""
    return key_of(name).public_key().public_bytes_raw()


@dataclass
class Run:
    """Four real parties and a real hub, set up, with one round that lost a site."""

    def __post_init__(self) -> None:
        roster = self.context.roster
        common = {"run": RUN, "roster": roster, "rounds": ROUNDS}
        secret = bytes(32)
        self.hub = Hub(**common, identity=key_of(CENTRE), secret=secret)  # type: ignore[arg-type]
        self.parties = {
            name: Party(**common, name=name, identity=key_of(name), secret=bytes([n] * 32))  # type: ignore[arg-type]
            for n, name in enumerate(SITES)
        }
        note = encode_note(SiteNote("0" * 64, "1"))
        self.advertisements = [party.setup.advertise(note) for party in self.parties.values()]
        for message in self.advertisements:
            self.hub.setup.receive_advertisement(message)
        self.keys = self.hub.setup.keys()
        self.shares = [party.setup.receive_keys(self.keys) for party in self.parties.values()]
        for message in self.shares:
            self.hub.setup.receive_share(message)
        self.bundles = {name: self.hub.setup.shares(name) for name in self.parties}
        for name, party in self.parties.items():
            party.setup.receive_shares(self.bundles[name])
        self.bundle = self.bundles[SITES[1]]
        self._round()

    def _round(self) -> None:
        vector = np.arange(ENTRIES, dtype=np.uint32)
        self.hub.open(1, CONTEXT, ENTRIES, 32, ENTRIES)
        there = SITES[:3]
        self.contributions = [
            self.parties[name].contribute(1, CONTEXT, vector, vector) for name in there
        ]
        for message in self.contributions:
            self.hub.receive_contribution(message)
        self.request = self.hub.request(1)
        self.unmaskings = [self.parties[name].unmask(1, self.request) for name in there]
        for message in self.unmaskings:
            self.hub.receive_unmasking(message)
        total = self.hub.sum(1)
        self.release = release_message(
            total, CONTEXT, total.sum, 8 * total.sum.itemsize, shown=True
        )

    @property
    def keyring(self) -> dict[str, bytes]:
        """Everybody's public key."""
        return {name: public_of(name) for name in (*SITES, CENTRE)}

    @cached_property
    def study(self) -> Study:
        """What the run is about."""
        return parse_study(STUDY)

    @cached_property
    def context(self) -> RunContext:
        """Its setting."""
        return RunContext(RUN, self.study, self.keyring, "0" * 64, 10, "1" * 64)

    @cached_property
    def session(self) -> KeySession:
        """What all its parties have in common."""
        return KeySession(RUN, self.context.roster, ROUNDS)

    @cached_property
    def directory(self) -> Directory:
        """Everybody's keys."""
        return read_keys(self.session, self.keys)

    def channel(self, site: str, kind: str) -> bytes:
        """Key of a site's message to the hub in round 1."""
        shared = self.hub.setup.known.channels[site]
        return self.directory.keys.channel(shared, site, CENTRE, kind, 1)
